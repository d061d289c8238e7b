"""Tree Builder: builds the diffusion tree of a notification (thesis 5.4.3).

The tree is rooted at the producer, spans the consumers and is as flat as the capabilities allow.
It is filled level by level, strongest organisation first; a node has at most as many children as
its capability. Organisations that the producer cannot reach come last, below one that reaches them,
so that no other organisation depends on them. A tree has at most `DEEPEST` levels, and at most
`MOST_BELOW` organisations below a child of the producer, so that the notification fits into a
message. Beyond that the producer sends to more children than its capability says.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping

from qns.edl.reachability import Reachability
from qns.federation.document import Federation

Tree = tuple[tuple[str, "Tree"], ...]
"""The children of a node, each with its own children."""

_MOST_CACHED = 256
MOST_BELOW = 1_000
"""The limit of organisations in the subtree of one child of the producer."""
DEEPEST = 32
"""The limit of levels, and so of forwarders of one notification in a row."""


class TreeBuilder:
    """Builds trees and caches them by their receivers, because the same sets recur."""

    def __init__(self, root: str, reachability: Reachability) -> None:
        self._root = root
        self._reachability = reachability
        self._capabilities: Mapping[str, int] = {}
        self._cached: dict[tuple[str, ...], Tree] = {}
        self._cached_version = -1

    def apply_document(self, _old: Federation, new: Federation) -> None:
        """Takes over the capabilities of the organisations."""
        self._capabilities = {name: each.capability for name, each in new.organisations.items()}
        self._cached.clear()

    def tree(self, receivers: tuple[str, ...]) -> Tree:
        if self._cached_version != self._reachability.version or len(self._cached) >= _MOST_CACHED:
            self._cached.clear()
            self._cached_version = self._reachability.version
        tree = self._cached.get(receivers)
        if tree is None:
            children = diffusion_tree(self._root, receivers, self._capabilities, self._reachability)
            tree = self._cached[receivers] = _nested(children, self._root)
        return tree


def diffusion_tree(
    root: str, receivers: Iterable[str], capabilities: Mapping[str, int], reachability: Reachability
) -> dict[str, list[str]]:
    """Returns the children of every node, in breadth-first order.

    Receivers that no node can reach are children of the root.
    """
    children: dict[str, list[str]] = {root: []}
    waiting = sorted(
        receivers,
        key=lambda name: (not reachability.reaches(root, name), -capabilities.get(name, 1), name),
    )
    below: Counter[str] = Counter()
    level = deque([(root, 0, "")])
    while level and waiting:
        parent, depth, top = level.popleft()
        room = capabilities.get(parent, 1)
        if parent == root:
            room = max(room, -(-len(waiting) // MOST_BELOW))
        else:
            room = min(room, MOST_BELOW - below[top])
        left = []
        for nth, child in enumerate(waiting):
            if not room:
                left += waiting[nth:]
                break
            if reachability.reaches(parent, child):
                children[parent].append(child)
                children[child] = []
                child_top = top or child
                below[child_top] += 1
                if depth + 1 < DEEPEST:
                    level.append((child, depth + 1, child_top))
                room -= 1
            else:
                left.append(child)
        waiting = left
    children[root] += waiting
    children.update((child, []) for child in waiting)
    return children


def _nested(children: Mapping[str, list[str]], node: str) -> Tree:
    return tuple((child, _nested(children, child)) for child in children[node])
