"""Diffusion trees contain each receiver once, respect capabilities and are as flat as possible."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from qns.d2q.shipped import WEATHER
from qns.edl.messages import ReachabilityRow
from qns.edl.reachability import Reachability
from qns.edl.tree_builder import Tree, TreeBuilder, diffusion_tree
from qns.federation.document import Federation

ROOT = "P"
NAMES = [f"Org{number:02}" for number in range(30)]

receivers = st.lists(st.sampled_from(NAMES), unique=True)
capabilities = st.fixed_dictionaries({name: st.integers(1, 6) for name in (ROOT, *NAMES)})
unreachable = st.dictionaries(
    st.sampled_from([ROOT, *NAMES]), st.lists(st.sampled_from(NAMES), unique=True), max_size=10
)


def reachability_of(rows: dict[str, list[str]]) -> Reachability:
    reachability = Reachability(ROOT, 1)
    for name in rows.get(ROOT, ()):
        reachability.observe(name, reachable=False)
    reports = [ReachabilityRow(name, 1, 1, tuple(away)) for name, away in rows.items()]
    members = {*rows, *(name for away in rows.values() for name in away)}
    reachability.update("X", reports, members)
    return reachability


def least_depth(wanted: list[str], able: dict[str, int]) -> int:
    """Returns the least number of levels: that of the tree with the strongest near the root."""
    left = sorted((able[name] for name in wanted), reverse=True)
    room, depth = able[ROOT], 0
    while left:
        level, left = left[:room], left[room:]
        room, depth = sum(level), depth + 1
    return depth


@given(receivers, capabilities)
def test_tree_spans_the_receivers_within_capability_at_minimal_depth(
    wanted: list[str], able: dict[str, int]
) -> None:
    graph = nx.DiGraph(diffusion_tree(ROOT, wanted, able, Reachability(ROOT, 1)))
    assert set(graph) == {ROOT, *wanted}
    assert nx.is_arborescence(graph)
    assert all(graph.out_degree(name) <= able[name] for name in graph)
    depths = nx.single_source_shortest_path_length(graph, ROOT)
    assert max(depths.values()) == least_depth(wanted, able)


@given(receivers, capabilities, unreachable)
def test_tree_bypasses_unreachable_links_and_still_spans_every_receiver(
    wanted: list[str], able: dict[str, int], rows: dict[str, list[str]]
) -> None:
    reachability = reachability_of(rows)
    graph = nx.DiGraph(diffusion_tree(ROOT, wanted, able, reachability))
    assert set(graph) == {ROOT, *wanted}
    assert nx.is_arborescence(graph)
    for parent, child in graph.edges:
        if parent != ROOT:
            assert reachability.reaches(parent, child)
    for name in wanted:
        assert graph.out_degree(name) <= able[name]
        if not any(reachability.reaches(other, name) for other in (ROOT, *wanted) if other != name):
            assert list(graph.predecessors(name)) == [ROOT]
            assert graph.out_degree(name) == 0
    beyond = list(graph.successors(ROOT))[able[ROOT] :]  # no other receiver can reach them
    assert all(graph.out_degree(name) == 0 for name in beyond)


def flat(tree: Tree) -> list[str]:
    return [name for child, below in tree for name in (child, *flat(below))]


@given(receivers, st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=10))
def test_cached_tree_equals_a_freshly_built_tree(
    wanted: list[str], seen: list[tuple[str, bool]]
) -> None:
    reachability = Reachability(ROOT, 1)
    kept = TreeBuilder(ROOT, reachability)
    document = Federation.of("weather", WEATHER, {name: [] for name in (ROOT, *NAMES)}, 2)
    kept.apply_document(document, document)
    for name, reachable in [("", True), *seen]:
        reachability.observe(name, reachable=reachable)
        fresh = TreeBuilder(ROOT, reachability)
        fresh.apply_document(document, document)
        assert kept.tree(tuple(wanted)) == fresh.tree(tuple(wanted))
        assert sorted(flat(kept.tree(tuple(wanted)))) == sorted(wanted)
