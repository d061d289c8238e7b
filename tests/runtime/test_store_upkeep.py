"""A store that is damaged while its peer runs: the peer serves nothing more from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qns.errors import QnsError
from qns.iil.requests import Subscribe
from qns.store.checksums import PAGE_BYTES
from tests.runtime.peers import (
    QUICK,
    PeerProcess,
    agencies_on_loopback,
    change,
    configure,
    eventually,
)


def damage(path: Path) -> int:
    """Changes one bit of the last page and returns the number of the page."""
    page = path.stat().st_size // PAGE_BYTES
    handle = os.open(path, os.O_RDWR)
    try:
        offset = page * PAGE_BYTES - 100
        (byte,) = os.pread(handle, 1, offset)
        os.pwrite(handle, bytes([byte ^ 1]), offset)
    finally:
        os.close(handle)
    return page


def test_running_peer_stops_serving_when_a_page_of_its_store_changes(tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    peer = PeerProcess(configure(tmp_path, federation, "INPS", QUICK), federation["INPS"].endpoint)
    peer.start()
    try:
        peer.ask(Subscribe("anna", "Enterprise/Holder", id="s"))
        for number in range(20):
            peer.ask(change(f"e{number}"))
        peer.stop()
        peer.start()
        page = damage(tmp_path / "INPS.db")

        def failing() -> list[str]:
            state = peer.health()
            return state["reasons"] if state["status"] == "failing" else []

        def named() -> str | None:
            return next((each for each in failing() if "qns peer restore" in each), None)

        assert f"the store is damaged: page {page} " in eventually(named, "damage in health")
        with pytest.raises(QnsError, match="the store is being opened again"):
            peer.ask(change("late"))
    finally:
        peer.kill()


def test_peer_does_not_start_with_a_damaged_store(tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    peer = PeerProcess(configure(tmp_path, federation, "INPS", QUICK), federation["INPS"].endpoint)
    peer.start()
    peer.stop()
    page = damage(tmp_path / "INPS.db")
    with pytest.raises(AssertionError, match=f"page {page} has changed on the disk"):
        peer.start()
    assert peer.process is not None
    peer.process.communicate()
