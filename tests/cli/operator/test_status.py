"""Tests of `qns peer status`, and of the errors that all commands of an operator share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.runtime.peers import PeerProcess, agencies_on_loopback, configure


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerProcess]:
    """Starts INPS; the other peers do not run."""
    federation = agencies_on_loopback()
    path = configure(tmp_path_factory.mktemp("operator"), federation, "INPS")
    process = PeerProcess(path, federation["INPS"].endpoint)
    process.start()
    yield process
    process.stop()


def test_status_shows_health_and_work(peer: PeerProcess, cli: Cli) -> None:
    outcome = cli("peer", "status", peer.configuration)
    assert outcome.status == 0
    first, *rest = outcome.out.splitlines()
    assert first.startswith("INPS is ")
    assert any(line.split()[0] == "owed" for line in rest)


def test_status_as_json_has_the_process_and_the_store(peer: PeerProcess, cli: Cli) -> None:
    state = cli("peer", "status", "--json", peer.configuration).json
    assert peer.process is not None
    assert state["pid"] == peer.process.pid
    assert state["store"] == str(peer.configuration.with_name("INPS.db"))


def test_command_is_logged_with_its_user(peer: PeerProcess, cli: Cli) -> None:
    cli("peer", "status", peer.configuration)
    records = [each for each in peer.records() if each.get("operation") == "status"]
    assert records[-1]["message"] == "a command of the operator ran"
    assert isinstance(records[-1]["user"], int)


def test_peer_with_invalid_files_can_still_be_commanded(
    peer: PeerProcess, cli: Cli, tmp_path: Path
) -> None:
    store = peer.configuration.with_name("INPS.db")
    broken = tmp_path / "broken.toml"
    broken.write_text(f'organisation = "INPS"\nfederation = "none.xml"\nstore = "{store}"\n')
    assert cli("peer", "status", broken).status == 0


def test_peer_that_does_not_run_is_reported(cli: Cli, tmp_path: Path) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "CoC")
    outcome = cli("peer", "status", path)
    assert outcome.status == 2
    assert "the peer is not running (start it with qns peer run" in outcome.err
    failure = json.loads(cli("peer", "status", "--json", path).err)
    assert "the peer is not running" in failure["problem"]


def test_killed_peer_is_reported_and_starts_again(cli: Cli, tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    process = PeerProcess(configure(tmp_path, federation, "INPS"), federation["INPS"].endpoint)
    process.start()
    process.kill()
    assert (tmp_path / "INPS.db.admin").is_socket()
    assert "the peer is not running" in cli("peer", "status", process.configuration).err
    process.start()
    try:
        assert cli("peer", "status", process.configuration).status == 0
    finally:
        process.stop()
    assert not (tmp_path / "INPS.db.admin").exists()


def test_path_that_is_too_long_for_a_socket_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = configure(tmp_path, agencies_on_loopback(), "INPS", f'store = "{"s" * 120}.db"\n')
    for command in ("status", "check", "run"):
        outcome = cli("peer", command, path)
        assert outcome.status in (1, 2)
        assert 'write a shorter path, such as admin = "' in outcome.out + outcome.err
    short = configure(
        tmp_path, agencies_on_loopback(), "INPS", f'store = "{"s" * 120}.db"\nadmin = "a"\n'
    )
    assert "the peer is not running" in cli("peer", "status", short).err
