"""No call carries more than its share of bytes, and no event is too large to be sent alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Notification, Notify
from qns.federation.document import Federation
from qns.iil.requests import Deliveries, Publish, Read, Subscribe
from qns.simulation.world import TUNING, World
from tests.resting import comes_to_rest_and_holds

MOST = 5_000
HOSTS = dict.fromkeys(("Consumer", "Producer"), ("Report",))


def world_of(**tuning: Any) -> World:
    federation = Federation.of("weather", WEATHER, HOSTS)
    world = World(5, federation, replace(TUNING, bytes_per_call=MOST, **tuning))
    world.start()
    world.do("Consumer", Subscribe("ann", "Report", id="s1"))
    world.run_for(2)
    return world


def publish(world: World, id: str, size: int) -> None:
    told = {"id": id, "class": "Report", "source": "Producer", "data": {"Region": "x" * size}}
    world.do("Producer", Publish(EventReader(WEATHER).from_fields(told)))


def notified(world: World) -> list[list[Notification]]:
    return [
        [item for item in body.items if isinstance(item, Notification)]
        for _, _, _, body in world.traffic
        if isinstance(body, Notify)
    ]


@pytest.mark.parametrize("is_reachable", [True, False], ids=["at once", "sent again"])
def test_a_call_is_cut_where_its_bytes_are_full(is_reachable: bool) -> None:
    world = world_of()
    if not is_reachable:
        world.network.cut("Producer", "Consumer")
    sizes = [1_000, 1_200, 20_000, 300, 300, 4_000, 4_000, 100]
    for nth, size in enumerate(sizes):
        publish(world, f"e{nth}", size)
    if not is_reachable:
        world.run_for(10)
    comes_to_rest_and_holds(world)
    calls = notified(world)
    assert {item.event for items in calls for item in items} == {f"e{n}" for n in range(8)}
    assert any(len(items) > 1 for items in calls)
    for items in calls:
        assert len(items) == 1 or sum(len(item.xml) for item in items) <= MOST


def test_a_user_reads_as_much_as_fits_and_one_event_at_least() -> None:
    world = world_of()
    for nth, size in enumerate([1_000, 1_000, 20_000, 100]):
        publish(world, f"e{nth}", size)
    comes_to_rest_and_holds(world)
    read = []
    after = 0
    while True:
        answer = world.do("Consumer", Read("ann", "s1", after))
        assert isinstance(answer, Deliveries)
        if not answer.deliveries:
            break
        read.append([each.event for each in answer.deliveries])
        after = answer.deliveries[-1].number
    assert read == [["e0", "e1"], ["e2"], ["e3"]]


def test_large_subtrees_count_too() -> None:
    names = [f"C{nth:02}" for nth in range(30)]
    federation = Federation.of("weather", WEATHER, {"P": ("Report",)} | dict.fromkeys(names, ()), 1)
    world = World(5, federation, replace(TUNING, bytes_per_call=40_000))
    world.start()
    for name in names:
        world.do(name, Subscribe("ann", "Report", id="s1"))
    world.run_for(3)
    told = [{"id": f"e{nth}", "class": "Report", "source": "P"} for nth in range(12)]
    for fields in told:
        world.ask("P", Publish(EventReader(WEATHER).from_fields(fields)))
    comes_to_rest_and_holds(world)
    first = [items for items in notified(world) if len(items[0].entry.receivers()) == 30]
    assert {len(items) for items in first} == {3}  # of 30 receivers each, about 12,000 bytes
