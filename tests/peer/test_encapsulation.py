"""Encapsulation: code outside the peer does not reach deep into its components.

`peer.status` is the read-only view for health, metrics, the simulator and the lab. A chain such as
`peer.edl.forwarder.custody` would tie its caller to the inner structure of the peer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
OWN_ROOMS = [ROOT / "qns" / room for room in ("peer", "iil", "edl")]
"""The rooms that make up the peer: these may use its components."""
MODULES = sorted(
    path
    for folder in ("qns", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if not any(path.is_relative_to(room) for room in OWN_ROOMS)
)
PEER_NAMES = {"peer", "_peer"}
MOST_ATTRIBUTES = 2
"""The limit of attribute accesses after a peer, as in `peer.status.epoch`."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def deep_chains(source: str) -> list[str]:
    """Returns the attribute chains that reach too deep into a peer, with their lines."""
    chains = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    inner = {_before(node) for node in chains}
    found = []
    for node in chains:
        names = [*_names(node)][::-1]
        places = [at for at, name in enumerate(names) if name in PEER_NAMES]
        if node not in inner and places and len(names) - 1 - places[0] > MOST_ATTRIBUTES:
            found.append(f"{node.lineno}: {'.'.join(names)}")
    return found


def _names(node: ast.expr) -> Iterator[str]:
    """Yields the names of a chain from its end. A call begins a new chain: it returns a value."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = _before(node)
    if isinstance(node, ast.Name):
        yield node.id


def _before(node: ast.Attribute) -> ast.expr:
    """Returns the expression before an attribute; a subscript continues the chain."""
    before = node.value
    while isinstance(before, ast.Subscript):
        before = before.value
    return before


def test_no_module_outside_the_peer_reaches_into_its_components() -> None:
    assert len(MODULES) > 100
    found = {name_of(path): deep_chains(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {name: chains for name, chains in found.items() if chains} == {}


@pytest.mark.parametrize(
    "chain",
    [
        "peer.edl.forwarder.custody",
        "self.peer.edl.forwarder.custody",
        "self._peer.iil.stability.pending",
        "gateway.peer.edl.producer.streams",
        "node.driver.peer.edl.reachability.rows",
        "peer.edl.forwarder.links.values",
        "nodes.peer.edl.producer.table.view",
    ],
)
def test_deep_chain_is_found(chain: str) -> None:
    assert deep_chains(f"import x\nfound = {chain}\n") == [f"2: {chain}"]


@pytest.mark.parametrize(
    ("source", "chain"),
    [
        ("len(peer.edl.forwarder.custody)", "peer.edl.forwarder.custody"),
        ("peer.edl.forwarder.links.values()", "peer.edl.forwarder.links.values"),
        ("gateway().peer.log['k'].event.id", "peer.log.event.id"),
        ("peer.edl.producer.table.view('C').texts", "peer.edl.producer.table.view"),
        ("peer.edl.consumer.epoch = 3", "peer.edl.consumer.epoch"),
        ("del f(x=peer.edl.consumer.epoch).y", "peer.edl.consumer.epoch"),
    ],
)
def test_deep_chain_is_found_inside_other_expressions(source: str, chain: str) -> None:
    assert deep_chains(source) == [f"1: {chain}"]


@pytest.mark.parametrize(
    "source",
    [
        "peer.status.epoch",
        "self.gateway.peer.federation.version",
        "peer.turn(inputs, now)",
        "peer.status.external_view('C').keys().mapping",
        "self.world.nodes['P'].gateway.status.federation.version",
        "peers.edl.forwarder.custody",
        "peer",
    ],
)
def test_short_chain_and_other_names_are_allowed(source: str) -> None:
    assert deep_chains(source) == []
