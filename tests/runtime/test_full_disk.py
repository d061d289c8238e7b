"""A peer process whose disk is full: it starts, serves readers, and refuses publications."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from qns.errors import Busy
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    Published,
    PullDeliveries,
    Request,
    Subscribe,
    Subscribed,
)
from qns.store.sqlite import LOW_WATER_BYTES
from tests.runtime import peers
from tests.runtime.peers import PeerProcess, agencies_on_loopback, change, eventually, peer_in

STATVFS = """
import os
from pathlib import Path
from types import SimpleNamespace

os.statvfs = lambda _: SimpleNamespace(f_bavail=int(Path({free!r}).read_text()), f_frsize=1)
"""
"""Python runs this file at its start: the disk has as many free bytes as a file says."""


class Disk:
    def __init__(self, folder: Path) -> None:
        self._free = folder / "free"
        (folder / "sitecustomize.py").write_text(STATVFS.format(free=str(self._free)))
        self.has(100 * LOW_WATER_BYTES)

    def has(self, free: int) -> None:
        part = self._free.with_suffix(".part")
        part.write_text(str(free))
        part.replace(self._free)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    folder = tmp_path / "python"
    folder.mkdir()
    path = f"{folder}:{peers.WITHOUT_NUMBA['PYTHONPATH']}"
    monkeypatch.setattr(peers, "WITHOUT_NUMBA", {"PYTHONPATH": path})
    return Disk(folder)


@pytest.fixture
def peer(tmp_path: Path, disk: Disk) -> Iterator[PeerProcess]:
    """Starts INPS, which has a subscription and three unread deliveries, and stops it again."""
    inps = peer_in(tmp_path / "peer", agencies_on_loopback(), "INPS")
    inps.start()
    assert isinstance(inps.ask(Subscribe("anna", "Enterprise/Holder", id="S1")), Subscribed)
    for id in ("e1", "e2", "e3"):
        assert isinstance(inps.ask(change(id)), Published)
    assert inps.stop() == 0
    yield inps
    if inps.process is not None:
        inps.kill()


def published(peer: PeerProcess, id: str) -> bool:
    """True if the event is accepted; False if the peer is busy."""
    try:
        answer = peer.ask(change(id))
    except Busy:
        return False
    assert isinstance(answer, Published), answer
    return True


def answered(peer: PeerProcess, request: Request) -> Answer:
    """Asks until the peer is not busy: it opens its store again after a commit that failed."""
    answers: list[Answer] = []

    def ask() -> bool:
        with suppress(Busy):
            answers.append(peer.ask(request))
        return bool(answers)

    eventually(ask, "the peer answers")
    return answers[0]


def unread(peer: PeerProcess) -> list[str]:
    answer = answered(peer, PullDeliveries("anna", "S1", limit=1_000))
    assert isinstance(answer, Deliveries)
    return [each.event for each in answer.deliveries]


@pytest.mark.parametrize("free", [0, LOW_WATER_BYTES - 1])
def test_peer_starts_on_a_full_disk_serves_readers_and_refuses_publications(
    peer: PeerProcess, disk: Disk, free: int
) -> None:
    disk.has(free)
    peer.start()
    state = peer.health()
    assert state["status"] == "failing"
    assert [each["kind"] for each in state["details"] if each["status"] == "failing"] == [
        "disk_full"
    ]
    # Small events may find room in the pages that the store has; then they are on the disk.
    accepted = [id for id in (f"f{number}" for number in range(300)) if published(peer, id)]
    assert len(accepted) < 300
    assert unread(peer)[:3] == ["e1", "e2", "e3"]
    answered(peer, AcknowledgeDeliveries("anna", "S1", 2))
    assert unread(peer)[0] == "e3"
    peer.kill()
    peer.start()
    assert unread(peer)[0] == "e3"
    disk.has(100 * LOW_WATER_BYTES)
    eventually(lambda: published(peer, "later"), "publishing works when there is room again")
    eventually(lambda: unread(peer)[-1] == "later", "it is delivered")
    kinds = {each["kind"] for each in peer.health()["details"]}
    assert "disk_full" not in kinds
