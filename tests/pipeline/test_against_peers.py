"""Counts of the pipeline against real peers: SOAP messages and rows of a federation."""

from __future__ import annotations

from collections import Counter

import pytest

from qns.d2q.printing import write_readable
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.edl.messages import ChangeSub
from qns.federation.document import Federation
from qns.iil.requests import Subscribe, Unsubscribe
from qns.pipeline.workload.generator import Generator, Operation
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of
from qns.simulation.world import World
from tests.pipeline.merging import merge

Counts = dict[tuple[object, object], list[object]]

DENSE = Workload(constrained=0.3, quality_constrained=0.1, values=3, sources_given=0.4, only=0.3)

SCENARIOS = [
    Scenario(WEATHER, hosts_of(WEATHER, 5, "partial"), "partial", 11, (20, 45), 0.3, DENSE),
    Scenario(WEATHER, hosts_of(WEATHER, 4, "full"), "full", 12, (40,), 0.5, DENSE),
    Scenario(AGENCIES, hosts_of(AGENCIES, 3, "partial"), "partial", 13, (60,), 0.0, DENSE),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: f"{one.schema.name}-{one.mapping}")
def test_messages_and_external_merge_tables_equal_those_of_peers(scenario: Scenario) -> None:
    world = World(1, Federation.of("generated", scenario.schema, scenario.hosts))
    world.start()
    world.run_for(2)
    since = world.now
    generator = Generator(scenario)
    operations = {
        name: list(generator.operations(name, scenario.subscriptions))
        for name in scenario.organisations
    }
    for arrived in range(1, scenario.subscriptions + 1):
        # Each organisation makes its next step; views are sent after every step.
        steps = [
            [each for each in operations[name] if each.arrived == arrived] for name in operations
        ]
        for nth in range(max(map(len, steps))):
            for name, some in zip(operations, steps, strict=True):
                if nth < len(some):
                    world.do(name, _request(scenario, some[nth]))
            world.run_for(1)
        if arrived in scenario.checkpoints:
            assert _observed(world, since, scenario) == _computed(scenario, arrived)


def _request(scenario: Scenario, step: Operation) -> Subscribe | Unsubscribe:
    if step.subscription is None:
        return Unsubscribe("user", step.id)
    return Subscribe("user", write_readable(step.subscription, scenario.schema), id=step.id)


def _observed(world: World, since: float, scenario: Scenario) -> Counts:
    """(consumer, producer) -> changeSub messages, rows in the producer's External Merge Table."""
    sent = Counter(
        (sender, to)
        for at, sender, to, body in world.traffic
        if at >= since and isinstance(body, ChangeSub)
    )
    found: Counts = {}
    for consumer in scenario.organisations:
        for producer in scenario.organisations:
            if consumer != producer:
                gateway = world.nodes[producer].gateway
                assert gateway is not None
                rows = gateway.peer.edl.producer.table.view(consumer)
                found[consumer, producer] = [sent[consumer, producer], len(rows)]
    return found


def _computed(scenario: Scenario, arrived: int) -> Counts:
    return {
        (row["organisation"], row["producer"]): [row["messages_both"], row["rows_both"]]
        for name in scenario.organisations
        for row in merge(scenario, name, cuts=(7, 15))
        if row["arrived"] == arrived
    }
