"""Covering order: the merge set of a changing collection of subscriptions (semantics §6).

Subscriptions form a forest in which every parent contains its children; the roots are the merge
set M. A new subscription that a root contains becomes its child, and M does not change. Otherwise
it becomes a root, and the roots that it contains become its children. When a root leaves, each of
its children is placed again: under another root that contains it, or else as a root in M.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from qns.cbr.cover_search import CoverSearch
from qns.cbr.delta import NO_CHANGE, Delta
from qns.cbr.subscription import Subscription
from qns.errors import DuplicateId, NameNotKnown

Id = TypeVar("Id", bound=object)


@dataclass(slots=True, eq=False)
class _Node(Generic[Id]):
    subscription: Subscription
    # Dictionaries serve as sets with a fixed order, so that the same history gives the same forest.
    ids: dict[Id, None] = field(default_factory=dict)
    parent: _Node[Id] | None = None
    children: dict[_Node[Id], None] = field(default_factory=dict)


class CoveringOrder(Generic[Id]):
    """Holds subscriptions by id and keeps their merge set up to date."""

    def __init__(self) -> None:
        self._nodes: dict[Subscription, _Node[Id]] = {}
        self._by_id: dict[Id, _Node[Id]] = {}
        self._roots = CoverSearch()

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: Id) -> bool:
        return id in self._by_id

    def __getitem__(self, id: Id) -> Subscription:
        return self._node(id).subscription

    @property
    def merge_set(self) -> frozenset[Subscription]:
        """M: the maximal elements, one for each equivalence class."""
        return frozenset(self._roots)

    def covers(self) -> Iterator[tuple[Subscription, list[Id], list[Id]]]:
        """Yields each element of M, the ids with exactly this subscription, and the covered ids."""
        for root in self._roots:
            node = self._nodes[root]
            yield root, list(node.ids), [id for other in _below(node) for id in other.ids]

    def subscribe(self, id: Id, subscription: Subscription) -> Delta[Subscription]:
        if id in self._by_id:
            raise DuplicateId(f"subscription {id} exists already", remedy="choose another id")
        node = self._nodes.get(subscription)
        delta = NO_CHANGE
        if node is None:
            node = self._nodes[subscription] = _Node(subscription)
            delta = self._place(node)
        node.ids[id] = None
        self._by_id[id] = node
        return delta

    def unsubscribe(self, id: Id) -> Delta[Subscription]:
        node = self._node(id)
        del self._by_id[id]
        del node.ids[id]
        if node.ids:
            return NO_CHANGE
        del self._nodes[node.subscription]
        if node.parent is not None:
            del node.parent.children[node]
            for child in node.children:  # a parent also contains its grandchildren
                child.parent = node.parent
            node.parent.children |= node.children
            return NO_CHANGE
        self._roots.remove(node.subscription)
        delta = Delta(removed=frozenset((node.subscription,)))
        # Those with few constraints come first: they are the likeliest covers of the others.
        for child in sorted(node.children, key=lambda each: len(each.subscription.constraints)):
            child.parent = None
            delta = delta.then(self._place(child))
        return delta

    def _place(self, node: _Node[Id]) -> Delta[Subscription]:
        """Puts a node without parent under a root that contains it, or among the roots."""
        subscription = node.subscription
        cover = self._roots.any_cover(subscription)
        if cover is not None:
            node.parent = self._nodes[cover]
            node.parent.children[node] = None
            return NO_CHANGE
        covered = self._roots.all_covered(subscription)
        for root in covered:
            self._roots.remove(root)
            self._nodes[root].parent = node
            node.children[self._nodes[root]] = None
        self._roots.add(subscription)
        return Delta(frozenset((subscription,)), frozenset(covered))

    def _node(self, id: Id) -> _Node[Id]:
        node = self._by_id.get(id)
        if node is None:
            known = [str(each) for each in self._by_id] if len(self._by_id) < 1000 else []
            raise NameNotKnown("subscription", str(id), known)
        return node


def _below(node: _Node[Id]) -> Iterator[_Node[Id]]:
    waiting = list(node.children)
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(each.children)
