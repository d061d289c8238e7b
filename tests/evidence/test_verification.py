"""Verification: genuine evidence is proved, and whatever is altered breaks a link that is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.edl.seal_texts import signed_text
from qns.errors import DocumentError
from qns.evidence.evidence import Evidence
from qns.evidence.evidence_file import read_evidence, write_evidence
from qns.evidence.verification import (
    ANCHOR,
    CERTIFICATE,
    DOCUMENT,
    EVENT,
    GRACE_S,
    LEAF,
    ROOT_KEYS,
    SIGNATURE,
    TIMESTAMP,
    Outcome,
    Trust,
    Verdict,
    verify,
)
from qns.federation.certificate import read_certificate
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.seal_keys import FileSigner
from tests.edl.peers import publish
from tests.evidence.stage import (
    anchor,
    evidence_at,
    evidence_of,
    put_in_force,
    seal_of,
    signed_document,
    use_seal,
    with_seals,
    world_with_evidence,
)
from tests.federation.signing import anchor_of, root_set, sign


@cache
def document() -> Federation:
    return signed_document("P", "A", "B")


@cache
def genuine() -> Evidence:
    return evidence_of(document=document())


def outcomes(verdict: Verdict) -> dict[str, Outcome]:
    return {link.name: link.outcome for link in verdict.links}


def broken(evidence: Evidence, trust: Trust | None = None) -> set[str]:
    verdict = verify(evidence, trust or Trust(anchor(document())))
    assert not verdict.is_proved
    return {link.name for link in verdict.broken}


@pytest.mark.parametrize("algorithm", ["ed25519", "ecdsa-p256", "rsa-3072"])
def test_evidence_of_a_forwarded_event_is_proved_up_to_the_anchor(algorithm: str) -> None:
    document = signed_document("P", "A", "B", algorithm=algorithm)
    evidence = evidence_of(document=document)
    assert evidence.leaf.entry.carriers == ("A",)
    verdict = verify(read_evidence(write_evidence(evidence)), Trust(anchor(document)))
    assert verdict.is_proved
    assert {name for name, outcome in outcomes(verdict).items() if outcome is Outcome.HOLDS} == {
        *(EVENT, LEAF, SIGNATURE, CERTIFICATE, DOCUMENT, ROOT_KEYS, ANCHOR)
    }
    assert outcomes(verdict)[TIMESTAMP] is Outcome.OPEN


# --- alterations ----------------------------------------------------------------------------------

_LEAF_FIELDS = (
    *("source", "joined", "epoch", "sequence", "event", "sha256", "receiver", "receiver_joined"),
    *("number_epoch", "number", "confirmed", "fences", "carriers"),
)
PARTS: dict[tuple[str, ...], set[str]] = {
    ("event", "text"): {EVENT},
    **{("leaf", field): {LEAF} for field in _LEAF_FIELDS},
    ("proof", "index"): {LEAF},
    ("proof", "hashes"): {LEAF},
    ("root",): {LEAF, SIGNATURE},
    ("seal", "certificate_sha256"): {CERTIFICATE},
    ("seal", "signature"): {SIGNATURE},
    ("certificate",): {DOCUMENT},
    ("document",): {ROOT_KEYS},
}
"""Part of the file -> the links that break at least if it is altered."""


def part_of(fields: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        fields = fields[name]
    return fields


def with_part(evidence: Evidence, path: tuple[str, ...], value: Any) -> Evidence | None:
    """Returns the evidence with another value in one part; None if its reader refuses the file."""
    fields = json.loads(write_evidence(evidence))
    part_of(fields, path[:-1])[path[-1]] = value
    try:
        return read_evidence(json.dumps(fields).encode())
    except DocumentError:
        return None


def test_every_part_of_the_file_is_bound_by_a_link_or_named_here() -> None:
    def paths(value: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        if not isinstance(value, dict):
            return [path]
        return [each for name, inner in value.items() for each in paths(inner, (*path, name))]

    found = set(paths(json.loads(write_evidence(genuine())), ()))
    # `accepted` is what the receiver says, and there is no timestamp here.
    assert found - PARTS.keys() == {("format",), ("version",), ("accepted",), ("timestamp",)}
    assert PARTS.keys() <= found


ALTERED: dict[tuple[str, ...], Any] = {
    ("event", "text"): lambda text: text.replace("<data/>", "<data></data>"),
    ("proof", "hashes"): lambda hashes: ["0" * 64, *hashes[1:]],
    ("leaf", "fences"): lambda _: [{"epoch": 1, "first": 1}],
    ("leaf", "carriers"): lambda _: ["P"],
    ("leaf", "sha256"): lambda _: "0" * 64,
    ("root",): lambda _: "0" * 64,
    ("seal", "certificate_sha256"): lambda _: "0" * 64,
    ("seal", "signature"): lambda _: "A" * 86 + "==",
    ("certificate",): lambda _: seal_of("A").certificate,
    ("document",): lambda text: text.replace("<schema", "<schema "),
}
"""Part of the file -> an alteration that its reader does not notice."""


@pytest.mark.parametrize("path", PARTS, ids="-".join)
def test_alteration_of_each_part_that_the_reader_accepts_breaks_its_link(
    path: tuple[str, ...],
) -> None:
    value = part_of(json.loads(write_evidence(genuine())), path)
    usual = (lambda number: number + 1) if isinstance(value, int) else (lambda text: text + "x")
    altered = ALTERED.get(path, usual)(value)
    assert altered != value
    evidence = with_part(genuine(), path, altered)
    assert evidence is not None
    assert broken(evidence) >= PARTS[path]


@given(st.sampled_from(sorted(PARTS)), st.data())
def test_altered_character_in_any_part_breaks_its_link(
    path: tuple[str, ...], data: st.DataObject
) -> None:
    value = part_of(json.loads(write_evidence(genuine())), path)
    altered = data.draw(_other(value))
    evidence = with_part(genuine(), path, altered)
    if evidence is not None:
        assert broken(evidence) >= PARTS[path]


def _other(value: Any) -> st.SearchStrategy[Any]:
    """Returns a strategy of values that differ a little from this one."""
    if isinstance(value, int):
        return st.integers(0, 2**64 - 1).filter(lambda other: other != value)
    if isinstance(value, list):
        if not value:
            return st.just([{"epoch": 1, "first": 1}])
        rest = _other(value[0]).map(lambda other: [other, *value[1:]])
        return rest | st.just([]) | st.just([*value, value[0]])
    places = st.integers(0, len(value) - 1)
    characters = st.characters(codec="utf-8")
    other = st.builds(lambda at, new: value[:at] + new + value[at + 1 :], places, characters)
    shorter = places.map(lambda at: value[:at] + value[at + 1 :])
    return (other | shorter).filter(lambda text: text != value)


@given(st.data())
def test_altered_byte_of_the_file_is_never_proved_unless_nothing_else_is_read(
    data: st.DataObject,
) -> None:
    content = bytearray(write_evidence(genuine()))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    try:
        evidence = read_evidence(bytes(content))
    except DocumentError:
        return
    same = replace(evidence, accepted_at=genuine().accepted_at) == genuine()
    assert same or not verify(evidence, Trust(anchor(document()))).is_proved


def test_event_of_another_id_breaks_the_first_link_even_if_its_digest_fits() -> None:
    xml = genuine().xml.replace(b'id="e1"', b'id="e2"')
    altered = replace(genuine(), xml=xml)
    assert EVENT in broken(altered)
    leaf = genuine().leaf._replace(digest=sha256(xml).digest())
    assert broken(replace(altered, leaf=leaf)) == {EVENT, LEAF}


def test_certificate_that_was_not_valid_breaks_its_link() -> None:
    late = replace(genuine(), accepted_at=2_000_000_000.0)
    assert broken(late) == {CERTIFICATE}


def test_document_that_had_expired_long_before_leaves_its_link_open() -> None:
    ends = datetime.fromtimestamp(1_000.0, UTC)
    short = sign(replace(document(), expires=ends, signatures=()), 1, 2)
    evidence = replace(genuine(), document=write_federation(short))
    for at, outcome in (
        (1_000.0 + GRACE_S - 1.0, Outcome.HOLDS),
        (1_001.0 + GRACE_S, Outcome.OPEN),
    ):
        verdict = verify(replace(evidence, accepted_at=at), Trust(anchor(short)))
        assert outcomes(verdict)[DOCUMENT] is outcome
        assert verdict.is_proved is (outcome is Outcome.HOLDS)


def test_evidence_of_another_federation_breaks_the_signature() -> None:
    other = sign(replace(document(), name="storms", signatures=()), 1, 2)
    forged = replace(genuine(), document=write_federation(other))
    assert SIGNATURE in broken(forged, Trust(anchor(other)))


@pytest.mark.parametrize("owner", ["P", "A"])
def test_seal_of_a_certificate_that_the_document_does_not_name_for_the_source_is_broken(
    owner: str,
) -> None:
    """The certificate is a new one of the source itself, or that of another member."""
    seal = seal_of(owner, 1 if owner == "A" else 2)
    signer = FileSigner.read(seal.certificate, seal.key)
    forged = replace(
        genuine(),
        fingerprint=signer.fingerprint,
        signature=signer.sign(signed_text(document().name, "P", genuine().root)),
        certificate=read_certificate(seal.certificate).pem,
    )
    assert broken(forged) == {DOCUMENT}


# --- trust ----------------------------------------------------------------------------------------


def test_without_an_anchor_the_trust_ends_at_the_document() -> None:
    verdict = verify(genuine(), Trust())
    assert not verdict.is_proved
    assert not verdict.broken
    assert outcomes(verdict)[ANCHOR] is Outcome.OPEN


def test_unsigned_document_leaves_two_links_open_and_says_where_trust_ends() -> None:
    unsigned = signed_document("P", "A", "B", with_roots=False)
    verdict = verify(evidence_of(document=unsigned), Trust())
    assert not verdict.is_proved
    assert not verdict.broken
    (link,) = [each for each in verdict.links if each.name == ROOT_KEYS]
    assert link.outcome is Outcome.OPEN
    assert "trust ends at this document" in link.words
    assert broken(evidence_of(document=unsigned)) == {ANCHOR}


def test_document_that_is_not_signed_by_enough_keys_breaks_its_link() -> None:
    few = sign(replace(document(), signatures=()), 1)
    forged = replace(genuine(), document=write_federation(few))
    assert broken(forged) == {ROOT_KEYS, ANCHOR}


def test_anchor_of_other_root_keys_breaks_the_last_link() -> None:
    others = replace(document(), roots=(root_set(1, 1, 7),), signatures=())
    assert broken(genuine(), Trust(anchor_of(sign(others, 7)))) == {ANCHOR}


def _rotated(document: Federation) -> Federation:
    """Returns a later version, signed by a second root set."""
    later = replace(
        document,
        version=document.version + 1,
        roots=(*document.roots, root_set(2, 1, 7)),
        signatures=(),
    )
    return sign(later, 1, 2, 7)


def test_newer_anchor_needs_a_newer_document_that_has_the_chain() -> None:
    later = _rotated(document())
    newer = anchor_of(later)
    verdict = verify(genuine(), Trust(newer))
    assert outcomes(verdict)[ANCHOR] is Outcome.OPEN
    assert verify(genuine(), Trust(newer, later)).is_proved


def test_newer_document_that_the_anchor_has_not_signed_breaks_the_last_link() -> None:
    later = _rotated(document())
    forged = replace(later, signatures=())
    assert broken(genuine(), Trust(anchor_of(later), forged)) == {ANCHOR}


def test_newer_document_of_another_chain_breaks_the_last_link() -> None:
    other = replace(document(), roots=(root_set(1, 1, 8),), signatures=())
    later = sign(
        replace(other, version=2, roots=(*other.roots, root_set(2, 1, 7)), signatures=()), 8, 7
    )
    assert broken(genuine(), Trust(anchor_of(later), later)) == {ANCHOR}


def test_newer_document_of_another_federation_breaks_the_last_link() -> None:
    later = _rotated(replace(document(), name="storms"))
    assert broken(genuine(), Trust(anchor_of(later), later)) == {ANCHOR}


# --- changes of the document ----------------------------------------------------------------------


def test_evidence_is_proved_after_the_certificate_was_replaced_and_removed() -> None:
    first = document()
    world = world_with_evidence(first)
    publish(world, "P", "e1")
    world.run_for(5.0)
    new = seal_of("P", 2)
    both = put_in_force(world, with_seals(first, "P", seal_of("P"), new), by="P")
    use_seal(world, "P", new)
    publish(world, "P", "e2")
    world.run_for(5.0)
    put_in_force(world, with_seals(both, "P", new), by="P")
    publish(world, "P", "e3")
    world.run_for(5.0)
    found = {event: evidence_at(world, "B", event) for event in ("e1", "e2", "e3")}
    assert found["e1"].certificate != found["e2"].certificate == found["e3"].certificate
    versions = [_version(found[event]) for event in ("e1", "e2", "e3")]
    assert versions == [1, 2, 3]
    for evidence in found.values():
        assert verify(evidence, Trust(anchor(first))).is_proved


def _version(evidence: Evidence) -> int:
    return read_federation(evidence.document).version


def test_evidence_is_proved_after_its_producer_has_left() -> None:
    first = document()
    world = world_with_evidence(first)
    publish(world, "P", "e1")
    world.run_for(5.0)
    put_in_force(world, first.without("P"), by="A")
    assert verify(evidence_at(world, "B", "e1"), Trust(anchor(first))).is_proved


def test_event_that_arrives_after_its_producer_has_left_has_the_last_document_that_named_it() -> (
    None
):
    first = document()
    world = world_with_evidence(first)
    world.kill("B")
    publish(world, "P", "e1")
    world.run_for(5.0)
    world.kill("P")  # only A can bring the event to B
    put_in_force(world, first.without("P"), by="A")
    world.start("B")
    world.run_for(30.0)
    evidence = evidence_at(world, "B", "e1")
    assert _version(evidence) == first.version
    assert verify(evidence, Trust(anchor(first))).is_proved


Alter = Callable[[dict[str, Any]], object]
WRONG_FILES: dict[str, Alter] = {
    "unknown field": lambda fields: fields.update(more=1),
    "missing field": lambda fields: fields.pop("root"),
    "later version": lambda fields: fields.update(version=2),
    "other format": lambda fields: fields.update(format="other"),
    "text as a number": lambda fields: fields["leaf"].update(number="1"),
    "truth as a number": lambda fields: fields["leaf"].update(number=True),
    "negative number": lambda fields: fields["leaf"].update(number=-1),
    "number of nine bytes": lambda fields: fields["leaf"].update(number=2**64),
    "surrogate": lambda fields: fields["leaf"].update(source="\ud800"),
    "carrier that is no text": lambda fields: fields["leaf"].update(carriers=[1]),
    "fence without first": lambda fields: fields["leaf"].update(fences=[{"epoch": 1}]),
    "hash in capitals": lambda fields: fields.update(root=fields["root"].upper()),
    "deep tree": lambda fields: fields["proof"].update(hashes=["0" * 64] * 33),
    "base64 with a blank": lambda fields: fields["seal"].update(signature="AA =="),
    "date without zone": lambda fields: fields.update(accepted="2026-01-01T00:00:00.000"),
    "list instead of an object": lambda fields: fields.update(leaf=[]),
    "text for a timestamp": lambda fields: fields.update(timestamp="none"),
    "two contents": lambda fields: fields["event"].update(base64="AA=="),
}


@pytest.mark.parametrize("alter", WRONG_FILES.values(), ids=WRONG_FILES)
def test_file_in_a_wrong_form_is_refused(alter: Alter) -> None:
    fields = json.loads(write_evidence(genuine()))
    alter(fields)
    with pytest.raises(DocumentError):
        read_evidence(json.dumps(fields).encode())


@pytest.mark.parametrize("content", [b"", b"[]", b"1", b"\xff", b'{"format": 1, "format": 1}'])
def test_file_that_is_no_evidence_is_refused(content: bytes) -> None:
    with pytest.raises(DocumentError):
        read_evidence(content)


def test_event_that_is_not_utf_8_is_written_in_base64_and_read_back() -> None:
    odd = replace(genuine(), xml=b"\xff\x00")
    assert read_evidence(write_evidence(odd)).xml == odd.xml
