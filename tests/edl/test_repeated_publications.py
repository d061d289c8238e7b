"""A factory that publishes an event again after its peer was put back does not deliver it twice.

The producer has forgotten the publication and numbers it anew. A consumer that is still running
recognises it, also if the event has left its log.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Entry, Notify
from qns.history.judge import judge
from qns.iil.requests import AcknowledgeDeliveries, Publish, Subscribe, Unsubscribe
from qns.peer.lineage import EPOCH_SCATTER
from qns.peer.past_events import content_of
from qns.simulation.node import Backup
from qns.simulation.world import TUNING, World
from tests.edl.peers import (
    OWNER,
    cut,
    federation,
    notification,
    peer_of,
    publish,
    send,
    subscribe,
)

LOST = [f"e{number}" for number in range(5)]


def world_with_a_snapshot(*names: str, **tuning: Any) -> tuple[World, Backup]:
    """Returns a world in which C subscribes to the events of P, and a snapshot of P."""
    world = World(
        1, federation("P", "C", *names), replace(TUNING, **tuning), epoch_scatter=EPOCH_SCATTER
    )
    world.start()
    world.run_for(1.0)
    subscribe(world, "C")
    world.run_for(5.0)
    publish(world, "P", "e")
    world.run_for(5.0)
    return world, world.snapshot("P")


def acknowledge(world: World, id: str = "s", upto: int = 1_000) -> None:
    """Makes the events leave the log of C."""
    world.do("C", AcknowledgeDeliveries(OWNER, id, upto))
    world.run_for(1.0)


def notified(world: World, id: str = "s") -> list[str]:
    """Returns the events of which a subscription of C was notified."""
    records = [each for each in world.history if each["do"] == "ntfy" and each["org"] == "C"]
    return [each["event"] for each in records if each["sub"] == id]


def violations(world: World) -> list[str]:
    verdict = judge([*world.history, {"t": world.now, "do": "calm"}])
    return [each.explain() for each in verdict.violations]


def publish_and_put_back(
    world: World, snapshot: Backup, *, read: bool = True, ids: tuple[str, ...] = ("s",)
) -> None:
    """Publishes events at P that C takes and reads; then P forgets them."""
    publish(world, "P", *LOST)
    world.run_for(5.0)
    assert notified(world) == ["e", *LOST]
    if read:
        for id in ids:
            acknowledge(world, id)
        assert len(peer_of(world, "C").log) == 0
    world.put_back("P", snapshot)
    world.run_for(5.0)


@pytest.mark.parametrize("read", [True, False])
def test_repeated_event_is_not_delivered_to_users_who_had_it(read: bool) -> None:
    world, snapshot = world_with_a_snapshot()
    publish_and_put_back(world, snapshot, read=read)
    publish(world, "P", *LOST, "new")
    world.run_for(30.0)
    assert notified(world) == ["e", *LOST, "new"]
    stream = peer_of(world, "C").edl.consumer.current("P")
    assert stream.last == 2 + len(LOST), "the stream advances"
    assert peer_of(world, "P").edl.producer.streams["C"].acknowledged == stream.last
    assert not peer_of(world, "P").edl.forwarder.custody.dead_letters
    assert violations(world) == []


@pytest.mark.parametrize("read", [True, False])
def test_repeated_event_is_delivered_to_users_who_subscribed_since(read: bool) -> None:
    world, snapshot = world_with_a_snapshot()
    publish_and_put_back(world, snapshot, read=read)
    subscribe(world, "C", "later")
    world.run_for(5.0)
    publish(world, "P", *LOST)
    world.run_for(30.0)
    assert notified(world) == ["e", *LOST]
    assert notified(world, "later") == LOST
    assert violations(world) == []


def test_repeated_event_is_delivered_to_a_group_only_if_it_has_not_had_it() -> None:
    world, snapshot = world_with_a_snapshot()
    world.do("C", Subscribe(OWNER, "Report", id="old", group="had"))
    world.run_for(5.0)
    publish_and_put_back(world, snapshot, ids=("s", "old"))
    for id, group in (("new", "had"), ("first", "fresh")):
        world.do("C", Subscribe(OWNER, "Report", id=id, group=group))
    world.run_for(5.0)
    publish(world, "P", *LOST)
    world.run_for(30.0)
    assert notified(world, "old") == LOST
    assert notified(world, "new") == []
    assert notified(world, "first") == LOST


def test_late_subscriber_does_not_get_a_repeated_event_that_is_still_available_again() -> None:
    world, snapshot = world_with_a_snapshot()
    publish(world, "P", "e0", available=1_000)
    world.run_for(5.0)
    subscribe(world, "C", "later")
    world.run_for(5.0)
    world.put_back("P", snapshot)
    world.run_for(5.0)
    publish(world, "P", "e0", "new", available=1_000)
    world.run_for(30.0)
    assert notified(world) == ["e", "e0", "new"]
    assert notified(world, "later") == ["e0", "new"]


def test_repeated_event_keeps_the_order_of_publication() -> None:
    world, snapshot = world_with_a_snapshot()
    publish_and_put_back(world, snapshot)
    subscribe(world, "C", "later")
    world.run_for(5.0)
    cut(world, "P", "C")
    repeated = ["new", "e0", "newer", "e1"]
    publish(world, "P", *repeated)
    world.network.heal()
    world.run_for(60.0)
    assert notified(world, "later") == repeated
    assert notified(world) == ["e", *LOST, "new", "newer"]
    assert violations(world) == []


def test_repeated_event_that_was_early_does_not_overtake_others() -> None:
    world, snapshot = world_with_a_snapshot()
    publish_and_put_back(world, snapshot)
    subscribe(world, "C", "later")
    world.run_for(5.0)
    stream = peer_of(world, "C").edl.consumer.current("P")
    first, second, third = (
        notification(
            "P", id, Entry("C", 1, stream.epoch, stream.last + place, stream.epoch)
        )._replace(epoch=stream.epoch, sequence=place)
        for place, id in enumerate(["first", "second", "e0"], start=1)
    )
    for items in ((second, third), (first,)):
        send(world, "P", "C", Notify(items))
        world.run_for(0.01)
    assert notified(world, "later") == ["first", "second", "e0"]
    assert notified(world) == ["e", *LOST, "first", "second"]


def test_other_event_with_the_same_id_is_delivered() -> None:
    world, snapshot = world_with_a_snapshot()
    publish_and_put_back(world, snapshot)
    fields = {"id": "e1", "class": "Report", "source": "P", "data": {"Region": "north"}}
    world.do("P", Publish(EventReader(WEATHER).from_fields(fields)))
    world.run_for(30.0)
    assert notified(world) == ["e", *LOST, "e1"]


def test_event_is_recognised_when_it_comes_early() -> None:
    world, snapshot = world_with_a_snapshot("D")
    subscribe(world, "D")
    world.run_for(5.0)
    publish_and_put_back(world, snapshot)
    cut(world, "P", "C")
    publish(world, "P", "e0", "e1")
    world.run_for(1.0)
    world.network.heal()
    publish(world, "P", "e2", "new")
    world.run_for(60.0)
    assert notified(world) == ["e", *LOST, "new"]


def test_consumer_that_started_again_delivers_a_repeated_event_again() -> None:
    world, snapshot = world_with_a_snapshot()
    publish_and_put_back(world, snapshot)
    world.kill("C")
    world.start("C")
    world.run_for(5.0)
    publish(world, "P", "e0")
    world.run_for(30.0)
    assert notified(world) == ["e", *LOST, "e0"], "its memory does not survive: a declared bound"


def test_consumer_that_started_again_delivers_a_repeated_event_only_to_those_without_it() -> None:
    world, snapshot = world_with_a_snapshot()
    publish(world, "P", *LOST)
    world.run_for(5.0)
    world.kill("C")  # nobody has read, so that it keeps the events
    world.start("C")
    subscribe(world, "C", "later")
    world.run_for(5.0)
    world.put_back("P", snapshot)
    world.run_for(5.0)
    publish(world, "P", *LOST)
    world.run_for(30.0)
    assert notified(world) == ["e", *LOST]
    assert notified(world, "later") == list(LOST)


@pytest.mark.parametrize("read", [True, False])
def test_event_that_a_restored_producer_only_sends_again_reaches_no_later_subscriber(
    read: bool,
) -> None:
    world, _ = world_with_a_snapshot()
    world.network.cut("C", "P")
    world.kill("P")
    world.start("P")
    publish(world, "P", "old")
    world.run_for(1.0)
    world.back_up("P")  # it knows neither that C has the event, nor that C knows the epoch
    world.network.heal()
    world.run_for(20.0)
    if read:
        acknowledge(world)
    subscribe(world, "C", "later")
    world.run_for(5.0)
    publish(world, "P", "new")
    world.run_for(5.0)
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(30.0)
    sent_again = [each for each in world.history if each["do"] == "take"][-1]
    assert sent_again["event"] == "old"
    assert notified(world, "later") == ["new"]
    assert notified(world) == ["e", "old", "new"]
    assert violations(world) == []


def test_only_the_newest_events_of_a_producer_are_remembered() -> None:
    world, snapshot = world_with_a_snapshot(events_remembered=2)
    publish_and_put_back(world, snapshot)
    publish(world, "P", "e3", "e4", "e2")
    world.run_for(30.0)
    assert notified(world) == ["e", *LOST, "e2"]


def test_event_that_a_producer_forgot_without_going_back_counts_as_new() -> None:
    world, _ = world_with_a_snapshot(publications_remembered=1)
    publish(world, "P", "e0", "e1")
    world.run_for(5.0)
    acknowledge(world)
    publish(world, "P", "e0")
    world.run_for(5.0)
    assert notified(world) == ["e", "e0", "e1", "e0"]


# --- contents -------------------------------------------------------------------------------------

EVENT = b'<event id="e1" class="Report" source="P" published="%s">\n<data>%s</data></event>'


def test_time_of_publication_is_no_part_of_the_content() -> None:
    assert content_of(EVENT % (b"2024", b"x")) == content_of(EVENT % (b"2025", b"x"))
    assert content_of(EVENT % (b"2024", b"x")) != content_of(EVENT % (b"2024", b"y"))
    bare = EVENT.replace(b' published="%s"', b"")
    assert content_of(EVENT % (b"2024", b"x")) == content_of(bare % b"x")


def test_text_that_looks_like_a_time_of_publication_is_a_part_of_the_content() -> None:
    one, other = (
        b'<event id="e1">\n<data>a published="%s" b</data></event>' % each for each in (b"x", b"y")
    )
    assert content_of(one) != content_of(other)


@pytest.mark.parametrize("available", [0, 3])
def test_event_sent_again_is_not_delivered_again_by_a_consumer_that_has_started_again(
    available: object,
) -> None:
    world, _ = world_with_a_snapshot()
    cut(world, "P", "C")
    publish(world, "P", *LOST, available=available)
    snapshot = world.snapshot("P")
    world.network.heal()
    world.run_for(10.0)
    acknowledge(world)
    publish(world, "P", "forgotten")
    world.run_for(5.0)
    acknowledge(world)
    for name in ("P", "P", "P", "P", "P", "C"):  # C then knows a later epoch than P begins next
        world.kill(name)
        world.start(name)
        world.run_for(5.0)
    world.put_back("P", snapshot)
    world.run_for(10.0)
    assert any(each["do"] == "rewind" and each["first"] == 2 for each in world.history)
    publish(world, "P", "new")
    world.run_for(30.0)
    assert notified(world) == ["e", *LOST, "forgotten", "new"]
    assert violations(world) == []


def test_late_subscriber_gets_an_old_event_under_a_number_that_another_one_had() -> None:
    world, _ = world_with_a_snapshot()
    world.do("C", Unsubscribe(OWNER, "s"))
    world.run_for(5.0)
    publish(world, "P", "old", available=1_000)
    snapshot = world.snapshot("P")
    subscribe(world, "C", "narrow", "Report where Region = 'north'")
    world.run_for(5.0)
    publish(world, "P", "e1", "e2")
    world.run_for(5.0)
    world.put_back("P", snapshot)
    world.run_for(5.0)
    subscribe(world, "C", "wide")
    world.run_for(30.0)
    assert notified(world, "wide") == ["old"]
    assert violations(world) == []
