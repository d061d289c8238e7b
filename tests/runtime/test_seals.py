"""Seals between peer processes over mutual TLS: a member cannot forge the events of another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import time

import pytest

from qns.d2q.event_xml import write_event
from qns.d2q.shipped import AGENCIES
from qns.edl.messages import Entry, Envelope, Notification, Notified, Notify
from qns.federation.document import Federation
from qns.federation.new_certificate import NewCertificate, new_certificate
from qns.iil.requests import Deliveries, PullDeliveries, Subscribe
from tests.certificates import certificate
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
from tests.runtime.tls_stage import address_of, call, connected, context_of, install, words_of

pytestmark = pytest.mark.slow

SEALS = {
    name: new_certificate(name, time(), is_tls=False, algorithm=algorithm)
    for name, algorithm in (("INPS", "ed25519"), ("INAIL", "ecdsa-p256"), ("CoC", "rsa-3072"))
}


def sealed_agencies(capability: int = 1) -> Federation:
    """Returns the agencies over TLS, with a seal certificate each; one forwards to the next."""
    federation = agencies_over_tls()
    members = {
        name: replace(each, seals=(SEALS[name].certificate,), capability=capability)
        for name, each in federation.organisations.items()
    }
    return replace(federation, organisations=members)


def seal_files(folder: Path, name: str, own: NewCertificate) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.seal.key").write_bytes(own.key)
    (folder / f"{name}.seal.pem").write_text(own.certificate)


def sealed_peer_in(folder: Path, federation: Federation, name: str) -> PeerProcess:
    seal_files(folder, name, SEALS[name])
    seal = f'\n[seal]\ncertificate = "{name}.seal.pem"\nkey = "{name}.seal.key"\n'
    return tls_peer_in(folder, federation, name, f"{QUICK}{seal}")


def kinds(peer: PeerProcess) -> set[str]:
    return {each["kind"] for each in peer.health()["details"]}


def read_at(peer: PeerProcess) -> list[str]:
    answer = peer.ask(PullDeliveries("ada", "1", limit=500))
    assert isinstance(answer, Deliveries)
    return [each.event for each in answer.deliveries]


def test_forged_event_of_a_member_is_refused_and_genuine_ones_arrive(tmp_path: Path) -> None:
    federation = sealed_agencies()
    peers = {
        name: sealed_peer_in(tmp_path / name, federation, name) for name in federation.organisations
    }
    with running(peers.values()):
        for name in ("INAIL", "CoC"):
            peers[name].ask(Subscribe("ada", "Enterprise/Holder", id="1"))
            wait_until_stable(peers[name], "ada")
        events = [f"e{number}" for number in range(20)]
        for each in events:
            peers["INPS"].ask(change(each))
        for name in ("INAIL", "CoC"):
            eventually(lambda name=name: read_at(peers[name]) == events, "the events arrive")  # type: ignore[misc]

        # CoC is a member, and says that INPS has published this.
        forged = change("forged").event
        item = Notification(
            "INPS",
            1,
            1,
            21,
            "forged",
            write_event(forged, AGENCIES),
            0.0,
            Entry("INAIL", 1, peers["INPS"].health()["epoch"], 21, 0),
            ("INPS", "CoC"),
        )
        context = context_of(tmp_path, certificate("CoC"))
        with connected(address_of(federation, "INAIL"), context) as connection:
            answer = call(connection, Envelope("CoC", 1, (), Notify((item,))))
        assert isinstance(answer.body, Notified)
        (outcome,) = answer.body.outcomes
        assert not outcome.taken
        assert not outcome.permanent
        assert read_at(peers["INAIL"]) == events
        assert "wrong_seals" in kinds(peers["INAIL"])
        assert peers["INAIL"].metrics()['qns_wrong_seals_total{member="CoC"}'] == 1
        records = peers["INAIL"].records()
        assert any("wrong seal" in each["message"] and each["sender"] == "CoC" for each in records)

        peers["INPS"].ask(change("last"))
        eventually(lambda: read_at(peers["INAIL"]) == [*events, "last"], "the next event arrives")


def test_seal_changes_while_the_peer_runs_and_no_event_is_lost(tmp_path: Path) -> None:
    federation = sealed_agencies(capability=4).without("CoC")
    peers = {
        name: sealed_peer_in(tmp_path / name, federation, name) for name in federation.organisations
    }
    new = new_certificate("INPS", time(), is_tls=False)
    with running(peers.values()):
        peers["INAIL"].ask(Subscribe("ada", "Enterprise/Holder", id="1"))
        wait_until_stable(peers["INAIL"], "ada")
        peers["INPS"].ask(change("e1"))
        both = federation.with_certificates(
            "INPS", seals=[SEALS["INPS"].certificate, new.certificate]
        )
        install(peers["INAIL"], both)
        eventually(
            lambda: peers["INPS"].health()["document"] == both.version, "the document spreads"
        )
        seal_files(tmp_path / "INPS", "INPS", new)
        only_new = both.with_certificates("INPS", seals=[new.certificate])
        install(peers["INPS"], only_new)  # with SIGHUP, which makes it read the new seal
        peers["INPS"].ask(change("e2"))
        eventually(lambda: read_at(peers["INAIL"]) == ["e1", "e2"], "both events arrive")
        eventually(
            lambda: peers["INAIL"].health()["document"] == only_new.version, "the document spreads"
        )
        assert not kinds(peers["INPS"]) & {"certificate_unnamed", "key_unusable", "no_seal"}


def test_peer_without_the_seal_that_the_document_names_fails_and_says_so(tmp_path: Path) -> None:
    federation = sealed_agencies()
    peer = tls_peer_in(tmp_path / "INPS", federation, "INPS")
    assert any(
        line.startswith("FAIL seal: the federation document names a seal certificate of INPS")
        for line in words_of(peer, "check")
    )
    with running([peer]):
        assert "no_seal" in kinds(peer)
        assert peer.health()["status"] == "failing"


def test_key_of_another_seal_is_found_before_the_peer_starts(tmp_path: Path) -> None:
    federation = sealed_agencies()
    peer = sealed_peer_in(tmp_path / "INPS", federation, "INPS")
    (tmp_path / "INPS" / "INPS.seal.key").write_bytes(SEALS["INAIL"].key)
    lines = words_of(peer, "check")
    assert any("the key of the seal does not fit its certificate" in line for line in lines)
    with pytest.raises(AssertionError, match="does not fit its certificate"):
        peer.start()
    assert peer.process is not None
    assert peer.stop() == 2
