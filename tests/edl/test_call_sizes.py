"""A call or a pull stays within its byte limit; one event may exceed it if it goes alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Notification, Notify
from qns.federation.document import Federation
from qns.iil.requests import Deliveries, Publish, PullDeliveries, Subscribe
from qns.simulation.world import TUNING, World
from tests.resting import comes_to_rest_and_holds

BYTE_LIMIT = 5_000
HOSTS = dict.fromkeys(("Consumer", "Producer"), ("Report",))


def world_of(**tuning: Any) -> World:
    federation = Federation.of("weather", WEATHER, HOSTS)
    world = World(5, federation, replace(TUNING, bytes_per_call=BYTE_LIMIT, **tuning))
    world.start()
    world.do("Consumer", Subscribe("ann", "Report", id="s1"))
    world.run_for(2)
    return world


def publish(world: World, id: str, size: int) -> None:
    fields = {"id": id, "class": "Report", "source": "Producer", "data": {"Region": "x" * size}}
    world.do("Producer", Publish(EventReader(WEATHER).from_fields(fields)))


def notify_calls(world: World) -> list[list[Notification]]:
    """Returns the notifications of every Notify call."""
    return [
        [item for item in body.items if isinstance(item, Notification)]
        for _, _, _, body in world.traffic
        if isinstance(body, Notify)
    ]


@pytest.mark.parametrize("is_reachable", [True, False], ids=["first attempt", "after a partition"])
def test_notify_call_stays_within_its_byte_limit(is_reachable: bool) -> None:
    world = world_of()
    if not is_reachable:
        world.network.cut("Producer", "Consumer")
    sizes = [1_000, 1_200, 20_000, 300, 300, 4_000, 4_000, 100]
    for nth, size in enumerate(sizes):
        publish(world, f"e{nth}", size)
    if not is_reachable:
        world.run_for(10)
    comes_to_rest_and_holds(world)
    calls = notify_calls(world)
    assert {item.event for items in calls for item in items} == {f"e{n}" for n in range(8)}
    assert any(len(items) > 1 for items in calls)
    for items in calls:
        assert len(items) == 1 or sum(len(item.xml) for item in items) <= BYTE_LIMIT


def test_pull_returns_events_within_the_byte_limit_and_at_least_one() -> None:
    world = world_of()
    for nth, size in enumerate([1_000, 1_000, 20_000, 100]):
        publish(world, f"e{nth}", size)
    comes_to_rest_and_holds(world)
    read = []
    after = 0
    while True:
        answer = world.do("Consumer", PullDeliveries("ann", "s1", after))
        assert isinstance(answer, Deliveries)
        if not answer.deliveries:
            break
        read.append([each.event for each in answer.deliveries])
        after = answer.deliveries[-1].number
    assert read == [["e0", "e1"], ["e2"], ["e3"]]


def test_subtrees_count_towards_the_byte_limit_of_a_call() -> None:
    names = [f"C{nth:02}" for nth in range(30)]
    federation = Federation.of("weather", WEATHER, {"P": ("Report",)} | dict.fromkeys(names, ()), 1)
    world = World(5, federation, replace(TUNING, bytes_per_call=40_000))
    world.start()
    for name in names:
        world.do(name, Subscribe("ann", "Report", id="s1"))
    world.run_for(3)
    for nth in range(12):
        fields = {"id": f"e{nth}", "class": "Report", "source": "P"}
        world.ask("P", Publish(EventReader(WEATHER).from_fields(fields)))
    comes_to_rest_and_holds(world)
    first = [items for items in notify_calls(world) if len(items[0].entry.receivers()) == 30]
    assert {len(items) for items in first} == {3}  # 30 receivers each: about 12,000 bytes
