"""Whole peers with seals: what forwarders and relays pass on arrives, what they forge does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import (
    Envelope,
    GapPulled,
    Gossip,
    Item,
    Notification,
    Notify,
    PullGap,
    RelayAcknowledgement,
    Request,
    Skip,
    Standing,
)
from qns.errors import QnsError
from qns.federation.document import Federation, Organisation
from qns.iil.requests import Publish
from qns.peer.inputs import Received
from qns.simulation.stub_seals import StubSigner, read_stub_certificate, stub_certificate
from qns.simulation.world import World
from tests.edl.peers import cut, delivered, install, peer_of, subscribe, world_of
from tests.resting import comes_to_rest_and_holds

Alter = Callable[[Notification], Item]


def chain_of(*names: str, sealed: bool = True, **tuning: Any) -> World:
    """Returns a world in which the first peer publishes to all others along a chain."""
    world = world_of(*names, capability=1, sealed=sealed, **tuning)
    for name in names[1:]:
        subscribe(world, name)
    world.run_for(3.0)
    return world


def publish(world: World, *ids: str) -> None:
    reader = EventReader(WEATHER)
    for id in ids:
        fields = {"id": id, "class": "Report", "source": "P", "data": {"Region": "Lazio"}}
        world.do("P", Publish(reader.from_fields(fields)))


def forge_at(world: World, forger: str, alter: Alter) -> list[Item]:
    """Makes a peer alter the events of others that it sends; returns the list of forgeries."""
    forged: list[Item] = []

    def tamper(sender: str, _: str, envelope: Envelope) -> Envelope:
        if sender != forger or not isinstance(envelope.body, Notify):
            return envelope
        items: list[Item] = []
        for item in envelope.body.items:
            if isinstance(item, Notification) and item.source != forger:
                forged.append(alter(item))
                items.append(forged[-1])
            else:
                items.append(item)
        return envelope._replace(body=Notify(tuple(items)))

    world.tamper = tamper
    return forged


def with_number(item: Notification, ahead: int) -> Notification:
    return item._replace(entry=item.entry._replace(number=item.entry.number + ahead))


FORGERIES: dict[str, Alter] = {
    "other content": lambda item: item._replace(xml=item.xml.replace(b"Lazio", b"Puglia")),
    "invented event": lambda item: item._replace(event="f", xml=item.xml.replace(b"e1", b"f")),
    "later place": lambda item: item._replace(sequence=item.sequence + 1),
    "next number": lambda item: with_number(item, 1),
    "later epoch": lambda item: item._replace(entry=item.entry._replace(epoch=2**40)),
    "without seal": lambda item: item._replace(seal=b""),
    "without proof": lambda item: item._replace(entry=item.entry._replace(proof=b"")),
}


def refusals(world: World, name: str) -> dict[str, int]:
    """Returns member -> how many of its messages were refused because of their seals."""
    refused = peer_of(world, name).edl.consumer.seals.refusals
    return {sender: each.number for sender, each in refused.items()}


def requests(world: World, kind: type[Request], sender: str = "") -> list[Any]:
    return [
        body
        for _, name, _, body in world.traffic
        if isinstance(body, kind) and name == (sender or name)
    ]


def test_sealed_events_arrive_along_a_chain_of_forwarders() -> None:
    world = chain_of("P", "A", "B", "C")
    publish(world, "e1", "e2", "e3")
    comes_to_rest_and_holds(world)
    for name in ("A", "B", "C"):
        assert delivered(world, name) == ["e1", "e2", "e3"]
        assert not refusals(world, name)
    forwarded = requests(world, Notify, "B")
    assert forwarded
    assert all(item.seal for body in forwarded for item in body.items)


@pytest.mark.parametrize("alter", FORGERIES.values(), ids=FORGERIES)
def test_forgery_of_a_forwarder_is_refused_and_the_genuine_event_arrives(alter: Alter) -> None:
    world = chain_of("P", "A", "B", "C")
    forged = forge_at(world, "A", alter)
    publish(world, "e1", "e2")
    world.run_for(30.0)
    assert forged
    for name in ("A", "B", "C"):
        assert delivered(world, name) == ["e1", "e2"]
    assert set(refusals(world, "B")) == {"A"}
    held = peer_of(world, "B").log["P", "e1"]
    assert b"Lazio" in held.xml


def test_forged_content_is_delivered_if_the_producer_has_no_seal() -> None:
    world = chain_of("P", "A", "B", sealed=False)
    forge_at(world, "A", FORGERIES["other content"])
    publish(world, "e1")
    world.run_for(1.0)
    assert b"Puglia" in peer_of(world, "B").log["P", "e1"].xml


def test_repeated_notification_changes_nothing() -> None:
    world = chain_of("P", "A", "B")
    publish(world, "e1")
    world.run_for(5.0)
    (sent,) = [body for body in requests(world, Notify, "A") if body.items]
    for _ in range(3):
        envelope = Envelope("A", world.federation.version, (), sent)
        world.arrive(world.nodes["B"], Received(envelope), None)
    comes_to_rest_and_holds(world)
    assert delivered(world, "B") == ["e1"]


def test_forwarder_that_crashes_keeps_the_seals_of_what_it_promised() -> None:
    world = chain_of("P", "A", "B")
    world.kill("B")
    publish(world, "e1")
    world.run_for(1.0)
    world.kill("P")
    world.kill("A")
    world.start("A", "B")
    world.run_for(20.0)
    assert delivered(world, "B") == ["e1"]
    assert not refusals(world, "B")


def test_producer_adopts_the_subtree_of_a_dead_forwarder_under_new_seals() -> None:
    world = chain_of("P", "A", "B", "C")
    world.kill("A")
    publish(world, "e1")
    world.run_for(10.0)
    assert delivered(world, "B") == delivered(world, "C") == ["e1"]
    world.start("A")
    comes_to_rest_and_holds(world)
    assert delivered(world, "A") == ["e1"]


def test_grandparent_that_adopts_brings_the_entry_with_its_proof() -> None:
    world = chain_of("P", "A", "B", "C")
    world.kill("B")
    publish(world, "e1")
    world.run_for(3.0)  # longer than A waits for B, and shorter than P waits for C
    assert delivered(world, "C") == ["e1"]
    carriers = {
        item.entry.carriers
        for body in requests(world, Notify, "A")
        for item in body.items
        if item.entry.receiver == "C"
    }
    assert carriers == {("A", "B")}


def test_sealed_event_and_acknowledgement_pass_through_a_relay() -> None:
    world = world_of("P", "A", "C", sealed=True)
    subscribe(world, "C")
    world.run_for(2.0)
    cut(world, "P", "C")
    publish(world, "e1", "e2")
    world.run_for(40.0)
    assert delivered(world, "C") == ["e1", "e2"]
    stream = peer_of(world, "P").edl.producer.streams["C"]
    assert stream.acknowledged == stream.number
    assert all(each.seal for each in requests(world, RelayAcknowledgement))
    assert not refusals(world, "P")


def test_answer_to_a_gap_pull_is_sealed() -> None:
    world = chain_of("P", "A")
    cut(world, "P", "A")
    publish(world, "e1", "e2")
    gateway = world.nodes["P"].gateway
    assert gateway is not None
    pull = PullGap(Standing(1, 1, 1, gateway.status.epoch, 0), 2)
    (answer,) = gateway.run([Received(Envelope("A", 1, (), pull))], world.now).answers
    assert isinstance(answer, Envelope)
    assert isinstance(answer.body, GapPulled)
    assert len(answer.body.items) == 2
    seals = peer_of(world, "A").edl.consumer.seals
    assert all(seals.flaw(world.now, "P", item) is None for item in answer.body.items)
    assert seals.flaw(world.now, "P", without_seal(answer.body.items[0])) is not None


def without_seal(item: Item) -> Item:
    assert isinstance(item, Notification)
    return item._replace(seal=b"")


def test_relay_cannot_acknowledge_what_the_consumer_has_not_got() -> None:
    world = world_of("P", "A", "C", sealed=True)
    subscribe(world, "C")
    world.run_for(2.0)

    def tamper(sender: str, _: str, envelope: Envelope) -> Envelope:
        body = envelope.body
        if sender != "A" or not isinstance(body, RelayAcknowledgement):
            return envelope
        return envelope._replace(body=replace(body, standing=body.standing._replace(last=2)))

    world.tamper = tamper
    cut(world, "P", "C")
    publish(world, "e1", "e2")
    world.run_for(3.0)
    world.kill("C")
    world.run_for(20.0)
    stream = peer_of(world, "P").edl.producer.streams["C"]
    assert stream.acknowledged < 2 or delivered_count(world) == 2
    world.tamper = lambda _sender, _to, envelope: envelope
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1", "e2"]


def delivered_count(world: World) -> int:
    return sum(record["do"] == "ntfy" and record["org"] == "C" for record in world.history)


def test_relay_refuses_an_entry_that_its_producer_has_not_given_to_relays() -> None:
    world = chain_of("P", "A", "B", "C")

    def misroute(sender: str, to: str, envelope: Envelope) -> Envelope:
        if sender != "A" or not isinstance(envelope.body, Notify):
            return envelope
        items = [
            item._replace(entry=item.entry.children[0])
            if isinstance(item, Notification) and item.entry.children
            else item
            for item in envelope.body.items
        ]
        return envelope._replace(body=Notify(tuple(items)))

    world.tamper = misroute
    publish(world, "e1")
    world.run_for(30.0)
    assert refusals(world, "B")["A"]
    assert not peer_of(world, "B").edl.forwarder.custody.parcels
    for name in ("A", "B", "C"):
        assert delivered(world, name) == ["e1"]


def test_invented_skip_of_a_relay_is_refused() -> None:
    world = world_of("P", "A", "C", sealed=True)
    subscribe(world, "C")
    world.run_for(2.0)
    cut(world, "P", "C")

    def tamper(sender: str, to: str, envelope: Envelope) -> Envelope:
        if (sender, to) != ("A", "C") or not isinstance(envelope.body, Notify):
            return envelope
        items = tuple(
            Skip(item.source, item.producer_incarnation, item.entry, item.entry.number, "gone")
            if isinstance(item, Notification)
            else item
            for item in envelope.body.items
        )
        return envelope._replace(body=Notify(items))

    world.tamper = tamper
    publish(world, "e1")
    world.run_for(20.0)
    assert refusals(world, "C")["A"]
    world.tamper = lambda _sender, _to, envelope: envelope
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1"]


def with_seals(document: Federation, name: str, *pems: str) -> Federation:
    return document.with_certificates(name, seals=pems)


def test_seal_certificate_is_changed_without_losing_an_event() -> None:
    world = chain_of("P", "A", "B")
    world.kill("B")
    publish(world, "e1")
    world.run_for(1.0)
    old, new = stub_certificate("P"), stub_certificate("P", 2)
    install(world, with_seals(world.federation, "P", old, new), "P")
    publish(world, "e2")
    sealer = peer_of(world, "P").sealer
    assert sealer is not None
    sealer.signer = StubSigner(read_stub_certificate(new).fingerprint)
    world.run_for(3.0)
    publish(world, "e3")
    install(world, with_seals(world.federation, "P", new), "P")
    world.run_for(3.0)
    world.start("B")  # A still has events for it under the old seal, which is worth nothing now
    comes_to_rest_and_holds(world)
    for name in ("A", "B"):
        assert delivered(world, name) == ["e1", "e2", "e3"]


def test_event_of_an_organisation_that_has_left_is_checked_after_a_restart() -> None:
    world = chain_of("P", "A", "B")
    world.kill("B")
    publish(world, "e1")
    world.run_for(1.0)
    world.kill("P")
    world.absent.add("P")
    install(world, world.federation.without("P"), "A")
    world.start("B")
    world.tamper = lambda sender, _, envelope: (
        envelope._replace(body=Gossip()) if isinstance(envelope.body, Notify) else envelope
    )  # B learns of the document before the event comes
    world.run_for(10.0)
    assert "P" not in peer_of(world, "B").federation
    world.kill("B")
    world.start("B")
    forged = forge_at(world, "A", FORGERIES["other content"])
    world.run_for(20.0)
    assert forged
    assert delivered(world, "B") == []
    assert refusals(world, "B")["A"]
    world.tamper = lambda _sender, _to, envelope: envelope
    world.run_for(20.0)
    assert delivered(world, "B") == ["e1"]
    install(world, world.federation.with_organisation(returning()), "A", "B")
    assert not peer_of(world, "B").edl.consumer.seals.former


def returning() -> Organisation:
    """Returns P as it comes back."""
    return Organisation("P", frozenset({"Report"}), seals=(stub_certificate("P"),))


class BrokenSigner:
    fingerprint = bytes(32)

    def sign(self, message: bytes) -> bytes:
        raise QnsError("the module does not answer")


def test_failing_signer_delays_events_and_loses_none() -> None:
    world = chain_of("P", "A", "B")
    sealer = peer_of(world, "P").sealer
    assert sealer is not None
    signer, sealer.signer = sealer.signer, BrokenSigner()
    publish(world, "e1")
    world.run_for(5.0)
    assert delivered(world, "A") == []
    assert sealer.problem == "the module does not answer"
    sealer.signer = signer
    comes_to_rest_and_holds(world)
    assert delivered(world, "A") == delivered(world, "B") == ["e1"]
    assert not sealer.problem
