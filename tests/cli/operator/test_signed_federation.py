"""Real peers with an anchor: signed documents over the admin port, SIGHUP and the traffic."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from qns.errors import Busy
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.roots_xml import write_anchor
from qns.iil.requests import Published, Subscribe, Subscribed
from tests.cli.conftest import Cli
from tests.federation.signing import anchor_of, at, root_set, rooted, sign
from tests.runtime.peers import (
    QUICK,
    PeerProcess,
    agencies_on_loopback,
    change,
    configure,
    eventually,
    running,
)

ANCHORED = f'anchor = "agencies.anchor"\n{QUICK}'


@dataclass
class Stage:
    folder: Path
    document: Federation
    peers: dict[str, PeerProcess]

    def versions(self) -> set[int]:
        return {peer.health()["document"] for peer in self.peers.values()}

    def file(self, document: Federation) -> Path:
        path = self.folder / "next.xml"
        path.write_bytes(write_federation(document))
        return path


def staged(folder: Path, expires_s: float, more: str = "") -> Stage:
    plain = agencies_on_loopback()
    document = sign(rooted(plain, root_set(1, 2, 1, 2, 3), expires_s), 1, 2)
    (folder / "agencies.anchor").write_bytes(write_anchor(anchor_of(document)))
    peers = {
        name: PeerProcess(configure(folder, document, name, ANCHORED + more), each.endpoint)
        for name, each in document.organisations.items()
    }
    return Stage(folder, document, peers)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = staged(tmp_path, time.time() + 1e6)
    with running(found.peers.values()):
        yield found


def test_signed_document_is_published_and_spreads(stage: Stage, cli: Cli) -> None:
    file = stage.file(sign(stage.document.hosting("CoC", ["Enterprise"]), 2, 3))
    began = time.monotonic()
    outcome = cli("federation", "publish", stage.peers["INPS"].configuration, file)
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines()[0] == "version 2 of agencies is in force, after 1"
    eventually(lambda: stage.versions() == {2}, "all have the document")
    assert time.monotonic() - began < 5.0


def test_documents_that_are_not_signed_enough_change_nothing(stage: Stage, cli: Cli) -> None:
    inps, next_one = stage.peers["INPS"], stage.document.hosting("CoC", ["Enterprise"])
    for document, said in (
        (next_one, "is signed by 0 of 2 keys of root set 1"),
        (sign(next_one, 1), "is signed by 1 of 2 keys of root set 1"),
        (next_one.unsigned(), "is not signed, and the anchor has root keys"),
        (sign(next_one.expiring(at(1.0)), 1, 2), "expired at 1970-01-01T00:00:01Z"),
    ):
        outcome = cli("federation", "publish", inps.configuration, stage.file(document))
        assert outcome.status == 2
        assert said in outcome.err
    (stage.folder / "federation.xml").write_bytes(write_federation(sign(next_one, 1)))
    assert inps.process is not None
    inps.process.send_signal(signal.SIGHUP)
    eventually(lambda: "document_refused" in str(inps.health()["details"]), "SIGHUP is refused")
    assert stage.versions() == {1}


def test_peer_refuses_to_start_with_an_unsigned_document(tmp_path: Path, cli: Cli) -> None:
    stage = staged(tmp_path, time.time() + 1e6)
    (tmp_path / "federation.xml").write_bytes(write_federation(stage.document.unsigned()))
    said = "version 1 of agencies is not signed, and the anchor has root keys"
    outcome = cli("peer", "check", stage.peers["INPS"].configuration)
    assert outcome.status == 1
    assert said in outcome.out
    with pytest.raises(AssertionError, match=said), running([stage.peers["INPS"]]):
        pass
    (tmp_path / "federation.xml").write_bytes(write_federation(stage.document))
    with running([stage.peers["INPS"]]):
        assert stage.peers["INPS"].health()["document"] == 1


def test_broken_anchor_is_named_in_the_error(tmp_path: Path, cli: Cli) -> None:
    stage = staged(tmp_path, time.time() + 1e6)
    anchor = tmp_path / "agencies.anchor"
    for content, said in ((b"<x/>", "the root element is 'x'"), (None, "No such file")):
        anchor.unlink()
        if content is not None:
            anchor.write_bytes(content)
        outcome = cli("peer", "check", stage.peers["INPS"].configuration)
        assert outcome.status in (1, 2)
        assert f"anchor: {anchor}" in outcome.out + outcome.err
        assert said in outcome.out + outcome.err


def test_peer_closes_after_the_grace_and_a_fresh_document_opens_it(
    tmp_path: Path, cli: Cli
) -> None:
    stage = staged(tmp_path, time.time() + 1e6, "document_grace_s = 1.0\n")
    inps, coc = stage.peers["INPS"], stage.peers["CoC"]
    with running(stage.peers.values()):
        assert isinstance(inps.ask(Subscribe("u", "Enterprise", id="s")), Subscribed)
        assert isinstance(coc.ask(change("e1", "CoC")), Published)
        soon = sign(stage.document.expiring(at(int(time.time()) + 8)), 1, 2)
        outcome = cli("federation", "publish", inps.configuration, stage.file(soon))
        assert outcome.status == 0, outcome.err

        def closed() -> bool:
            return all("document_closed" in str(p.health()["details"]) for p in (inps, coc))

        eventually(closed, "the peers are closed")
        assert inps.health()["status"] == "failing"
        with pytest.raises(Busy, match=r"expired at .* and the grace is over"):
            coc.ask(change("e2", "CoC"))
        expires = ("--expires", "90d", "-o", tmp_path / "next.xml")
        assert cli("federation", "renew", tmp_path / "next.xml", *expires).status == 0
        renewed = sign(read_federation((tmp_path / "next.xml").read_bytes()), 1, 3)
        outcome = cli("federation", "publish", inps.configuration, stage.file(renewed))
        assert outcome.status == 0, outcome.err
        eventually(lambda: stage.versions() == {3}, "all have the document")
        assert isinstance(coc.ask(change("e2", "CoC")), Published)
        eventually(lambda: inps.health()["status"] != "failing", "it is open again")


def test_check_warns_of_a_document_that_has_expired(tmp_path: Path, cli: Cli) -> None:
    stage = staged(tmp_path, 1.0)
    outcome = cli("peer", "check", stage.peers["INPS"].configuration)
    assert "WARN" in outcome.out
    assert "version 1 expired at 1970-01-01T00:00:01Z" in outcome.out
