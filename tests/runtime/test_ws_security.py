"""Peers that sign their calls one by one, for members whose rules want that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import time

import pytest

from qns.federation.document import Federation
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.iil.requests import Deliveries, Published, PullDeliveries, Subscribe
from tests.runtime.peers import (
    QUICK,
    PeerProcess,
    agencies_over_tls,
    change,
    eventually,
    running,
    tls_peer_in,
    wait_until_stable,
)
from tests.runtime.tls_stage import words_of

FILES = 'certificate = "calls.pem"\nkey = "calls.key"\n'
SIGNING = f'{QUICK}\n[ws_security]\nsign_for = ["INPS"]\n{FILES}'
REQUIRING = f'{QUICK}\n[ws_security]\nrequired_of = ["CoC"]\n'


def call_files(folder: Path, algorithm: str = "ecdsa-p256") -> NewCertificate:
    """Writes the key with which CoC signs its calls."""
    made = new_certificate("CoC", time(), algorithm=algorithm, is_tls=False)
    folder.mkdir(exist_ok=True)
    (folder / "calls.key").write_bytes(made.key)
    (folder / "calls.pem").write_text(made.certificate, encoding="ascii")
    return made


def sealed(folder: Path, made: NewCertificate) -> tuple[Federation, str]:
    """Returns a document that names the certificate of CoC, and the section with which it seals."""
    federation = agencies_over_tls()
    coc = replace(federation["CoC"], seals=(made.certificate,))
    everybody = {**federation.organisations, "CoC": coc}
    return replace(federation, organisations=everybody), f"\n[seal]\n{FILES}"


@contextmanager
def two(folder: Path, of_coc: str) -> Iterator[tuple[PeerProcess, PeerProcess]]:
    """Starts the peers of INPS, which requires signatures of CoC, and of CoC."""
    federation, seal = sealed(folder, call_files(folder / "CoC"))
    inps = tls_peer_in(folder / "INPS", federation, "INPS", REQUIRING)
    coc = tls_peer_in(folder / "CoC", federation, "CoC", of_coc + seal)
    with running((inps, coc)):
        yield inps, coc


def test_events_arrive_over_signed_calls(tmp_path: Path) -> None:
    with two(tmp_path, SIGNING) as (inps, coc):
        inps.ask(Subscribe("anna", "Enterprise/Holder from CoC", id="all"))
        wait_until_stable(inps, "anna")
        for number in range(5):
            assert isinstance(coc.ask(change(f"e{number}", "CoC")), Published)
        answer = inps.ask(PullDeliveries("anna", "all"), wait_s=20.0)
        assert isinstance(answer, Deliveries)
        eventually(lambda: _delivered(inps) == 5, "all events have arrived")
        assert inps.health()["status"] != "failing"


def test_peer_whose_calls_are_not_signed_is_refused_with_the_reason(tmp_path: Path) -> None:
    with two(tmp_path, QUICK) as (inps, coc):
        eventually(
            lambda: any(
                "requests of 'CoC' must be signed" in str(each.get("reason"))
                for each in inps.records()
            ),
            "the log says why",
        )
        eventually(
            lambda: any(
                "INPS: the last call of this peer failed" in each and "must be signed" in each
                for each in words_of(coc, "connections")
            ),
            "the operator of the caller sees why",
        )


def test_check_names_a_key_that_the_pattern_does_not_know(tmp_path: Path) -> None:
    made = call_files(tmp_path / "CoC", "ed25519")
    federation, _ = sealed(tmp_path, made)
    coc = tls_peer_in(tmp_path / "CoC", federation, "CoC", SIGNING)
    assert any(
        each.startswith("FAIL ws_security") and "RSA or ECDSA" in each
        for each in words_of(coc, "check")
    )


def test_check_names_a_certificate_that_the_document_does_not_name(tmp_path: Path) -> None:
    call_files(tmp_path / "CoC")
    coc = tls_peer_in(tmp_path / "CoC", agencies_over_tls(), "CoC", SIGNING)
    assert any(
        each.startswith("FAIL ws_security") and "does not name the seal certificate" in each
        for each in words_of(coc, "check")
    )


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ('required_of = "CoC"', "is no list of organisations"),
        ('required_of = ["Coc"]', "unknown organisation 'Coc'"),
        ('sign_for = ["INPS"]', "certificate is missing"),
        ('requires = ["CoC"]', "unknown key of [ws_security] 'requires'"),
    ],
)
def test_wrong_section_is_refused_with_the_remedy(tmp_path: Path, section: str, words: str) -> None:
    more = f"{QUICK}\n[ws_security]\n{section}\n"
    coc = tls_peer_in(tmp_path / "CoC", agencies_over_tls(), "CoC", more)
    assert any(words in each for each in words_of(coc, "check"))


def _delivered(peer: PeerProcess) -> int:
    answer = peer.ask(PullDeliveries("anna", "all"))
    assert isinstance(answer, Deliveries)
    return len(answer.deliveries)
