"""A declared restore of a peer breaks no rule in the history of real peers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.peers import (
    PATIENCE_S,
    QUICK,
    PeerProcess,
    agencies_on_loopback,
    change,
    eventually,
    peer_in,
    running,
)
from tests.runtime.test_process import read, subscribe

HISTORY = f"history = true\n{QUICK}"


def qns(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qns.cli", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def backed_up(peer: PeerProcess, file: Path) -> Path:
    done = qns("peer", "backup", peer.configuration, file)
    assert done.returncode == 0, done.stderr
    return file


def restore(peer: PeerProcess, file: Path) -> None:
    """Stops the peer, puts it back and starts it again."""
    assert peer.stop() == 0
    done = qns("peer", "restore", peer.configuration, file, "--overwrite")
    assert done.returncode == 0, done.stderr
    peer.start()


def is_quiet(peers: dict[str, PeerProcess]) -> bool:
    """True if nobody owes an event, and every subscription is stable."""
    for peer in peers.values():
        lags = [v for name, v in peer.metrics().items() if name.startswith("qns_consumer_lag")]
        if any(lags) or any("pending" in each for each in peer.health()["reasons"]):
            return False
    return True


def verdict(folder: Path, peers: dict[str, PeerProcess]) -> subprocess.CompletedProcess[str]:
    """Stops the peers and judges their history."""
    eventually(lambda: is_quiet(peers), "the peers are quiet")
    for peer in peers.values():
        assert peer.stop() == 0
    history = folder / "history.jsonl"
    stores = [folder / name / f"{name}.db" for name in peers]
    gathered = qns("history", *stores, "--out", history)
    assert (gathered.returncode, gathered.stderr) == (0, "")
    return qns("verify", history)


@pytest.mark.parametrize("restored", ["INPS", "CoC"])
def test_history_of_a_restored_peer_keeps_every_rule(tmp_path: Path, restored: str) -> None:
    federation = agencies_on_loopback().without("INAIL")
    peers = {name: peer_in(tmp_path / name, federation, name, HISTORY) for name in ("INPS", "CoC")}
    inps, coc = peers["INPS"], peers["CoC"]
    with running(peers.values()):
        subscribe(coc, "S1")
        subscribe(inps, "S2")
        inps.ask(change("e1"))
        coc.ask(change("f1", "CoC"))
        read(coc, "S1", 2)
        read(inps, "S2", 2)
        backup = backed_up(peers[restored], tmp_path / "backup.db")
        inps.ask(change("e2"))
        coc.ask(change("f2", "CoC"))
        read(coc, "S1", 4)
        read(inps, "S2", 4)
        subscribe(peers[restored], "S3")
        inps.ask(change("e3"))
        read(coc, "S1", 5)
        restore(peers[restored], backup)
        subscribe(peers[restored], "S4")
        own = "e2" if restored == "INPS" else "f2"
        peers[restored].ask(change(own, restored))  # the factory publishes what was forgotten
        inps.ask(change("e4"))
        coc.ask(change("f4", "CoC"))
        eventually(lambda: "e4" in read(coc, "S1", 1) and "f4" in read(coc, "S1", 1), "CoC")
        eventually(lambda: "e4" in read(inps, "S2", 1) and "f4" in read(inps, "S2", 1), "INPS")
        judged = verdict(tmp_path, peers)
    assert judged.returncode == 0, judged.stdout
    assert "lost" in judged.stdout


def test_history_of_a_peer_that_lost_its_store_keeps_every_rule(tmp_path: Path) -> None:
    federation = agencies_on_loopback().without("INAIL")
    peers = {name: peer_in(tmp_path / name, federation, name, HISTORY) for name in ("INPS", "CoC")}
    inps, coc = peers["INPS"], peers["CoC"]
    with running(peers.values()):
        subscribe(coc, "S1")
        inps.ask(change("e1"))
        coc.ask(change("f1", "CoC"))
        read(coc, "S1", 2)
        inps.kill()
        for file in (tmp_path / "INPS").glob("INPS.db*"):
            file.unlink()
        inps.start()
        subscribe(inps, "S2")
        inps.ask(change("e2"))
        eventually(lambda: "e2" in read(coc, "S1", 1), "CoC gets what is published since")
        judged = verdict(tmp_path, peers)
    assert judged.returncode == 0, judged.stdout
