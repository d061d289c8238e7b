"""Timestamps of a real authority: `openssl ts`."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from qns.edl.merkle import tree_of
from qns.errors import QnsError, ValueRefused
from qns.evidence.evidence import Evidence, Timestamp
from qns.evidence.evidence_file import read_evidence, write_evidence
from qns.evidence.timestamps import Request, checked_time, leaf_of, read_authority
from qns.evidence.verification import CERTIFICATE, TIMESTAMP, Outcome, Trust, verify
from qns.federation.document import Federation
from tests.evidence.authority import TimestampingAuthority, needs_openssl, new_authority
from tests.evidence.stage import anchor, evidence_of, signed_document

pytestmark = needs_openssl


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TimestampingAuthority:
    return new_authority(tmp_path_factory.mktemp("tsa"))


@cache
def document() -> Federation:
    return signed_document("P", "A", "B")


@cache
def _genuine() -> Evidence:
    return evidence_of(document=document())


def stamped(authority: TimestampingAuthority) -> Evidence:
    """Returns evidence whose root was stamped together with two others."""
    evidence = _genuine()
    own = leaf_of(evidence.root, evidence.fingerprint + evidence.signature)
    root, proofs = tree_of([b"another", own, b"a third"])
    response = authority.answer(Request(root).as_bytes())
    return replace(evidence, timestamp=Timestamp(proofs[1], root, response))


def timestamp_of(
    evidence: Evidence, authority: TimestampingAuthority | None
) -> tuple[Outcome, str]:
    trusted = None if authority is None else authority.authority
    trust = Trust(anchor(document()), None, trusted)
    (link,) = [each for each in verify(evidence, trust).links if each.name == TIMESTAMP]
    return link.outcome, link.words


def test_timestamp_is_proved_with_the_certificate_of_its_authority(
    authority: TimestampingAuthority,
) -> None:
    evidence = stamped(authority)
    assert read_evidence(write_evidence(evidence)).timestamp == evidence.timestamp
    outcome, words = timestamp_of(evidence, authority)
    assert outcome is Outcome.HOLDS
    assert "existed before" in words


def test_timestamp_that_nobody_checks_is_open_and_needs_no_library(
    authority: TimestampingAuthority,
) -> None:
    evidence = stamped(authority)
    assert timestamp_of(evidence, None)[0] is Outcome.OPEN
    assert verify(evidence, Trust(anchor(document()))).is_proved


def test_missing_timestamp_is_broken_only_if_it_was_asked_for(
    authority: TimestampingAuthority,
) -> None:
    assert timestamp_of(_genuine(), None)[0] is Outcome.OPEN
    assert timestamp_of(_genuine(), authority)[0] is Outcome.BROKEN


def test_timestamp_of_another_authority_is_refused(
    authority: TimestampingAuthority, tmp_path: Path
) -> None:
    other = new_authority(tmp_path / "other", "Other TSA")
    assert timestamp_of(stamped(authority), other)[0] is Outcome.BROKEN
    assert timestamp_of(stamped(other), authority)[0] is Outcome.BROKEN


def test_altered_timestamp_is_refused(authority: TimestampingAuthority) -> None:
    evidence = stamped(authority)
    stamp = evidence.timestamp
    assert stamp is not None
    altered = {
        "proof": replace(stamp, proof=bytes(4) + stamp.proof[4:]),
        "root": replace(stamp, root=bytes(32)),
        "response": replace(stamp, response=stamp.response[:-1] + b"\x00"),
        "cut": replace(stamp, response=stamp.response[:-20]),
    }
    for name, each in altered.items():
        outcome, _ = timestamp_of(replace(evidence, timestamp=each), authority)
        assert outcome is Outcome.BROKEN, name


def test_timestamp_of_another_signature_is_refused(authority: TimestampingAuthority) -> None:
    evidence = replace(stamped(authority), signature=bytes(64))
    assert timestamp_of(evidence, authority) == (
        Outcome.BROKEN,
        "the timestamp is not of this root and signature",
    )


def test_certificate_must_have_been_valid_at_the_timestamp_and_not_when_the_receiver_says(
    authority: TimestampingAuthority,
) -> None:
    # The simulated certificates were valid in 1970, and the authority has the time of today.
    verdict = verify(stamped(authority), Trust(anchor(document()), None, authority.authority))
    (link,) = verdict.broken
    assert link.name == CERTIFICATE


def test_response_to_another_request_is_refused(authority: TimestampingAuthority) -> None:
    root = bytes(32)
    response = authority.answer(Request(root).as_bytes())
    assert checked_time(response, root, authority.authority) > 0
    with pytest.raises(QnsError, match="Nonce mismatch"):
        Request(root).check(response, authority.authority)


@pytest.mark.parametrize("response", [b"", b"junk", bytes(100)])
def test_response_that_is_no_timestamp_is_refused(
    authority: TimestampingAuthority, response: bytes
) -> None:
    with pytest.raises(QnsError, match="the timestamp is not valid"):
        Request(bytes(32)).check(response, authority.authority)


@pytest.mark.parametrize("content", [b"", b"text", b"x" * 200_000])
def test_file_without_certificates_is_no_authority(content: bytes) -> None:
    with pytest.raises(ValueRefused):
        read_authority(content)
