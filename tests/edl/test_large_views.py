"""Large views are read in slices, and views that are too large are refused with a reason."""

from __future__ import annotations

from itertools import count

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.edl import view_reader
from qns.edl.merge_subscriptions_table import Digest, ViewState
from qns.edl.messages import ChangeSub, Envelope, Fault, Gossip, Notify, SubChanged
from qns.iil.interpreter import interpret
from qns.iil.requests import Publish, Subscribe, Unsubscribe
from qns.peer.inputs import Received
from tests.edl.lone_peer import LonePeer
from tests.edl.peers import federation, subscribe, world_of


def element(number: int) -> str:
    text = f'Report where Station = "s{number}"'
    return write_subscription(interpret(text, WEATHER), WEATHER).decode()


def publication(source: str, station: str) -> Publish:
    fields = {"id": "e1", "class": "Report", "source": source, "data": {"Station": station}}
    return Publish(EventReader(WEATHER).from_fields(fields))


def change_of(*texts: str, version: int = 1) -> ChangeSub:
    return ChangeSub(1, 1, 1, None, version, texts, (), str(Digest(texts)))


@pytest.fixture
def lone() -> LonePeer:
    """A producer that reads about two elements in one turn."""
    slice_characters = 2 * len(element(1))
    lone = LonePeer("P", federation("P", "C"), {"most_view_elements": 20}, slice_characters)
    lone.settle()
    return lone


def test_large_view_is_read_over_several_turns_and_takes_effect_as_a_whole(lone: LonePeer) -> None:
    change = change_of(*map(element, range(10)))
    table = lone.peer.edl.producer.table
    reply = lone.receive("C", change)
    assert isinstance(reply, Fault)
    assert not reply.permanent
    turns = 0
    while table.reader.is_reading:
        assert not table.view("C")
        assert lone.last.wake_at <= lone.now + view_reader.PAUSE_S
        lone.wait(view_reader.PAUSE_S)
        turns += 1
    assert 3 <= turns <= 5
    assert isinstance(lone.request("C"), Gossip)  # so that the consumer repeats the change soon
    assert isinstance(lone.receive("C", change), SubChanged)
    assert len(table.view("C")) == 10
    assert lone.last.wake_at > lone.now


def test_other_requests_are_served_while_a_large_view_is_read(lone: LonePeer) -> None:
    lone.receive("C", change_of(element(1)))
    lone.receive("C", change_of(*map(element, range(10)), version=2))
    lone.do(publication("P", "s1"))
    assert isinstance(lone.request("C"), Notify)


def test_busy_peer_reads_no_slice_before_the_pause_is_over(lone: LonePeer) -> None:
    """Each request of others makes a turn: not each turn reads a slice."""
    lone.receive("C", change_of(*map(element, range(10))))
    unread = len(lone.peer.edl.producer.table.reader._unread["C"])
    for _ in range(20):
        lone.wait(view_reader.PAUSE_S / 100)
    assert len(lone.peer.edl.producer.table.reader._unread["C"]) == unread


def test_reading_a_view_is_charged_to_its_consumer(lone: LonePeer) -> None:
    ticks = count()
    lone.peer.stopwatch = lambda: float(next(ticks))
    lone.receive("C", change_of(*map(element, range(10))))
    assert lone.last.costs["C"] > 0
    lone.wait(view_reader.PAUSE_S)
    assert lone.last.costs == {"C": 1.0}


def test_change_of_a_view_that_is_being_read_replaces_it(lone: LonePeer) -> None:
    lone.receive("C", change_of(*map(element, range(10))))
    newer = change_of(element(1), version=2)
    assert isinstance(lone.receive("C", newer), SubChanged)
    assert not lone.peer.edl.producer.table.reader.is_reading


def test_invalid_element_of_a_large_view_is_refused_for_good(lone: LonePeer) -> None:
    change = change_of(*map(element, range(6)), "<nonsense/>")
    reply = lone.receive("C", change)
    for _ in range(10):
        lone.wait(view_reader.PAUSE_S)
        reply = lone.receive("C", change)
    assert isinstance(reply, Fault)
    assert reply.permanent
    assert not lone.peer.edl.producer.table.view("C")


def test_view_with_too_many_elements_is_refused_and_leaves_the_one_in_force(lone: LonePeer) -> None:
    lone.receive("C", change_of(element(1)))
    reply = lone.receive("C", change_of(*map(element, range(21)), version=2))
    assert isinstance(reply, Fault)
    assert reply.permanent
    assert "21 elements" in reply.reason
    assert "most_view_elements" in reply.reason
    assert list(lone.peer.edl.producer.table.view("C")) == [element(1)]


def test_view_with_too_many_terms_is_refused_although_it_has_few_elements() -> None:
    lone = LonePeer("P", federation("P", "C"), {"most_view_terms": 10})
    lone.settle()
    table = lone.peer.edl.producer.table
    stations = ", ".join(f'"s{number}"' for number in range(20))
    costly = f"Report where Station in {{{stations}}}"
    large = write_subscription(interpret(costly, WEATHER), WEATHER).decode()
    assert isinstance(lone.receive("C", change_of(element(1))), SubChanged)
    reply = lone.receive("C", change_of(element(1), large, version=2))
    assert isinstance(reply, Fault)
    assert reply.permanent
    assert "most_view_terms" in reply.reason
    assert list(table.view("C")) == [element(1)]
    four = [element(number) for number in range(2, 6)]
    assert isinstance(lone.receive("C", change_of(*four, version=3)), SubChanged)
    assert table.terms["C"] == 8
    lone.start()
    assert lone.peer.edl.producer.table.terms["C"] == 8


def test_consumer_of_a_refused_view_names_the_reason_and_still_sends_other_requests() -> None:
    lone = LonePeer("C", federation("P", "C"))
    lone.settle()
    lone.do(Subscribe("anna", "Report", id="S"))
    assert isinstance(lone.request("P"), ChangeSub)
    lone.answer("P", Fault("too many elements", permanent=True))
    (link,) = lone.peer.status.links()
    assert link.change_refusal == "too many elements"
    (pending,) = lone.peer.status.pending()
    assert pending.producer == "P"
    theirs = change_of(write_subscription(interpret("Report", WEATHER), WEATHER).decode())
    lone.do(Received(Envelope("P", 1, (), theirs)))
    lone.do(publication("C", "s1"))
    assert isinstance(lone.request("P"), Notify)
    lone.settle()
    lone.wait(lone.last.wake_at - lone.now)
    assert isinstance(lone.request("P"), ChangeSub)
    lone.settle()
    (link,) = lone.peer.status.links()
    assert not link.change_refusal


def test_view_that_was_refused_is_in_force_when_it_is_small_enough() -> None:
    world = world_of("P", "C", most_view_elements=1)
    for number in (1, 2):
        subscribe(world, "C", f"s{number}", f'Report where Station = "s{number}"')
    world.run_for(30.0)
    status = world.nodes["C"].gateway.status  # type: ignore[union-attr]
    (link,) = status.links()
    assert "most_view_elements" in link.change_refusal
    world.do("C", Unsubscribe("user", "s1"))
    world.run_for(120.0)
    (link,) = status.links()
    assert not link.change_refusal
    assert [view.state for view in status.views()] == [ViewState.IN_FORCE]
