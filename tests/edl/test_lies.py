"""What one member says can hurt itself, not the others."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.merger import Digest
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
    Standing,
)
from qns.edl.soundness import objection
from qns.iil.requests import Publish
from qns.inputs import Answered, Received
from tests.edl.peers import (
    delivered,
    federation,
    lone_gateway,
    notification,
    peer_of,
    say,
    subscribe,
    tell,
    world_of,
)


def test_a_very_deep_subtree_is_refused() -> None:
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


def test_nobody_stands_before_the_first_number() -> None:
    """With -10**15 for -1,000 the turn takes days."""
    gateway = lone_gateway(federation("P", "C"))
    stands = Standing(1, 1, 1, 1, -1_000)
    hello = Hello(1, 1, 0, (), 0, 0, str(Digest()), stands, 0, str(Digest()))
    gateway.run([Received(Envelope("C", 1, (), hello))], 1.0)
    assert gateway.peer.producer.streams["C"].acknowledged == 0


def test_one_consumer_cannot_take_an_event_from_another() -> None:
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
    refusal = Notified((Outcome(False, "no", True),), Standing(1, 1, 1, peer.identity.epoch, 1))
    peer.turn([Answered(to_c.number, Envelope("C", 1, (), refusal))], world.now + 1)
    assert not peer.edl.forwarder.custody.dead_letters  # it has it, by its own words
    peer.turn([], world.now + 100)
    assert 1 in peer.producer.streams["B"].rows


def hostile() -> list[tuple[str, object]]:
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
    "message", [body for _, body in hostile()], ids=[id for id, _ in hostile()]
)
def test_a_number_beyond_the_columns_of_the_store_is_refused(message: object) -> None:
    gateway = lone_gateway(federation("P", "C"), "C")
    gateway.run([Received(Envelope("P", 1, (), message))], 1.0)  # type: ignore[arg-type]


def test_an_event_of_nobody_is_refused_and_nobody_is_told() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    say(world, "P", "C", Notify((notification("Nobody", "e1", Entry("C", 1, 1, 1, 0)),)))
    world.run_for(60.0)
    assert delivered(world, "C") == []
    assert not [to for _, _, to, _ in world.traffic if to == "Nobody"]


def test_reachability_of_strangers_is_not_kept() -> None:
    peer = lone_gateway(federation("P", "C", "D"), "C").peer
    rows = tuple(ReachabilityRow(f"Nobody{n}", 1, 1, ()) for n in range(1_000))
    tell(peer, "P", Gossip(), 1.0, reachability=rows)
    assert {row.organisation for row in peer.edl.membership.rows()} <= {"P", "C", "D"}


def test_a_stranger_gets_no_link() -> None:
    peer = lone_gateway(federation("P", "C"), "C").peer
    for number in range(1_000):
        tell(peer, f"Nobody{number}", Gossip(), 1.0)
    assert peer.edl.forwarder.links.keys() <= {"P"}


def test_no_lie_about_epochs_makes_a_peer_unable_to_speak() -> None:
    world = world_of("A", "B")
    peer = peer_of(world, "A")
    hello = peer_of(world, "B").edl.hello("A")
    for epoch in (2**53 - 1, 2**40, 2**40 - 1):
        tell(peer, "B", replace(hello, held_epoch=epoch), world.now)
        (answer,) = tell(peer, "B", hello, world.now + 1).answers
        assert isinstance(answer, Envelope)
        assert objection(answer) is None
