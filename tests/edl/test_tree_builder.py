"""The diffusion tree: everybody once, nobody with too many children, as flat as can be."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.membership import Membership
from qns.edl.messages import ReachabilityRow
from qns.edl.tree_builder import Tree, TreeBuilder, diffusion_tree

ROOT = "P"
NAMES = [f"Org{number:02}" for number in range(30)]

receivers = st.lists(st.sampled_from(NAMES), unique=True)
capabilities = st.fixed_dictionaries({name: st.integers(1, 6) for name in (ROOT, *NAMES)})
unreachable = st.dictionaries(
    st.sampled_from([ROOT, *NAMES]), st.lists(st.sampled_from(NAMES), unique=True), max_size=10
)


def membership_of(rows: dict[str, list[str]]) -> Membership:
    membership = Membership(ROOT, 1)
    for name in rows.get(ROOT, ()):
        membership.saw(name, reachable=False)
    told = [ReachabilityRow(name, 1, 1, tuple(away)) for name, away in rows.items()]
    members = {*rows, *(name for away in rows.values() for name in away)}
    membership.heard(told, members)
    return membership


def least_depth(wanted: list[str], able: dict[str, int]) -> int:
    """With the strongest next to the root no tree has fewer levels."""
    left = sorted((able[name] for name in wanted), reverse=True)
    room, depth = able[ROOT], 0
    while left:
        level, left = left[:room], left[room:]
        room, depth = sum(level), depth + 1
    return depth


@given(receivers, capabilities)
def test_the_tree_spans_the_receivers_within_capability_and_as_flat_as_possible(
    wanted: list[str], able: dict[str, int]
) -> None:
    graph = diffusion_tree(ROOT, wanted, able, Membership(ROOT, 1))
    assert set(graph) == {ROOT, *wanted}
    assert nx.is_arborescence(graph)
    assert all(graph.out_degree(name) <= able[name] for name in graph)
    depths = nx.single_source_shortest_path_length(graph, ROOT)
    assert max(depths.values()) == least_depth(wanted, able)


@given(receivers, capabilities, unreachable)
def test_who_cannot_be_reached_is_bypassed_and_forgotten_by_nobody(
    wanted: list[str], able: dict[str, int], rows: dict[str, list[str]]
) -> None:
    membership = membership_of(rows)
    graph = diffusion_tree(ROOT, wanted, able, membership)
    assert set(graph) == {ROOT, *wanted}
    assert nx.is_arborescence(graph)
    for parent, child in graph.edges:
        if parent != ROOT:
            assert membership.reaches(parent, child)
    for name in wanted:
        assert graph.out_degree(name) <= able[name]
        if not any(membership.reaches(other, name) for other in (ROOT, *wanted) if other != name):
            assert list(graph.predecessors(name)) == [ROOT]
            assert graph.out_degree(name) == 0
    beyond = list(graph.successors(ROOT))[able[ROOT] :]  # nobody else could reach them
    assert all(graph.out_degree(name) == 0 for name in beyond)


def flat(tree: Tree) -> list[str]:
    return [name for child, below in tree for name in (child, *flat(below))]


@given(receivers, st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=10))
def test_a_tree_that_is_kept_is_the_tree_that_would_be_built(
    wanted: list[str], seen: list[tuple[str, bool]]
) -> None:
    membership = Membership(ROOT, 1)
    kept = TreeBuilder(ROOT, membership)
    able = dict.fromkeys((ROOT, *NAMES), 2)
    kept.follow(able)
    for name, reachable in [("", True), *seen]:
        membership.saw(name, reachable=reachable)
        fresh = TreeBuilder(ROOT, membership)
        fresh.follow(able)
        assert kept.tree(tuple(wanted)) == fresh.tree(tuple(wanted))
        assert sorted(flat(kept.tree(tuple(wanted)))) == sorted(wanted)
