"""A skip and the answer to a pull account for exactly the numbers that are missing."""

from __future__ import annotations

import pytest

from qns.edl.messages import (
    Entry,
    Fence,
    GapPulled,
    Notification,
    Notified,
    Notify,
    Outcome,
    PullGap,
    Skip,
)
from qns.iil.requests import PullDeliveries, Subscribe
from qns.peer.outcomes import IncidentKind
from qns.peer.turn import Turn
from tests.edl.lone_peer import TAKEN, LonePeer
from tests.edl.peers import federation, notification
from tests.edl.test_adoption import producer_of, publish


def entry(number: int, *, epoch: int = 1, fences: tuple[Fence, ...] = ()) -> Entry:
    return Entry("C", 1, epoch, number, 0, fences)


def skip(first: int, last: int, *, epoch: int = 1) -> Skip:
    return Skip("P", 1, entry(first, epoch=epoch), last, "no longer kept")


@pytest.fixture
def consumer() -> LonePeer:
    """The peer C, which has accepted the numbers 1 and 2 of P."""
    lone = LonePeer("C", federation("P", "C"))
    lone.settle()
    lone.do(Subscribe("user", "Report", id="s"))
    lone.settle()
    for number in (1, 2):
        lone.receive("P", Notify((notification("P", f"e{number}", entry(number)),)))
    return lone


def last_number(consumer: LonePeer) -> int:
    return consumer.peer.edl.consumer.standing("P").last


def outcome(consumer: LonePeer, item: Notification | Skip) -> Outcome:
    reply = consumer.receive("P", Notify((item,)))
    assert isinstance(reply, Notified)
    return reply.outcomes[0]


def test_skip_of_the_next_numbers_is_accepted_and_reported(consumer: LonePeer) -> None:
    assert outcome(consumer, skip(3, 5)) == TAKEN
    assert last_number(consumer) == 5
    (incident,) = consumer.last.outcomes.incidents
    assert incident.kind is IncidentKind.SKIP
    assert (incident.fields["first"], incident.fields["last"]) == (3, 5)


def test_skip_that_begins_after_a_missing_number_changes_nothing(consumer: LonePeer) -> None:
    outcome(consumer, skip(4, 5))
    assert last_number(consumer) == 2
    assert not consumer.last.outcomes.incidents


def test_repeated_skip_changes_nothing(consumer: LonePeer) -> None:
    outcome(consumer, skip(3, 5))
    outcome(consumer, skip(3, 4))
    assert last_number(consumer) == 5
    assert not consumer.last.outcomes.incidents


def test_skip_of_an_epoch_that_a_restore_has_undone_changes_nothing(consumer: LonePeer) -> None:
    fenced = notification("P", "f3", entry(3, epoch=2, fences=(Fence(2, 3),)))
    assert outcome(consumer, fenced) == TAKEN
    assert last_number(consumer) == 3
    assert outcome(consumer, skip(4, 9)) == TAKEN
    assert last_number(consumer) == 3


def test_skip_passes_the_early_entries_within_it_and_takes_the_next(consumer: LonePeer) -> None:
    for number in (5, 7):
        outcome(consumer, notification("P", f"e{number}", entry(number)))
    outcome(consumer, skip(3, 6))
    assert last_number(consumer) == 7
    (found,) = consumer.do(PullDeliveries("user", "s"))
    assert [each.event for each in found.deliveries] == ["e1", "e2", "e7"]
    assert ("P", "e5") not in consumer.peer.log


def test_other_event_under_a_known_id_is_rejected_for_good(consumer: LonePeer) -> None:
    other = notification("P", "e1", entry(3))
    other = other._replace(xml=other.xml.replace(b"<data/>", b"<data></data>"))
    found = outcome(consumer, other)
    assert not found.taken
    assert found.permanent
    assert last_number(consumer) == 2


def test_known_event_under_a_second_number_is_delivered_once(consumer: LonePeer) -> None:
    assert outcome(consumer, notification("P", "e1", entry(3))) == TAKEN
    assert last_number(consumer) == 3
    (found,) = consumer.do(PullDeliveries("user", "s"))
    assert [each.event for each in found.deliveries] == ["e1", "e2"]


def test_event_for_a_later_incarnation_of_the_consumer_is_not_taken_yet(
    consumer: LonePeer,
) -> None:
    found = outcome(consumer, notification("P", "e3", Entry("C", 7, 1, 1, 0)))
    assert not found.taken
    assert not found.permanent
    assert ("P", "e3") not in consumer.peer.log


@pytest.mark.parametrize(
    ("named", "source"), [("e3", "P"), ("x", "C")], ids=["another id", "another source"]
)
def test_notification_that_carries_another_event_is_rejected_for_good(
    consumer: LonePeer, named: str, source: str
) -> None:
    carried = notification(source, "x", entry(3)).xml
    item = notification("P", named, entry(3))._replace(xml=carried)
    found = outcome(consumer, item)
    assert not found.taken
    assert found.permanent
    assert last_number(consumer) == 2


# --- the producer's answers -----------------------------------------------------------------------


def pulled(producer: LonePeer, last: int, upto: int) -> list[tuple[str, int, int]]:
    """Returns the kind, the first and the last number of each item that answers a pull of C."""
    reply = producer.receive("C", PullGap(producer.standing_of("C", last), upto))
    assert isinstance(reply, GapPulled)
    return [
        ("skip", item.first.number, item.last)
        if isinstance(item, Skip)
        else ("event", item.entry.number, item.entry.number)
        for item in reply.items
    ]


def test_pull_is_answered_with_events_and_with_one_skip_for_each_hole() -> None:
    lone = producer_of("C")
    for number in range(1, 7):
        publish(lone, f"e{number}")
    stream = lone.peer.edl.producer.streams["C"]
    for row in list(stream.owed.between(2, 4)):
        stream.drop(Turn(lone.now), row, lone.peer.log)
    assert pulled(lone, 0, 6) == [
        ("event", 1, 1),
        ("skip", 2, 4),
        ("event", 5, 5),
        ("event", 6, 6),
    ]


def test_pull_beyond_the_stream_is_answered_up_to_its_last_number() -> None:
    lone = producer_of("C")
    publish(lone)
    assert pulled(lone, 0, 9) == [("event", 1, 1)]


def test_answer_to_a_pull_that_is_too_large_ends_before_the_first_event_without_room() -> None:
    lone = producer_of("C")
    sizes = {"e1": 10, "e2": 3_000, "e3": 10}
    for id, size in sizes.items():
        publish(lone, id, data={"Station": "x" * size})
    assert pulled(lone, 0, 3) == [("event", 1, 1)]
    assert pulled(lone, 1, 3) == [("event", 2, 2)]
