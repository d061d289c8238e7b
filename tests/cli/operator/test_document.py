"""Tests of `qns peer document install`, with real peer processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from tests.cli.conftest import Cli
from tests.runtime.peers import PeerProcess, agencies, eventually


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[dict[str, PeerProcess]]:
    with agencies(tmp_path) as started:
        yield started


@pytest.fixture
def document(tmp_path: Path, peers: dict[str, PeerProcess]) -> Federation:
    return read_federation((tmp_path / "federation.xml").read_bytes())


def without_coc(document: Federation) -> Federation:
    rest = {name: each for name, each in document.organisations.items() if name != "CoC"}
    return replace(document, version=document.version + 1, organisations=rest)


def test_newer_document_is_in_force_at_once_and_spreads(
    peers: dict[str, PeerProcess], document: Federation, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "next.xml"
    file.write_bytes(write_federation(without_coc(document)))
    outcome = cli("peer", "document", "install", peers["INPS"].configuration, file)
    assert outcome.status == 0, outcome.err
    first, *rest = outcome.out.splitlines()
    assert first == "version 2 of agencies is in force, after 1"
    assert any("CoC leaves" in line for line in rest)
    assert peers["INPS"].health()["document"] == 2
    eventually(lambda: peers["INAIL"].health()["document"] == 2, "INAIL has the document")
    again = cli("peer", "document", "install", peers["INPS"].configuration, file)
    assert again.out == "version 2 of agencies was in force already\n"
    # The stored document is newer than the configured one, also after a restart.
    peers["INPS"].stop()
    peers["INPS"].start()
    assert peers["INPS"].health()["document"] == 2


def test_document_that_does_not_follow_is_refused_and_changes_nothing(
    peers: dict[str, PeerProcess], document: Federation, cli: Cli, tmp_path: Path
) -> None:
    inps = peers["INPS"]
    elsewhere = replace(document["CoC"], endpoint="http://192.0.2.1:8703/")
    away = {**document.organisations, "CoC": elsewhere}
    clash = {
        **document.organisations,
        "CoC": replace(document["CoC"], endpoint=document["INAIL"].endpoint),
    }
    cases = {
        "is in force": replace(without_coc(document), version=1),
        "federation": replace(document, version=2, name="others"),
        "loopback": replace(document, version=2, organisations=away),
        "the same address": replace(document, version=2, organisations=clash),
    }
    for problem, wrong in cases.items():
        file = tmp_path / "wrong.xml"
        file.write_bytes(write_federation(wrong))
        outcome = cli("peer", "document", "install", inps.configuration, file)
        assert outcome.status == 2
        assert problem in outcome.err
        assert str(file) in outcome.err
    file.write_text("<no/>")
    assert cli("peer", "document", "install", inps.configuration, file).status == 2
    none = cli("peer", "document", "install", inps.configuration, tmp_path / "none")
    assert "cannot be read" in none.err
    assert inps.health()["document"] == 1
    assert inps.health()["commit_failures"] == 0
