"""Tree Builder: the diffusion tree of a notification (thesis 5.4.3).

Rooted at the producer and spanning the consumers, as flat as the capabilities allow: the strongest
come first, level by level, each with at most as many children as its capability. Whom the producer
cannot reach comes last, below somebody who can: nobody depends on it. A tree has at most `DEEPEST`
levels; with weaker capabilities the producer serves the rest itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from qns.edl.membership import Membership

if TYPE_CHECKING:
    import networkx as nx

Tree = tuple[tuple[str, "Tree"], ...]
"""The children of a node, each with its own."""

_MAX_KEPT = 256
DEEPEST = 32
"""How many may carry a notification one after the other."""


class TreeBuilder:
    """Builds trees, and keeps those of the last sets of receivers, because sets recur."""

    def __init__(self, root: str, membership: Membership) -> None:
        self._root = root
        self._membership = membership
        self._capabilities: Mapping[str, int] = {}
        self._kept: dict[tuple[str, ...], Tree] = {}
        self._kept_version = -1

    def follow(self, capabilities: Mapping[str, int]) -> None:
        """The capabilities that the document in force gives."""
        self._capabilities = capabilities
        self._kept.clear()

    def tree(self, receivers: tuple[str, ...]) -> Tree:
        if self._kept_version != self._membership.version or len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
            self._kept_version = self._membership.version
        tree = self._kept.get(receivers)
        if tree is None:
            graph = diffusion_tree(self._root, receivers, self._capabilities, self._membership)
            tree = self._kept[receivers] = _nested(graph, self._root)
        return tree


def diffusion_tree(
    root: str, receivers: Iterable[str], capabilities: Mapping[str, int], membership: Membership
) -> nx.DiGraph[str]:
    """The tree as a graph; receivers that nobody in it can reach are children of the root."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node(root)
    waiting = sorted(
        receivers,
        key=lambda name: (not membership.reaches(root, name), -capabilities.get(name, 1), name),
    )
    level = deque([(root, 0)])
    while level and waiting:
        parent, depth = level.popleft()
        room = capabilities.get(parent, 1)
        left = []
        for nth, child in enumerate(waiting):
            if not room:
                left += waiting[nth:]
                break
            if membership.reaches(parent, child):
                graph.add_edge(parent, child)
                if depth + 1 < DEEPEST:
                    level.append((child, depth + 1))
                room -= 1
            else:
                left.append(child)
        waiting = left
    graph.add_edges_from((root, child) for child in waiting)
    return graph


def _nested(graph: nx.DiGraph[str], node: str) -> Tree:
    return tuple((child, _nested(graph, child)) for child in graph.successors(node))
