"""Simulated peers with real seals and root keys that keep evidence, for the tests of evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from qns.evidence.evidence import Evidence
from qns.evidence.gathering import gather
from qns.federation.document import Federation
from qns.federation.new_certificate import ALGORITHMS, NewCertificate, new_certificate
from qns.federation.roots import Anchor
from qns.federation.seal_keys import FileSigner, read_seal_key
from qns.simulation.world import TUNING, World
from tests.edl.peers import federation, install, publish, subscribe
from tests.federation.signing import anchor_of, root_set, sign

KEEP_S = 30 * 86_400.0
ROOT_KEYS = (1, 2)
FOR_EVER = datetime(2100, 1, 1, tzinfo=UTC)


@cache
def seal_of(name: str, number: int = 1, algorithm: str = "ed25519") -> NewCertificate:
    """Returns a seal of an organisation that is valid from 1970 on, always the same."""
    return new_certificate(name, float(number), algorithm=algorithm, is_tls=False)


def signed_document(*names: str, algorithm: str = "ed25519", with_roots: bool = True) -> Federation:
    """Returns the first version of a federation whose members have seals."""
    document = federation(*names, capability=1)
    for name in names:
        document = with_seals(document, name, seal_of(name, 1, algorithm))
    document = replace(document, version=1)
    if not with_roots:
        return document
    document = replace(document, roots=(root_set(1, 2, 1, 2, 3),), expires=FOR_EVER)
    return sign(document, *ROOT_KEYS)


def with_seals(document: Federation, name: str, *seals: NewCertificate) -> Federation:
    return document.with_certificates(name, seals=[each.certificate for each in seals])


def anchor(document: Federation) -> Anchor:
    return anchor_of(replace(document, roots=document.roots[:1]))


def world_with_evidence(
    document: Federation,
    keepers: Iterable[str] = (),
    *,
    now: float = 0.0,
    seals: Mapping[str, NewCertificate] | None = None,
) -> World:
    """Returns a world whose peers have started; all but the first subscribe to everything.

    These also keep evidence, unless `keepers` names others. `seals` has other keys than `seal_of`.
    """
    world = World(1, document, TUNING, now=now)
    _, *others = world.nodes
    for name in world.nodes:
        use_seal(world, name, seals[name] if seals else _seal_in(document, name))
    for name in keepers or others:
        settings(world, name, keep_evidence_s=KEEP_S)
    world.start()
    world.run_for(1.0)
    for name in others:
        subscribe(world, name)
    world.run_for(3.0)
    return world


def _seal_in(document: Federation, name: str) -> NewCertificate:
    """Returns the seal that the document names, with its key."""
    made = (seal_of(name, 1, algorithm) for algorithm in ALGORITHMS)
    return next(each for each in made if each.certificate in document[name].seals)


def settings(world: World, name: str, **changes: Any) -> None:
    """Changes settings of a peer; they count from its next start on."""
    node = world.nodes[name]
    node.settings = replace(node.settings, **changes)


def use_seal(world: World, name: str, seal: NewCertificate) -> None:
    """Makes a peer seal with another key, at once."""
    signer = FileSigner.read(seal.certificate, seal.key)
    settings(world, name, signer=signer, read_certificate=read_seal_key)
    gateway = world.nodes[name].gateway
    if gateway is not None and gateway.peer.sealer is not None:
        gateway.peer.sealer.signer = signer


def put_in_force(world: World, document: Federation, *, by: str) -> Federation:
    """Signs the next version of the document and gives it to one peer."""
    if document.roots:
        document = sign(replace(document, signatures=()), *ROOT_KEYS)
    install(world, document, by)
    world.run_for(5.0)
    return document


def evidence_at(world: World, name: str, event: str, source: str = "") -> Evidence:
    gateway = world.nodes[name].gateway
    assert gateway is not None
    return gather(gateway.store, event, source)


def evidence_of(event: str = "e1", *, document: Federation | None = None) -> Evidence:
    """Returns the evidence of an event that P has sent to A and through A to B, at B."""
    world = world_with_evidence(document or signed_document("P", "A", "B"))
    publish(world, "P", event)
    world.run_for(5.0)
    return evidence_at(world, "B", event)
