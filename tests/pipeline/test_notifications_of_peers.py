"""The notification job against peers in memory with the same operations and events."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from qns.d2q.printing import write_readable
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Envelope, Notification, Notify
from qns.federation.document import Federation
from qns.iil.requests import Publish, Subscribe, Unsubscribe
from qns.pipeline.notifications.notification_job import notification_job
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of
from qns.simulation.world import World
from qns.soap.peer_client import write_call

LOOSE = Workload(constrained=0.15, quality_constrained=0.02, sources_given=0.5)
SUBSCRIPTIONS, EVENTS = 12, 40
PUBLISHED_US = 1_700_000_000_123_456


def scenario_of(organisations: int, mapping: str, seed: int, churn: float) -> Scenario:
    hosts = hosts_of(WEATHER, organisations, mapping)
    return Scenario(WEATHER, hosts, mapping, seed, (SUBSCRIPTIONS,), churn, LOOSE)


def world_of(scenario: Scenario, capability: int) -> World:
    """Real peers after all subscriptions, with stable views."""
    world = World(1, Federation.of("weather", WEATHER, scenario.hosts, capability))
    world.start()
    world.run_for(2)
    for name in scenario.organisations:
        for operation in Generator(scenario).operations(name, SUBSCRIPTIONS):
            if operation.subscription is None:
                world.do(name, Unsubscribe("user", operation.id))
            else:
                text = write_readable(operation.subscription, WEATHER)
                world.do(name, Subscribe("user", text, id=operation.id))
    world.run_for(5)
    return world


class Observed:
    """Counts the messages between peers and the deliveries to users."""

    def __init__(self, world: World, since: float) -> None:
        self.sent: Counter[str] = Counter()
        self.tree: Counter[str] = Counter()
        self.delivered: Counter[str] = Counter()
        self.delivered_remote: Counter[str] = Counter()
        children: Counter[tuple[str, str]] = Counter()
        connected: dict[str, set[str]] = defaultdict(set)
        events = set()
        self.most_depth = 0
        for at, sender, to, body in world.traffic:
            for item in body.items if at >= since and isinstance(body, Notify) else ():
                assert isinstance(item, Notification)
                call, _ = write_call(Envelope(sender, 1, (), Notify((item,))))
                self.sent[item.source] += 1
                self.tree.update(sent=1, bytes=len(call), depth_sum=len(item.path))
                self.most_depth = max(self.most_depth, len(item.path))
                children[item.event, sender] += 1
                connected[sender].add(to)
                events.add(item.event)
        self.most_children = max(children.values(), default=0)
        self.connections = [len(each) for each in connected.values()]
        self.multicasts = len(events)
        for record in world.history:
            if record["do"] == "ntfy":
                self.delivered[record["source"]] += 1
                self.delivered_remote[record["source"]] += record["org"] != record["source"]


@pytest.mark.parametrize(
    ("organisations", "mapping", "capability", "churn"),
    [(4, "partial", 1, 0.0), (4, "partial", 2, 0.3), (7, "full", 2, 0.0), (10, "partial", 3, 0.2)],
)
def test_every_count_equals_what_peers_send_and_deliver(
    organisations: int, mapping: str, capability: int, churn: float
) -> None:
    scenario = scenario_of(organisations, mapping, organisations, churn)
    world = world_of(scenario, capability)
    since = world.now
    for event in Generator(scenario).events(EVENTS):
        world.do(event.source, Publish(event._replace(published_us=PUBLISHED_US)))
    world.run_for(10)
    seen = Observed(world, since)
    assert not world.messages["PullGap"]

    tables = notification_job(scenario, (EVENTS,), (capability,), SUBSCRIPTIONS)
    for row in tables["notifications"].to_pylist():
        publisher = row["publisher"]
        assert row["sent"] == seen.sent[publisher]
        assert row["delivered"] == seen.delivered[publisher]
        assert row["delivered_remote"] == seen.delivered_remote[publisher]
    (tree,) = tables["trees"].to_pylist()
    expected: dict[str, Any] = {
        **seen.tree,
        "multicasts": seen.multicasts,
        "most_children": seen.most_children,
        "most_depth": seen.most_depth,
        "connections_sum": sum(seen.connections),
        "most_connections": max(seen.connections),
    }
    assert {name: tree[name] for name in expected} == expected
    assert seen.multicasts > EVENTS // 4
