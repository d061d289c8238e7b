"""Producer views: the merge subscription as every producer sees it, in one covering order.

`ProducerView` defines the view of one producer. Most producers see the same elements, so that one
order for each would repeat them. Here a set of producers, as bits of an integer, stands beside each
element: the producers at which it is maximal, and those at which another one contains it. At each
producer the nodes form a forest as in `CoveringOrder`; its roots are the view. The merge set M is
kept in the same way, with bit 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from qns.cbr.cover_search import CoverSearch
from qns.cbr.delta import Delta
from qns.cbr.subscription import Subscription
from qns.errors import DuplicateId, NameNotKnown

Id = TypeVar("Id", bound=object)
Changes = dict[str, Delta[Subscription]]
"""Producer -> the change of its view. Producers whose views do not change are left out."""

_M: Final = 1
"""The bit of the merge set: sources count there, and every class is in it."""


@dataclass(slots=True, eq=False)
class _Node(Generic[Id]):
    subscription: Subscription
    seen: int
    """The producers that host a class of its scope and are among its sources."""
    root: int = 0
    """The producers in whose view it is."""
    # Dictionaries serve as sets with a fixed order, so that the same history gives the same forest.
    ids: dict[Id, None] = field(default_factory=dict)
    parents: dict[_Node[Id], int] = field(default_factory=dict)
    """What contains it, and at which producers. There is one parent at each producer."""
    children: dict[_Node[Id], int] = field(default_factory=dict)


class ProducerViews(Generic[Id]):
    """Holds subscriptions by id and keeps the views of all producers up to date.

    The elements of a view are the users' own subscriptions. The producer sees them without sources
    and only with the classes that it hosts (`Subscription.projected`).
    """

    def __init__(self) -> None:
        self._nodes: dict[Subscription, _Node[Id]] = {}
        self._by_id: dict[Id, _Node[Id]] = {}
        self._roots = CoverSearch()
        """The elements that are in any view."""
        self._bits: dict[str, int] = {}
        self._hosted: dict[str, frozenset[str]] = {}
        self._hosting: dict[frozenset[str], int] = {}
        """Scope -> the producers that host a class of it."""
        self._within: dict[tuple[frozenset[str], frozenset[str]], int] = {}
        """Two scopes -> the producers at which the first one is part of the second one."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: Id) -> bool:
        return id in self._by_id

    @property
    def merge_set(self) -> frozenset[Subscription]:
        """M: the maximal elements, one for each equivalence class."""
        return frozenset(self._elements(_M))

    def hosted(self, producer: str) -> frozenset[str]:
        """Returns the classes with which the view of the producer is made."""
        return self._hosted[producer]

    def elements(self, producer: str) -> Iterator[Subscription]:
        """Yields the elements of the producer's view."""
        return self._elements(self._bits[producer])

    # -- subscriptions --------------------------------------------------------------------------

    def subscribe(self, id: Id, subscription: Subscription) -> Changes:
        change = _Change[Id]()
        self._add(id, subscription, change)
        return self._changes(change)

    def subscribe_all(self, items: Iterable[tuple[Id, Subscription]]) -> None:
        """Adds many subscriptions at once; the views become those of `subscribe` for each.

        Those with few constraints come first: only they can contain the others, so that few
        elements leave the views again.
        """
        change = _Change[Id]()
        for id, subscription in sorted(items, key=lambda item: len(item[1].constraints)):
            self._add(id, subscription, change)

    def unsubscribe(self, id: Id) -> Changes:
        node = self._by_id.get(id)
        if node is None:
            known = [str(each) for each in self._by_id] if len(self._by_id) < 1000 else []
            raise NameNotKnown("subscription", str(id), known)
        del self._by_id[id]
        del node.ids[id]
        if node.ids:
            return {}
        change = _Change[Id]()
        del self._nodes[node.subscription]
        self._take_out(node, node.seen, change)
        return self._changes(change)

    # -- producers ------------------------------------------------------------------------------

    def host(self, hosts: Mapping[str, frozenset[str]]) -> Changes:
        """Takes over which producers there are and what each of them hosts."""
        changed = {
            name: classes for name, classes in hosts.items() if self._hosted.get(name) != classes
        }
        if not changed and hosts.keys() == self._hosted.keys():
            return {}
        bits = sum(self._bits[name] for name in self._bits if hosts.get(name) != self._hosted[name])
        before = {name: frozenset(self.elements(name)) for name in changed if name in self._bits}
        self._forget(bits)
        for name in [name for name in self._bits if name not in hosts]:
            del self._bits[name], self._hosted[name]
        taken = _M | sum(self._bits.values())
        for name, classes in changed.items():
            if name not in self._bits:
                self._bits[name] = ~taken & (taken + 1)  # the lowest bit that is free
                taken |= self._bits[name]
            self._hosted[name] = classes
        self._hosting.clear()
        self._within.clear()
        self._see(sum(self._bits[name] for name in changed))
        found: Changes = {}
        for name in changed:
            old, new = before.get(name, frozenset()), frozenset(self.elements(name))
            if old != new:
                found[name] = Delta(new - old, old - new)
        return found

    def _forget(self, bits: int) -> None:
        """Removes these producers from every node."""
        if not bits:
            return
        for node in self._nodes.values():
            node.seen &= ~bits
            if node.root & bits:
                node.root &= ~bits
                if not node.root:
                    self._roots.remove(node.subscription)
            for links in (node.parents, node.children):
                for other in [other for other, where in links.items() if where & bits]:
                    _unlink(links, other, bits)

    def _see(self, bits: int) -> None:
        """Places every node at these producers, at which none is yet."""
        change = _Change[Id]()
        for node in sorted(
            self._nodes.values(), key=lambda each: len(each.subscription.constraints)
        ):
            seen = self._seen(node.subscription) & bits
            if seen:
                node.seen |= seen
                self._place(node, seen, change)

    # -- placing --------------------------------------------------------------------------------

    def _add(self, id: Id, subscription: Subscription, change: _Change[Id]) -> None:
        if id in self._by_id:
            raise DuplicateId(f"subscription {id} exists already", remedy="choose another id")
        node = self._nodes.get(subscription)
        if node is None:
            node = self._nodes[subscription] = _Node(subscription, self._seen(subscription))
            self._place(node, node.seen, change)
        node.ids[id] = None
        self._by_id[id] = node

    def _place(self, node: _Node[Id], where: int, change: _Change[Id]) -> None:
        """Puts a node that has no parent at these producers under roots, or among them."""
        subscription = node.subscription
        for cover in self._roots.possible_covers(subscription, self._may_contain):
            if not where:
                return
            above = self._nodes[cover]
            at = self._containing(above, node, above.root & where)
            if at:
                _link(above, node, at)
                where &= ~at
        if not where:
            return
        change.touch(node)
        covered = [
            (below, at)
            for each in self._roots.possibly_covered(subscription)
            if (at := self._containing(node, below := self._nodes[each], below.root & where))
        ]
        for below, at in covered:
            change.touch(below)
            below.root &= ~at
            if not below.root:
                self._roots.remove(below.subscription)
            _link(node, below, at)
        if not node.root:
            self._roots.add(subscription)
        node.root |= where

    def _take_out(self, node: _Node[Id], where: int, change: _Change[Id]) -> None:
        """Removes a node at these producers; its children are placed again."""
        change.touch(node)
        was_root, node.root = node.root & where, node.root & ~where
        if was_root and not node.root:
            self._roots.remove(node.subscription)
        for parent, at in list(node.parents.items()):
            _unlink(node.parents, parent, where)
            _unlink(parent.children, node, where)
            for child, child_at in node.children.items():
                if inherited := at & where & child_at:  # a parent also contains its grandchildren
                    _link(parent, child, inherited)
        orphans = list(node.children.items())
        # Those with few constraints come first: they are the likeliest covers of the others.
        orphans.sort(key=lambda item: len(item[0].subscription.constraints))
        for child, _ in orphans:
            _unlink(child.parents, node, where)
            _unlink(node.children, child, where)
        for child, at in orphans:
            self._place(child, at & was_root, change)

    def _containing(self, above: _Node[Id], below: _Node[Id], where: int) -> int:
        """Returns at which of these producers the first node contains the second one."""
        if not where:
            return 0
        wide, narrow = above.subscription, below.subscription
        if not narrow.scope <= wide.scope:
            where &= self._within_at(narrow.scope, wide.scope)
        if where & _M and not wide.accepts_sources_of(narrow):
            where &= ~_M
        return where if where and wide.constraints_contain(narrow) else 0

    def _may_contain(self, wide: frozenset[str], narrow: frozenset[str]) -> bool:
        """True if the first scope contains the second one at any producer."""
        return narrow <= wide or self._within_at(narrow, wide) != 0

    def _within_at(self, narrow: frozenset[str], wide: frozenset[str]) -> int:
        found = self._within.get((narrow, wide))
        if found is None:
            found = sum(
                self._bits[name]
                for name, classes in self._hosted.items()
                if not narrow.isdisjoint(classes) and narrow & classes <= wide
            )
            if narrow <= wide:
                found |= _M
            self._within[narrow, wide] = found
        return found

    def _seen(self, subscription: Subscription) -> int:
        scope, sources = subscription.scope, subscription.sources
        hosting = self._hosting.get(scope)
        if hosting is None:
            hosting = self._hosting[scope] = _M | sum(
                self._bits[name]
                for name, classes in self._hosted.items()
                if not scope.isdisjoint(classes)
            )
        if sources is None:
            return hosting
        return hosting & (_M | sum(self._bits.get(source, 0) for source in sources))

    def _elements(self, bit: int) -> Iterator[Subscription]:
        return (each for each in self._roots if self._nodes[each].root & bit)

    def _changes(self, change: _Change[Id]) -> Changes:
        """Returns the change of each view from the elements that have been touched."""
        added: dict[str, list[Subscription]] = {}
        removed: dict[str, list[Subscription]] = {}
        for node, before in change.roots_before.items():
            if node.root == before:
                continue
            for name, bit in self._bits.items():
                if bit & node.root & ~before:
                    added.setdefault(name, []).append(node.subscription)
                elif bit & before & ~node.root:
                    removed.setdefault(name, []).append(node.subscription)
        return {
            name: Delta(frozenset(added.get(name, ())), frozenset(removed.get(name, ())))
            for name in self._bits
            if name in added or name in removed
        }


class _Change(Generic[Id]):
    """The nodes that one operation has touched, each with the views in which it was before."""

    def __init__(self) -> None:
        self.roots_before: dict[_Node[Id], int] = {}

    def touch(self, node: _Node[Id]) -> None:
        self.roots_before.setdefault(node, node.root)


def _link(parent: _Node[Id], child: _Node[Id], where: int) -> None:
    parent.children[child] = parent.children.get(child, 0) | where
    child.parents[parent] = child.parents.get(parent, 0) | where


def _unlink(links: dict[_Node[Id], int], other: _Node[Id], where: int) -> None:
    left = links[other] & ~where
    if left:
        links[other] = left
    else:
        del links[other]
