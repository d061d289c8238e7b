"""Peers with signed documents: what they take, how it spreads, and what happens when it expires."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.cbr.index import DictionaryIndex
from qns.edl.messages import Done, Fault, FetchDocument, Gossip, OfferDocument
from qns.errors import Busy, FederationError, QnsError
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument
from qns.peer.gateway import Gateway
from qns.peer.recovery import Settings
from qns.peer.tuning import Tuning
from qns.simulation.world import TUNING, World
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore
from tests.edl.peers import (
    deliver_request,
    delivered,
    federation,
    install,
    peer_of,
    publish,
    subscribe,
)
from tests.federation.signing import anchor_of, at, root_set, rooted, sign

ROOTS = root_set(1, 2, 1, 2, 3)
PLAIN = federation("P", "F", "Z")
SIGNED = sign(rooted(PLAIN, ROOTS, 1000.0), 1, 2)
ANCHOR = anchor_of(SIGNED)


def opened(
    document: Federation,
    store: MemoryStore | None = None,
    lineage: MemoryLineage | None = None,
    *,
    now: float = 0.0,
    has_anchor: bool = True,
) -> Gateway:
    return Gateway.open(
        Settings("P", TUNING, DictionaryIndex, anchor=ANCHOR if has_anchor else None),
        store or MemoryStore(),
        lineage or MemoryLineage(),
        document=write_federation(document),
        nonce="1",
        now=now,
    )


def signed_world(*names: str, expires_s: float = 1000.0, grace_s: float = 100.0) -> World:
    document = sign(rooted(federation(*names), ROOTS, expires_s), 1, 2)
    world = World(1, document, replace(TUNING, document_grace_s=grace_s))
    for node in world.nodes.values():
        node.settings = replace(node.settings, anchor=anchor_of(document))
    world.start()
    world.run_for(1.0)
    return world


def versions(world: World) -> set[int]:
    return {peer_of(world, name).federation.version for name in world.nodes}


# --- what a peer takes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "now"), [(PLAIN, 0.0), (sign(rooted(PLAIN, ROOTS), 1), 0.0), (SIGNED, 1000.0)]
)
def test_first_document_is_refused_unless_signed_and_fresh(
    document: Federation, now: float
) -> None:
    store = MemoryStore()
    with pytest.raises(FederationError):
        opened(document, store, now=now)
    with pytest.raises(FederationError):  # and nothing was kept
        opened(document, store, now=now)
    assert opened(SIGNED, store).peer.federation == SIGNED


def test_unsigned_document_in_the_store_is_refused_at_the_start_with_an_anchor() -> None:
    store, lineage = MemoryStore(), MemoryLineage()
    opened(PLAIN, store, lineage, has_anchor=False)
    with pytest.raises(FederationError, match="in the store: version 1 of weather is not signed"):
        opened(PLAIN, store, lineage)
    later = sign(replace(SIGNED.without("Z"), signatures=()), 2, 3)
    assert opened(later, store, lineage).peer.federation.version == 2


def test_expired_document_in_the_store_does_not_prevent_the_start() -> None:
    store, lineage = MemoryStore(), MemoryLineage()
    opened(SIGNED, store, lineage)
    gateway = opened(SIGNED, store, lineage, now=1e9)
    assert gateway.peer.edl.dialogue.is_closed


def test_refused_document_changes_nothing() -> None:
    gateway = opened(SIGNED)
    for bad in (PLAIN.without("Z"), sign(SIGNED.without("Z"), 1), SIGNED.without("Z")):
        for sender in ("F", "a stranger"):
            offer = OfferDocument(write_federation(bad))
            reply = deliver_request(gateway.peer, sender, offer, 0.0).answers[0]
            assert isinstance(reply.body, Fault)  # type: ignore[union-attr]
            assert reply.body.permanent  # type: ignore[union-attr]
        (answer,) = gateway.run([InstallDocument(write_federation(bad))], 0.0).answers
        assert isinstance(answer, FederationError)
    assert gateway.peer.federation == SIGNED


def test_signed_document_is_taken_from_a_stranger() -> None:
    gateway = opened(SIGNED)
    offer = OfferDocument(write_federation(sign(SIGNED.without("Z"), 1, 3)))
    reply = deliver_request(gateway.peer, "a stranger", offer, 0.0).answers[0]
    assert reply.body == Done()  # type: ignore[union-attr]
    assert gateway.peer.federation.version == 2


def test_claims_of_strangers_are_not_kept() -> None:
    world = signed_world("P", "F", "Z")
    peer = peer_of(world, "P")
    hello = peer.edl.dialogue.hello("F")
    for number in range(100):
        for body in (hello, Gossip(), FetchDocument()):
            effects = deliver_request(peer, f"S{number}", body, world.now, document=2**52)
            (reply,) = effects.answers
            assert isinstance(reply.body, Fault)  # type: ignore[union-attr]
            assert reply.reachability == ()  # type: ignore[union-attr]
            assert not effects.sends
    assert set(peer.edl.forwarder.links) <= {"F", "Z"}
    assert set(peer.edl.reachability._sent) <= {"F", "Z"}
    assert peer.status.newest_document == 1
    assert not any(name.startswith("S") for row in peer.edl.reachability.rows() for name in row[:1])


# --- how it spreads -------------------------------------------------------------------------------


def test_signed_document_spreads_from_one_peer_to_fifty() -> None:
    names = [f"M{number:02}" for number in range(50)]
    world = signed_world(*names)
    install(world, sign(world.federation.hosting("M07", []), 2, 3), "M00")
    began = world.now
    while versions(world) != {2}:
        world.run_for(0.1)
        assert world.now - began < 5.0
    assert world.now - began < 1.0


def test_rotation_reaches_a_peer_that_missed_several() -> None:
    world = signed_world("P", "F", "Z")
    world.kill("Z")
    document = world.federation.with_roots(root_set(2, 1, 4), at(1000))
    document = sign(document, 1, 2, 4)
    document = sign(document.with_roots(root_set(3, 1, 5), at(1000)), 4, 5)
    install(world, document, "P")
    world.run_for(5.0)
    world.start("Z")
    world.run_for(15.0)
    assert versions(world) == {3}
    forged = replace(sign(SIGNED.without("Z"), 1, 2), version=9)
    with pytest.raises(QnsError, match="goes back to root set 1"):
        world.do("Z", InstallDocument(write_federation(forged)))


# --- expiry ---------------------------------------------------------------------------------------


def test_peer_works_during_the_grace_and_is_closed_after_it() -> None:
    world = signed_world("P", "F", "Z", expires_s=20.0, grace_s=10.0)
    subscribe(world, "F")
    world.run_until(25.0)
    publish(world, "P", "e1")
    world.run_until(29.0)
    assert delivered(world, "F") == ["e1"]
    publish(world, "P", "e2")
    world.run_until(31.0)
    for ask in (lambda: publish(world, "P", "e3"), lambda: subscribe(world, "F", "t")):
        with pytest.raises(Busy, match="expired at 1970-01-01T00:00:20Z, and the grace is over"):
            ask()
    assert delivered(world, "F") == ["e1", "e2"]  # users may read what they have


def test_closed_peer_answers_messages_with_a_fault_that_is_retried() -> None:
    world = signed_world("P", "F", "Z", expires_s=20.0, grace_s=10.0)
    world.run_until(31.0)
    peer = peer_of(world, "P")
    hello = peer_of(world, "F").edl.dialogue.hello("P")
    (reply,) = deliver_request(peer, "F", hello, world.now).answers
    assert isinstance(reply.body, Fault)  # type: ignore[union-attr]
    assert not reply.body.permanent  # type: ignore[union-attr]
    (reply,) = deliver_request(peer, "F", FetchDocument(), world.now).answers
    assert not isinstance(reply.body, Fault)  # type: ignore[union-attr]


def test_closed_peers_are_quiet_and_lose_nothing_that_is_owed() -> None:
    world = signed_world("P", "F", "Z", expires_s=20.0, grace_s=10.0)
    subscribe(world, "F")
    world.run_for(1.0)
    world.kill("F")
    publish(world, "P", "e1")
    world.run_until(31.0)
    world.start("F")
    before = world.messages.total()
    world.run_until(91.0)
    assert world.messages.total() - before < 60  # gossip, and no loop of retries
    assert delivered(world, "F") == []
    install(world, sign(world.federation.expiring(at(1e6)), 1, 3), "Z")
    world.run_for(30.0)
    assert versions(world) == {2}
    assert delivered(world, "F") == ["e1"]
    publish(world, "P", "e2")
    world.run_for(5.0)
    assert delivered(world, "F") == ["e1", "e2"]


def test_default_grace_is_a_week() -> None:
    assert Tuning().document_grace_s == 7 * 24 * 3600
