"""Tests that an absent consumer gets the same events when most of them are only on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import Busy
from qns.iil.requests import AcknowledgeDeliveries, Deliveries, PullDeliveries, Unsubscribe
from qns.peer.tables import EVENTS, OWED
from qns.simulation.world import World
from tests.edl.peers import OWNER, peer_of, publish, subscribe, world_of

LIMITS = {"owed_in_memory": 2, "events_in_memory": 3}

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 12), st.sampled_from([0, 2, 1_000])),
        st.tuples(st.sampled_from(["kill", "start"]), st.sampled_from(["P", "B", "C"])),
        st.tuples(st.just("wait"), st.sampled_from([0.1, 3.0, 20.0])),
    ),
    max_size=14,
)


def delivered(world: World, name: str) -> list[str]:
    """Returns the events that the user of an organisation was notified of, in order."""
    return [each["event"] for each in world.history if each["do"] == "ntfy" and each["org"] == name]


def play(actions: Sequence[tuple[Any, ...]], **tuning: Any) -> World:
    """Plays the actions with a producer P and the consumers B and C, and waits until all rest."""
    world = world_of("P", "B", "C", **tuning)
    for name in ("B", "C"):
        subscribe(world, name)
    world.run_for(2.0)
    published = 0
    for action in actions:
        match action:
            case ("publish", number, available):
                if world.nodes["P"].is_up:
                    ids = [f"e{published + each:03}" for each in range(number)]
                    publish(world, "P", *ids, available=available)
                    published += number
            case ("kill", name):
                world.kill(name)
            case ("start", name):
                world.start(name)
            case ("wait", seconds):
                world.run_for(seconds)
    world.start()
    world.run_for(2_000.0)
    return world


@given(actions=ACTIONS)
def test_consumers_get_the_same_events_whether_rows_are_in_memory_or_on_the_disk(
    actions: list[tuple[Any, ...]],
) -> None:
    limited, unlimited = play(actions, **LIMITS), play(actions)
    for name in ("B", "C"):
        assert delivered(limited, name) == delivered(unlimited, name)
    assert peer_of(limited, "P").status.events_kept == 0
    assert not list(limited.nodes["P"].disk.open().rows(OWED))
    assert not list(limited.nodes["P"].disk.open().rows(EVENTS))


def test_memory_of_the_producer_does_not_grow_with_what_is_owed() -> None:
    world = world_of("P", "B", "C", owed_in_memory=20, events_in_memory=30)
    for name in ("B", "C"):
        subscribe(world, name)
    world.run_for(2.0)
    world.kill("B")
    ids = [f"e{number:04}" for number in range(1_000)]
    for at in range(0, 1_000, 50):
        publish(world, "P", *ids[at : at + 50])
        world.run_for(1.0)
    producer = peer_of(world, "P")
    assert delivered(world, "C") == ids
    assert producer.status.events_kept == 1_000
    assert producer.log.in_memory <= 130
    world.start("B")
    world.run_for(200.0)
    assert delivered(world, "B") == ids
    assert producer.status.events_kept == 0


def test_producer_that_restarts_goes_on_from_the_disk() -> None:
    world = world_of("P", "B", owed_in_memory=5, events_in_memory=5)
    subscribe(world, "B")
    world.run_for(2.0)
    world.kill("B")
    ids = [f"e{number:03}" for number in range(100)]
    publish(world, "P", *ids)
    world.kill("P")
    world.start("P")
    assert peer_of(world, "P").log.in_memory <= 5
    assert peer_of(world, "P").status.events_kept == 100
    world.start("B")
    world.run_for(100.0)
    assert delivered(world, "B") == ids
    assert peer_of(world, "P").status.events_kept == 0


def test_event_that_expires_while_its_producer_is_down_leaves_the_disk() -> None:
    world = world_of("P", "B", events_in_memory=2)
    ids = [f"e{number}" for number in range(10)]
    publish(world, "P", *ids, available=100)
    world.run_for(1.0)
    assert peer_of(world, "P").status.events_kept == 10
    world.kill("P")
    world.run_for(200.0)
    world.start("P")
    assert peer_of(world, "P").status.events_kept == 0


def test_repeated_publication_of_an_event_on_the_disk_is_recognised() -> None:
    world = world_of("P", "B", owed_in_memory=2, events_in_memory=2, publications_remembered=1)
    subscribe(world, "B")
    world.run_for(2.0)
    world.kill("B")
    ids = [f"e{number}" for number in range(10)]
    publish(world, "P", *ids)
    publish(world, "P", *ids)
    world.start("B")
    world.run_for(100.0)
    assert delivered(world, "B") == ids


def test_events_that_a_user_does_not_read_are_only_on_the_disk_and_can_be_read_later() -> None:
    world = world_of("P", "B", events_in_memory=10, bytes_per_call=100_000)
    subscribe(world, "B")
    world.run_for(2.0)
    ids = [f"e{number:03}" for number in range(200)]
    publish(world, "P", *ids)
    world.run_for(5.0)
    log = peer_of(world, "B").log
    assert len(log) == 200
    assert len(list(log)) <= 120
    world.kill("B")
    world.start("B")
    read = world.do("B", PullDeliveries(OWNER, "s", limit=1_000))
    assert isinstance(read, Deliveries)
    assert [each.event for each in read.deliveries] == ids
    world.do("B", AcknowledgeDeliveries(OWNER, "s", 150))
    assert peer_of(world, "B").status.events_kept == 50
    world.do("B", Unsubscribe(OWNER, "s"))
    assert peer_of(world, "B").status.events_kept == 0
    assert not list(world.nodes["B"].disk.open().rows(EVENTS))


def test_dead_consumer_does_not_fill_the_log_so_that_publishing_goes_on() -> None:
    world = world_of("P", "C", most_events=10, **LIMITS)
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    publish(world, "P", *(f"e{number:03}" for number in range(60)))
    assert peer_of(world, "P").edl.producer.streams["C"].number == 60


def test_events_that_are_only_owed_are_no_reason_to_report_a_full_buffer() -> None:
    world = world_of("P", "C", most_events=10, **LIMITS)
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    publish(world, "P", *(f"e{number:03}" for number in range(60)))
    status = peer_of(world, "P").status
    assert status.events_kept == 60
    assert not list(status.full_buffers())
    publish(world, "P", *(f"available{number}" for number in range(10)), available=100)
    (full, _) = next(status.full_buffers())
    assert full.endswith("which is the limit most_events")
    with pytest.raises(Busy):
        publish(world, "P", "rejected")


def test_peer_that_owes_many_events_on_its_disk_still_relays() -> None:
    world = world_of("A", "B", "C", "D", most_events=10, **LIMITS)
    subscribe(world, "C", text="Report from A")
    subscribe(world, "D", text="Report from B")
    world.run_for(2.0)
    world.kill("D")
    publish(world, "B", *(f"b{number:03}" for number in range(60)))
    assert peer_of(world, "B").status.events_kept == 60
    for sender, receiver in (("A", "C"), ("C", "A")):
        world.network.cut(sender, receiver)
    publish(world, "A", "a1")
    world.run_for(40.0)
    relays = [each for each in world.history if each["do"] == "relay" and each["event"] == "a1"]
    assert [(each["org"], each["to"]) for each in relays] == [("B", "C")]
    assert delivered(world, "C") == ["a1"]


def test_event_that_arrives_late_is_available_only_as_long_as_at_its_producer() -> None:
    world = world_of("P", "C", **LIMITS)
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    publish(world, "P", "e1", available=100)
    world.run_for(60.0)
    world.start("C")
    world.run_for(20.0)
    assert delivered(world, "C") == ["e1"]
    at_producer, at_consumer = (peer_of(world, name).log["P", "e1"] for name in ("P", "C"))
    assert at_producer.expires_at <= at_consumer.expires_at < at_producer.expires_at + 2.0
    world.run_for(40.0)  # it has expired, and is kept only for the unread delivery
    subscribe(world, "C", "late")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1"]


def test_owed_bytes_beyond_the_limit_are_dropped_and_declared() -> None:
    world = world_of("P", "C", most_owed_bytes=1_000)
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    ids = [f"e{number}" for number in range(30)]
    publish(world, "P", *ids)
    stream = peer_of(world, "P").edl.producer.streams["C"]
    (size,) = {len(peer_of(world, "P").log["P", id].xml) for id in ids[-2:]}
    kept = 1_000 // size
    assert stream.owed_bytes <= 1_000
    assert stream.owed_events == kept
    (status,) = peer_of(world, "P").status.outbound()
    assert peer_of(world, "P").status.dropped_for(status) == 30 - kept
    world.kill("P")
    world.start("P")
    stream = peer_of(world, "P").edl.producer.streams["C"]
    assert (stream.owed_events, stream.owed_bytes) == (kept, kept * size)
    world.start("C")
    world.run_for(30.0)
    assert delivered(world, "C") == ids[-kept:]
    stream = peer_of(world, "P").edl.producer.streams["C"]
    assert (stream.owed_events, stream.owed_bytes) == (0, 0)


def test_newest_event_is_kept_although_it_is_larger_than_the_limit() -> None:
    world = world_of("P", "C", most_owed_bytes=1)
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    publish(world, "P", "e1", "e2")
    stream = peer_of(world, "P").edl.producer.streams["C"]
    assert [row.event for row in stream.owed.between(1, 2)] == ["e2"]
    world.start("C")
    world.run_for(30.0)
    assert delivered(world, "C")[-1] == "e2"
    assert not peer_of(world, "P").edl.producer.streams["C"].owes
