"""Wrong or hostile messages of one member harm neither the receiver nor other members."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import (
    ChangeSub,
    Entry,
    Envelope,
    Fault,
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
)
from qns.edl.validation import validate_envelope
from qns.iil.requests import Publish
from qns.peer.inputs import Answered, Effects, Received
from tests.edl.peers import (
    deliver_request,
    delivered,
    federation,
    lone_gateway,
    notification,
    peer_of,
    send,
    subscribe,
    world_of,
)


def assert_rejected_for_good(effects: Effects) -> None:
    """Checks that the only answer rejects a notification for good."""
    (answer,) = effects.answers
    assert isinstance(answer, Envelope)
    assert isinstance(answer.body, Notified)
    (outcome,) = answer.body.outcomes
    assert not outcome.taken
    assert outcome.permanent


def test_notification_with_a_very_deep_subtree_gets_a_fault() -> None:
    gateway = lone_gateway(federation("P", "C", "D"), "C")
    entry = Entry("D", 1, 1, 1, 0)
    for _ in range(5_000):
        entry = Entry("D", 1, 1, 1, 0, (), (entry,))
    item = notification("P", "e1", entry._replace(receiver="C"))
    effects = gateway.run([Received(Envelope("P", 1, (), Notify((item,))))], 1.0)
    (reply,) = effects.answers
    assert isinstance(reply, Envelope)
    assert isinstance(reply.body, Fault)
    assert "levels" in reply.body.reason


def test_negative_standing_counts_as_nothing_acknowledged() -> None:
    """If it were believed, the turn would loop over all numbers from there to 0."""
    gateway = lone_gateway(federation("P", "C"))
    standing = Standing(1, 1, 1, 1, -1_000)
    hello = Hello(1, 1, 0, (), 0, 0, str(Digest()), standing, 0, str(Digest()))
    gateway.run([Received(Envelope("C", 1, (), hello))], 1.0)
    assert gateway.peer.edl.producer.streams["C"].acknowledged == 0


def test_rejection_by_one_consumer_keeps_the_event_for_another() -> None:
    world = world_of("P", "B", "C")
    subscribe(world, "B")
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("B")
    world.kill("C")
    peer = peer_of(world, "P")
    fields = {"id": "e1", "class": "Report", "source": "P", "available": 5}
    _, effects = peer.turn([Publish(EventReader(WEATHER).from_fields(fields))], world.now)
    (to_c,) = (each for each in effects.sends if each.to == "C")
    rejection = Notified((Outcome(False, "no", True),), Standing(1, 1, 1, peer.identity.epoch, 1))
    peer.turn([Answered(to_c.number, Envelope("C", 1, (), rejection))], world.now + 1)
    assert not peer.edl.forwarder.custody.dead_letters  # its standing says that it has the event
    peer.turn([], world.now + 100)
    assert peer.edl.producer.streams["B"].owed.is_in_memory(1)


def hostile_messages() -> list[tuple[str, object]]:
    big = 2**63
    entry = Entry("C", 1, 1, 1, 0)
    return [
        ("number", Notify((notification("P", "e1", entry._replace(number=big)),))),
        ("epoch", Notify((notification("P", "e1", entry._replace(epoch=big)),))),
        (
            "fence",
            Notify(
                (notification("P", "e1", entry._replace(epoch=9, fences=(Fence(9, -big - 1),))),)
            ),
        ),
        ("remaining", Notify((notification("P", "e1", entry)._replace(remaining_s=nan),))),
        (
            "sequence",
            Notify((notification("P", "e1", entry._replace(number=2))._replace(sequence=big),)),
        ),
        ("version", ChangeSub(1, 1, 9, None, big, (), (), str(Digest()))),
        (
            "standing",
            Hello(1, 1, 0, (), 0, 0, str(Digest()), Standing(1, 1, 1, big, 0), 0, str(Digest())),
        ),
        (
            "hello",
            Hello(1, big, 0, (), 0, 0, str(Digest()), Standing(1, 1, 1, 1, 0), 0, str(Digest())),
        ),
    ]


@pytest.mark.parametrize(
    "message", [body for _, body in hostile_messages()], ids=[id for id, _ in hostile_messages()]
)
def test_message_with_a_number_beyond_the_store_columns_gets_a_permanent_fault(
    message: object,
) -> None:
    gateway = lone_gateway(federation("P", "C"), "C")
    effects = gateway.run([Received(Envelope("P", 1, (), message))], 1.0)  # type: ignore[arg-type]
    (answer,) = effects.answers
    assert isinstance(answer, Envelope)
    assert isinstance(answer.body, Fault)
    assert answer.body.permanent
    assert effects.records == []


def test_event_of_an_unknown_source_is_neither_delivered_nor_answered_to_the_source() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    send(world, "P", "C", Notify((notification("Nobody", "e1", Entry("C", 1, 1, 1, 0)),)))
    world.run_for(60.0)
    assert delivered(world, "C") == []
    assert not [to for _, _, to, _ in world.traffic if to == "Nobody"]


def test_peer_ignores_reachability_rows_of_non_members() -> None:
    peer = lone_gateway(federation("P", "C", "D"), "C").peer
    rows = tuple(ReachabilityRow(f"Nobody{n}", 1, 1, ()) for n in range(1_000))
    deliver_request(peer, "P", Gossip(), 1.0, reachability=rows)
    assert {row.organisation for row in peer.edl.reachability.rows()} <= {"P", "C", "D"}


def test_peer_creates_no_link_to_a_non_member() -> None:
    peer = lone_gateway(federation("P", "C"), "C").peer
    for number in range(1_000):
        deliver_request(peer, f"Nobody{number}", Gossip(), 1.0)
    assert peer.edl.forwarder.links.keys() <= {"P"}


def test_peer_still_sends_valid_envelopes_after_a_false_claim_about_its_epoch() -> None:
    world = world_of("A", "B")
    peer = peer_of(world, "A")
    hello = peer_of(world, "B").edl.dialogue.hello("A")
    for epoch in (2**53 - 1, 2**40, 2**40 - 1):
        deliver_request(peer, "B", replace(hello, held_epoch=epoch), world.now)
        (answer,) = deliver_request(peer, "B", hello, world.now + 1).answers
        assert isinstance(answer, Envelope)
        assert validate_envelope(answer) is None


def test_relayed_acknowledgement_that_has_not_come_this_way_changes_nothing() -> None:
    gateway = lone_gateway(federation("P", "B", "C"))
    standing = Standing(1, 1, 1, 1, 5)
    for path in ((), ("C",), ("B",), ("C", "P", "B")):
        body = RelayAcknowledgement("P", "C", standing, path)
        effects = gateway.run([Received(Envelope("B", 1, (), body))], 1.0)
        (answer,) = effects.answers
        assert isinstance(answer, Envelope)
        assert isinstance(answer.body, Fault)
        assert answer.body.permanent
    assert gateway.peer.edl.producer.streams["C"].consumer_epoch == 0


@pytest.mark.parametrize("path", [("P", "C"), ("P", "B", "D"), ("D",), ()])
def test_notification_for_another_receiver_is_rejected_if_it_goes_in_a_circle(
    path: tuple[str, ...],
) -> None:
    gateway = lone_gateway(federation("P", "B", "C", "D"), "B")
    item = notification("P", "e1", Entry("C", 1, 1, 1, 0))._replace(path=path)
    sender = path[-1] if path else "P"
    effects = gateway.run([Received(Envelope(sender, 1, (), Notify((item,))))], 1.0)
    assert_rejected_for_good(effects)
    assert not gateway.peer.log
    assert not gateway.peer.edl.forwarder.custody


def test_skip_through_another_peer_is_rejected_while_its_producer_is_reachable() -> None:
    gateway = lone_gateway(federation("P", "B", "C"), "C")
    skip = Skip("P", 1, Entry("C", 1, 1, 1, 0), 3, "no longer kept")
    effects = gateway.run([Received(Envelope("B", 1, (), Notify((skip,))))], 1.0)
    assert_rejected_for_good(effects)


@pytest.mark.parametrize(("producer", "consumer"), [("X", "C"), ("D", "X")])
def test_relayed_acknowledgement_between_strangers_is_not_kept(
    producer: str, consumer: str
) -> None:
    gateway = lone_gateway(federation("P", "B", "C", "D"))
    body = RelayAcknowledgement(producer, consumer, Standing(1, 1, 1, 1, 5), (consumer, "B"))
    effects = gateway.run([Received(Envelope("B", 1, (), body))], 1.0)
    (answer,) = effects.answers
    assert isinstance(answer, Envelope)
    assert isinstance(answer.body, Fault)
    links = gateway.peer.edl.forwarder.links
    assert "X" not in links
    assert not any(link.standings for link in links.values())
