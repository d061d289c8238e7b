"""Tests of `qns peer check`, and of `qns peer run` with errors."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import time

import pytest

from qns.federation.document import Federation
from qns.runtime.configuration import read_configuration
from qns.store.sqlite import SqliteStore
from tests.cli.conftest import ROOT, Cli
from tests.cli.other_program import OtherProgram, other_program
from tests.runtime.peers import PeerProcess, agencies_on_loopback, configure
from tests.store.disasters import STORE, files_of_store

_IS_TOML = re.compile(r"\[?\w+\]?( = |\s+#|$)")
SAMPLE = ROOT / "services/peer/inps.toml"


def verdicts(out: str, what: str) -> list[str]:
    """Returns the lines about one subject."""
    return [line for line in out.splitlines() if line.split()[1] == what]


@pytest.fixture
def other() -> Iterator[OtherProgram]:
    """A server in place of another peer, with answers that a real peer never gives."""
    with other_program() as program:
        yield program


def with_endpoint(federation: Federation, name: str, endpoint: str) -> Federation:
    changed = {**federation.organisations, name: replace(federation[name], endpoint=endpoint)}
    return replace(federation, organisations=changed)


def test_check_succeeds_for_a_peer_that_could_start(cli: Cli, tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    outcome = cli("peer", "check", configure(tmp_path, federation, "INPS"))
    assert outcome.status == 0, outcome.out
    for what in ("configuration", "federation", "schema", "store", "disk", "listen"):
        (line,) = verdicts(outcome.out, what)
        assert line.startswith("OK "), line
    for what in ("INAIL", "CoC"):
        (line,) = verdicts(outcome.out, what)
        assert line.startswith("WARN ")
        assert "the connection is refused: nobody listens there (ask its operator" in line
    assert not (tmp_path / "INPS.db").exists(), "it changes nothing"


def test_check_reports_a_running_peer_and_a_reachable_one(cli: Cli, tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    path = configure(tmp_path, federation, "INPS")
    peer = PeerProcess(path, federation["INPS"].endpoint)
    peer.start()
    try:
        outcome = cli("peer", "check", path)
        assert outcome.status == 0, outcome.out
        assert "is in use by the running peer" in outcome.out
        assert f"INPS is running on {federation['INPS'].endpoint}" in outcome.out
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        outcome = cli("peer", "check", configure(elsewhere, federation, "INPS"))
        assert outcome.status == 1
        assert "a peer of this organisation runs at this address already, and not on" in outcome.out
        outcome = cli("peer", "check", configure(tmp_path, federation, "CoC"), "--json")
        found = [each for each in outcome.json_lines if each["what"] == "INPS"]
        assert [each["verdict"] for each in found] == ["OK", "OK"]
        assert "answers in" in found[0]["words"]
        assert "its clock differs by" in found[1]["words"]
    finally:
        assert peer.stop() == 0
    outcome = cli("peer", "check", path)
    assert outcome.status == 0
    assert "INPS.db can be opened" in outcome.out


def test_check_reports_a_wrong_configuration(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "peer.toml"
    path.write_text('organisation = "INPS"\n', encoding="utf-8")
    outcome = cli("peer", "check", path)
    assert outcome.status == 1
    assert outcome.out.startswith("FAIL configuration")
    assert 'federation is missing (write a line such as federation = "federation.xml")' in (
        outcome.out
    )
    outcome = cli("peer", "run", path)
    assert outcome.status == 2
    assert "federation is missing" in outcome.err


def test_check_reports_a_port_in_use(cli: Cli, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=_hang_up, args=(listening,), daemon=True).start()
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        federation = with_endpoint(agencies_on_loopback(), "INPS", endpoint)
        outcome = cli("peer", "check", configure(tmp_path, federation, "INPS"))
    assert outcome.status == 1
    (line,) = verdicts(outcome.out, "listen")
    assert "the port is in use by another program" in line


def _hang_up(listening: socket.socket) -> None:
    with suppress(OSError):  # until it is closed
        while True:
            connection, _ = listening.accept()
            connection.close()


def test_check_reports_a_file_that_is_no_store(cli: Cli, tmp_path: Path) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "INPS")
    (tmp_path / "INPS.db").write_text("a diary, not a store", encoding="utf-8")
    outcome = cli("peer", "check", path)
    assert outcome.status == 1
    assert verdicts(outcome.out, "store")[0].startswith("FAIL ")
    assert (tmp_path / "INPS.db").read_text(encoding="utf-8") == "a diary, not a store"


def test_check_names_the_damaged_page_of_a_store(cli: Cli, tmp_path: Path) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "INPS")
    store = tmp_path / "INPS.db"
    SqliteStore(store).close()
    content = bytearray(store.read_bytes())
    content[3 * 4096 + 17] ^= 1
    store.write_bytes(content)
    outcome = cli("peer", "check", path)
    assert outcome.status == 1
    assert verdicts(outcome.out, "store")[0].startswith("FAIL ")
    assert "page 4 has changed on the disk" in outcome.out
    assert "qns peer restore" in outcome.out


def test_check_reports_a_changed_bit_in_the_log_of_a_killed_peer(cli: Cli, tmp_path: Path) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "INPS")
    (tmp_path / "killed").mkdir()
    for name, content in files_of_store(tmp_path / "killed", is_closed=False).items():
        changed = bytearray(content)
        if name.endswith("-wal"):
            changed[-1_000] ^= 16
        (tmp_path / name.replace(STORE, "INPS.db")).write_bytes(changed)
    outcome = cli("peer", "check", path)
    assert outcome.status == 1
    verdict = verdicts(outcome.out, "store")[0]
    assert verdict.startswith("FAIL ")
    assert str(tmp_path / "INPS.db") in outcome.out
    assert "of its log" in outcome.out
    assert "qns peer restore" in outcome.out


def test_check_reports_a_store_without_a_folder(cli: Cli, tmp_path: Path) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "INPS", 'store = "nowhere/inps.db"')
    outcome = cli("peer", "check", path)
    assert outcome.status == 1
    assert "there is no folder" in verdicts(outcome.out, "store")[0]


def test_check_judges_the_answers_of_other_peers(
    cli: Cli, tmp_path: Path, other: OtherProgram
) -> None:
    federation = with_endpoint(agencies_on_loopback(), "CoC", other.endpoint)
    path = configure(tmp_path, federation, "INPS")

    other.state = {"organisation": "CoC", "time": time() + 3600, "document": 7}
    outcome = cli("peer", "check", path)
    answers, clock, document = verdicts(outcome.out, "CoC")
    assert answers.startswith("OK ")
    assert clock.startswith("WARN ")
    assert "s ahead (set the clocks by NTP" in clock
    assert "it has the newer version 7 of the federation document; here it is 1" in document
    assert outcome.status == 0

    other.state = {"organisation": "INAIL", "time": time()}
    outcome = cli("peer", "check", path)
    assert outcome.status == 1
    assert verdicts(outcome.out, "CoC")[0].startswith("FAIL ")
    assert "is the peer of INAIL" in outcome.out

    for nonsense in ("hello", ["organisation"], {"organisation": "x" * 200_000}):
        other.state = nonsense
        outcome = cli("peer", "check", path)
        assert "it answers, but is no peer of QNS" in verdicts(outcome.out, "CoC")[0]


def test_check_reports_an_organisation_without_an_endpoint(cli: Cli, tmp_path: Path) -> None:
    federation = with_endpoint(agencies_on_loopback(), "CoC", "")
    outcome = cli("peer", "check", configure(tmp_path, federation, "INPS"))
    assert outcome.status == 0
    assert "no endpoint" in verdicts(outcome.out, "CoC")[0]


def test_comments_of_the_sample_configuration_are_the_defaults(tmp_path: Path) -> None:
    """Each commented setting of the sample has its default value."""
    (tmp_path / "federation.xml").write_bytes(SAMPLE.with_name("federation.xml").read_bytes())
    full = tmp_path / "inps.toml"
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    said = [line.removeprefix("# ") for line in lines]
    full.write_text("\n".join(line for line in said if _IS_TOML.match(line)), encoding="utf-8")
    configuration = read_configuration(full)
    (tmp_path / "few.toml").write_text("\n".join(lines), encoding="utf-8")
    assert configuration == read_configuration(tmp_path / "few.toml")
    assert "[tuning]" in full.read_text(encoding="utf-8")
