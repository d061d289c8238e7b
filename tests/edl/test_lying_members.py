"""Tests that false claims of a member about this peer or about others have bounded effects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from qns.edl.claims import CLAIMS_AT_ONCE, PAUSES
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Entry,
    Envelope,
    Fence,
    Gossip,
    Hello,
    Notified,
    Notify,
    Outcome,
    ReachabilityRow,
    RelayAcknowledgement,
    Skip,
    Standing,
    SubChanged,
)
from qns.edl.reachability import Reachability
from qns.edl.validation import MOST_FENCES
from qns.peer.inputs import Received
from qns.peer.outcomes import Incident, IncidentKind
from qns.peer.tables import INBOUND_FENCES
from tests.edl.lone_peer import LonePeer
from tests.edl.peers import federation, notification
from tests.edl.test_adoption import REPORT, publish

# --- claims of later epochs -----------------------------------------------------------------------


def lone_producer(*others: str) -> LonePeer:
    lone = LonePeer("P", federation("P", *(others or ("C", "D"))))
    lone.settle()
    return lone


def claim(lone: LonePeer, member: str, kind: str = "standing") -> int:
    """Lets a member claim that it knows a later epoch; returns the epoch of the peer after that."""
    epoch = lone.peer.identity.epoch
    later = lone.standing_of(member, 0, epoch=epoch + 5)
    if kind == "standing":
        lone.receive(member, Acknowledge(later))
    elif kind == "fences":
        known = lone.standing_of(member, 0, epoch=epoch)
        lone.receive(member, Acknowledge(known._replace(fences=(Fence(epoch + 5, 1),))))
    elif kind == "held":
        lone.receive(member, lone.hello_of(member, held_epoch=epoch + 5))
    elif kind == "hello":
        lone.receive(member, lone.hello_of(member, held_epoch=epoch + 5, standing=later))
    return lone.peer.identity.epoch


@pytest.mark.parametrize("kind", ["standing", "fences", "held", "hello"])
def test_member_that_goes_on_claiming_later_epochs_is_not_believed(kind: str) -> None:
    lone = lone_producer()
    before = lone.peer.identity.epoch
    epochs = {claim(lone, "C", kind) for _ in range(50)} - {before}
    assert len(epochs) == CLAIMS_AT_ONCE
    assert lone.peer.status.disbelieved(lone.now) == ["C"]


def test_claim_that_is_not_believed_changes_no_stream() -> None:
    lone = lone_producer()
    for _ in range(CLAIMS_AT_ONCE):
        claim(lone, "C")
    streams = lone.peer.edl.producer.streams
    before = {name: list(stream.fences) for name, stream in streams.items()}
    claim(lone, "C", "fences")
    assert {name: list(stream.fences) for name, stream in streams.items()} == before


def test_ignored_claim_counts_when_an_epoch_begins_for_another_reason() -> None:
    lone = lone_producer()
    change = ChangeSub(1, 1, 1, None, 1, (REPORT,), (), str(Digest([REPORT])))
    assert isinstance(lone.receive("C", change), SubChanged)
    publish(lone, "e1")
    lone.settle()
    publish(lone, "e2")
    lone.receive("C", Acknowledge(lone.standing_of("C", 2, epoch=lone.peer.identity.epoch)))
    for _ in range(CLAIMS_AT_ONCE):
        claim(lone, "C")
    epoch = lone.peer.identity.epoch
    forgotten = lone.standing_of("C", 0, epoch=epoch)._replace(fences=(Fence(epoch + 1, 1),))
    lone.receive("C", Acknowledge(forgotten))
    assert lone.peer.identity.epoch == epoch  # the claim is ignored
    claim(lone, "D")
    assert lone.peer.edl.producer.streams["C"].fences.newest.first == 1


def test_claims_of_one_member_that_are_not_believed_leave_those_of_another_believed() -> None:
    lone = lone_producer()
    for _ in range(CLAIMS_AT_ONCE + 1):
        before = claim(lone, "C")
    assert claim(lone, "D") > before


def test_claim_of_an_implausible_epoch_does_not_hide_a_true_one() -> None:
    lone = lone_producer()
    before = lone.peer.identity.epoch
    lone.receive("C", lone.hello_of("C", held_epoch=2**53 - 1))
    assert lone.peer.identity.epoch == before
    assert claim(lone, "D") > before


def test_member_is_believed_again_after_a_pause_that_doubles() -> None:
    lone = lone_producer()
    for _ in range(CLAIMS_AT_ONCE):
        before = claim(lone, "C")
    for pauses in (1, 2, 3):
        lone.now += PAUSES.pause_s(pauses) / 2
        assert claim(lone, "C") == before
        lone.now += PAUSES.pause_s(pauses) / 2
        after = claim(lone, "C")
        assert after > before
        before = after


def test_member_whose_claim_was_ignored_is_asked_again_when_the_pause_is_over() -> None:
    lone = lone_producer()
    for _ in range(CLAIMS_AT_ONCE):
        claim(lone, "C")
    lone.settle()
    before = claim(lone, "C")
    lone.settle()
    lone.wait(PAUSES.pause_s(1) / 2)
    assert not isinstance(lone.request("C"), Hello)
    assert lone.last.wake_at <= lone.now + PAUSES.pause_s(1)
    lone.settle()
    lone.wait(PAUSES.pause_s(1))
    assert isinstance(lone.request("C"), Hello)
    later = lone.standing_of("C", 0, epoch=before + 5)
    lone.answer("C", lone.hello_of("C", held_epoch=before, standing=later))
    assert lone.peer.identity.epoch > before
    lone.settle()
    lone.wait(PAUSES.pause_s(2))
    assert not isinstance(lone.request("C"), Hello)


def test_member_that_knew_a_copy_for_half_a_minute_is_believed_within_the_next_one() -> None:
    lone = lone_producer()
    for _ in range(30):  # both peers begin epochs in turn until the copy gives way
        before = claim(lone, "C")
        lone.now += 1.0
    for _ in range(30):
        lone.now += 1.0
        if claim(lone, "C") > before:
            return
    raise AssertionError("what the peer sends is still taken for older than the epoch of its copy")


def test_claim_that_is_not_believed_is_reported_once() -> None:
    lone = lone_producer()
    found: list[Incident] = []
    for _ in range(20):
        claim(lone, "C")
        found += lone.last.outcomes.incidents
    claims = [each.fields["other"] for each in found if each.kind is IncidentKind.CLAIM]
    assert claims == ["C"]


def test_claim_of_a_later_epoch_after_a_rollback_is_accepted_at_once_from_every_member() -> None:
    others = tuple(f"M{number}" for number in range(10))
    lone = lone_producer(*others)
    for member in others:
        before = lone.peer.identity.epoch
        assert claim(lone, member) > before
    assert lone.peer.status.disbelieved(lone.now) == []


def test_claims_in_relayed_standings_count_for_the_member_that_brings_them() -> None:
    names = tuple(f"M{number}" for number in range(20))
    lone = lone_producer("B", *names)
    epochs = set()
    for name in names:
        standing = lone.standing_of(name, 0, epoch=lone.peer.identity.epoch + 5)
        lone.receive("B", RelayAcknowledgement("P", name, standing, (name, "B")))
        epochs.add(lone.peer.identity.epoch)
    assert len(epochs) == CLAIMS_AT_ONCE
    assert lone.peer.status.disbelieved(lone.now) == ["B"]


def test_peer_that_followed_a_claim_is_not_taken_for_a_restored_copy_at_its_next_start() -> None:
    lone = lone_producer()
    claim(lone, "C")
    lone.start()
    assert not lone.gateway.restored
    assert lone.peer.setback is None


# --- invented incarnations ------------------------------------------------------------------------


def test_invented_incarnations_of_a_member_make_no_streams_and_no_early_entries() -> None:
    document = replace(federation("P", "C"), version=50)
    document = replace(
        document,
        organisations={
            **document.organisations,
            "P": replace(document["P"], incarnation=40),
        },
    )
    lone = LonePeer("C", document, {"most_early": 5})
    lone.settle()
    before = set(lone.peer.edl.consumer.streams)
    for incarnation in [*range(1, 40), *range(41, 60)]:
        items = tuple(
            notification("P", f"e{number}-{incarnation}", Entry("C", 1, 1, number, 0))._replace(
                producer_incarnation=incarnation
            )
            for number in (1, 3, 5)
        )
        reply = lone.receive("P", Notify(items))
        # A later one may be true: then the peer has to get the newer document first.
        assert {each.taken for each in reply.outcomes} == {incarnation < 40}
        assert not any(each.permanent for each in reply.outcomes)
    assert set(lone.peer.edl.consumer.streams) == before
    assert lone.peer.status.early_entries == 0
    assert not lone.peer.log


def test_early_entries_of_one_member_are_bounded() -> None:
    lone = LonePeer("C", federation("P", "C"), {"most_early": 5})
    lone.settle()
    items = tuple(
        notification("P", f"e{number}", Entry("C", 1, 1, number, 0)) for number in range(2, 20)
    )
    lone.receive("P", Notify(items))
    assert lone.peer.status.early_entries == 5


# --- dead letters ---------------------------------------------------------------------------------


def test_events_with_two_contents_fill_the_dead_letters_of_a_forwarder_up_to_a_limit() -> None:
    lone = LonePeer("F", federation("P", "F", "C", "D"), {"most_dead_letters": 3})
    lone.settle()
    incidents: list[Incident] = []
    for number in range(1, 11):
        child = Entry("C", 1, 1, number, 0)
        entry = Entry("F", 1, 1, number, 0, (), (child,))
        lone.receive("P", Notify((notification("P", f"e{number}", entry),)))
        lone.answer("C", Notified((Outcome(False, "another event with this id", True),), None))
        incidents += lone.last.outcomes.incidents
    custody = lone.peer.edl.forwarder.custody
    assert [letter.event for letter in custody.dead_letters.values()] == ["e1", "e2", "e3"]
    assert not custody.parcels
    given_up = [each.fields["event"] for each in incidents if each.kind is IncidentKind.DISCARD]
    assert given_up == [f"e{number}" for number in range(4, 11)]
    lone.start()  # the limit counts those in the store too
    lone.settle()
    assert len(lone.peer.edl.forwarder.custody.dead_letters) == 3


def test_dead_letters_of_one_source_leave_room_for_those_of_another() -> None:
    lone = LonePeer("F", federation("P", "Q", "F", "C"), {"most_dead_letters": 1})
    lone.settle()
    for source in ("P", "Q"):
        for number in (1, 2):
            entry = Entry("F", 1, 1, number, 0, (), (Entry("C", 1, 1, number, 0),))
            lone.receive(source, Notify((notification(source, f"e{number}", entry),)))
            lone.answer("C", Notified((Outcome(False, "no", True),), None))
    letters = lone.peer.edl.forwarder.custody.dead_letters.values()
    assert [(letter.source, letter.event) for letter in letters] == [("P", "e1"), ("Q", "e1")]


# --- gossip about others --------------------------------------------------------------------------


def reports(lone: LonePeer, sender: str, *rows: ReachabilityRow) -> None:
    lone.do(Received(Envelope(sender, 1, rows, Gossip())))


def test_member_cannot_speak_for_another_that_is_reached() -> None:
    lone = LonePeer("P", federation("P", "B", "C"))
    lone.settle()
    reachability = lone.peer.edl.reachability
    reports(lone, "C", ReachabilityRow("C", 1, 0, ()))
    reports(lone, "B", ReachabilityRow("C", 2**53 - 1, 2**53 - 1, ("P",)))
    assert reachability.is_connected("C")
    reports(lone, "C", ReachabilityRow("C", 1, 1, ("B",)))
    assert not reachability.reaches("C", "B")


def test_report_of_an_organisation_itself_replaces_whatever_others_said_before() -> None:
    lone = LonePeer("P", federation("P", "B", "C"))
    lone.settle()
    reports(lone, "B", ReachabilityRow("C", 2**53 - 1, 2**53 - 1, ("P",)))
    reports(lone, "C", ReachabilityRow("C", 1, 0, ()))
    assert lone.peer.edl.reachability.is_connected("C")


def test_gossip_counts_while_an_organisation_is_unreachable_and_no_longer() -> None:
    reachability = Reachability("P", 1)
    members = ("P", "B", "C")
    reachability.update("C", [ReachabilityRow("C", 1, 0, ())], members)
    reachability.observe("C", reachable=False)
    reachability.update("B", [ReachabilityRow("C", 1, 1, ("B",))], members)
    assert not reachability.reaches("C", "B")
    reachability.observe("C", reachable=True)
    assert reachability.reaches("C", "B")


def test_repeated_names_in_a_report_are_kept_once() -> None:
    reachability = Reachability("P", 1)
    reachability.update("C", [ReachabilityRow("C", 1, 0, ("B",) * 10_000)], ("P", "B", "C"))
    assert reachability.rows()[0].unreachable == ("B",)


def test_hello_carries_the_report_of_its_sender_although_it_was_sent_before() -> None:
    lone = LonePeer("P", federation("P", "C"))
    lone.settle()
    for _ in range(2):
        envelope = Envelope("C", 1, (), lone.hello_of("C"))
        (reply,) = lone.do(Received(envelope))
        assert [row.organisation for row in reply.reachability] == ["P"]


# --- costs that grow no faster than the message ---------------------------------------------------


def steps_of(do: Callable[[], object]) -> int:
    """Returns how many lines of Python the function executes."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return trace

    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(None)
    return steps


def notify_of_skips(size: int) -> Notify:
    return Notify(
        tuple(Skip("P", 1, Entry("D", 1, 1, 2 * n, 0), 2 * n, "gone") for n in range(1, size))
    )


def notify_of_early(size: int) -> Notify:
    return Notify(
        tuple(notification("P", f"e{n}", Entry("C", 1, 1, n, 0)) for n in range(size, 1, -1))
    )


def notify_in_turns(size: int) -> Notify:
    """Ordinary items and duplicates in turns."""
    items = [notification("P", f"e{n}", Entry("C", 1, 1, n, 0)) for n in range(1, size)]
    return Notify(tuple(each for item in items for each in (item, item)))


def hello_of_fences(size: int) -> Hello:
    fences = tuple(Fence(n + 1, n) for n in range(1, size))
    standing = Standing(1, 1, 1, size, 0, fences)
    return Hello(1, size, 0, fences, 0, 0, "", standing, 0, "")


@pytest.mark.parametrize(
    "make", [notify_of_skips, notify_of_early, notify_in_turns, hello_of_fences]
)
def test_cost_of_a_message_grows_no_faster_than_its_size(make: Callable[[int], Any]) -> None:
    def cost(size: int) -> int:
        lone = LonePeer("C", federation("P", "C", "D"))
        lone.settle()
        message = make(size)
        return steps_of(lambda: lone.receive("P", message))

    assert cost(800) < 6 * cost(200)


def test_relayed_skips_are_compared_without_a_search() -> None:
    lone = LonePeer("F", federation("P", "F", "D"))
    lone.settle()
    lone.peer.edl.reachability.update("D", [ReachabilityRow("D", 1, 1, ("P",))], ("P", "F", "D"))
    message = notify_of_skips(400)
    first = steps_of(lambda: lone.receive("P", message))
    assert len(lone.request("D").items) > 300
    assert steps_of(lambda: lone.receive("P", message)) < 2 * first


def test_fences_of_a_lying_producer_are_bounded() -> None:
    lone = LonePeer("C", federation("P", "C"))
    lone.settle()
    for start in range(0, 5_000, 1_000):
        fences = tuple(Fence(start + n + 2, 10 * (start + n + 2)) for n in range(1_000))
        hello = replace(lone.hello_of("P"), epoch=start + 2_000, fences=fences)
        lone.receive("P", hello)
    stream = lone.peer.edl.consumer.current("P")
    assert len(stream.fences) <= MOST_FENCES
    assert len(list(lone.store.rows(INBOUND_FENCES))) <= MOST_FENCES
