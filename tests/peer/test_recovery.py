"""A peer that is recovered from its store has the durable state that it had before the crash."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qns.peer.opening import document_of, identity_of
from qns.peer.recovery import recover
from qns.simulation.faults import FAULTS
from qns.simulation.node import Node, Output
from qns.simulation.scenario import Scenario
from qns.simulation.workload import make_plan
from tests.peer.durable_state import durable_state

EVERY = 9
"""The state is compared after every ninth turn: each comparison reads the whole store."""


def recovered_state(node: Node, now: float) -> dict[str, Any]:
    """Returns the durable state of a second peer that reads the store of a running one."""
    assert node.gateway is not None
    store = node.gateway.store
    identity, document = identity_of(store, node.name), document_of(store)
    assert identity is not None
    assert document is not None
    clock = node.clock(now)
    return durable_state(recover(node.settings, store, identity, document, clock))


def has_early(node: Node) -> bool:
    """True if the peer holds entries back, which is rare and soon over."""
    assert node.gateway is not None
    return any(each.early for each in node.gateway.peer.edl.consumer.streams.values())


@pytest.mark.parametrize("seed", [3, 8, 11, 12])  # with fences, custody and early entries
def test_recovered_peer_has_the_durable_state_of_the_running_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, turns, compared = Node.commit, Counter[str](), Counter[str]()

    def commit_and_compare(node: Node, now: float, number: int) -> Output:
        output = commit(node, now, number)
        turns[node.name] += 1
        is_durable = node.gateway is not None and node.queue.is_idle
        if is_durable and (turns[node.name] % EVERY == 0 or has_early(node)):
            assert node.gateway is not None
            state, recovered = durable_state(node.gateway.peer), recovered_state(node, now)
            for part, value in state.items():
                assert recovered[part] == value, f"{part} of {node.name} at {now}"
            compared.update(part for part, value in state.items() if value)
        return output

    monkeypatch.setattr(Node, "commit", commit_and_compare)
    faults = [fault for fault in FAULTS if fault != "swarm"]
    assert Scenario(make_plan(seed, 6, faults)).run().violations == []
    parts = ("outbound", "inbound", "views held", "own views", "queues", "pending", "held events")
    assert all(compared[part] for part in parts)
