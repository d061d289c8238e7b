"""Two peers of one organisation: a copy of a peer does not run beside it for long."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qns.errors import Busy
from qns.iil.requests import Deliveries, PullDeliveries
from tests.runtime.peers import (
    PeerProcess,
    agencies_on_loopback,
    change,
    eventually,
    free_ports,
    peer_in,
    running,
)
from tests.runtime.test_process import subscribe

pytestmark = pytest.mark.slow


def copy_of(peer: PeerProcess, folder: Path) -> PeerProcess:
    """Copies the folder of a peer that does not write; the copy listens on another port."""
    shutil.copytree(peer.configuration.parent, folder)
    (port,) = free_ports(1)
    path = folder / peer.configuration.name
    path.write_text(f'listen = "127.0.0.1:{port}"\n{path.read_text("utf-8")}', "utf-8")
    return PeerProcess(path, f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("command", ["run", "check"])
def test_copy_of_a_peer_does_not_start_beside_it(tmp_path: Path, command: str) -> None:
    federation = agencies_on_loopback().without("INAIL")
    inps, coc = (peer_in(tmp_path / name, federation, name) for name in ("INPS", "CoC"))
    with running((inps, coc)):
        subscribe(coc, "S1")
        inps.stop()
        copy = copy_of(inps, tmp_path / "copy")
        inps.start()
        result = subprocess.run(
            [sys.executable, "-m", "qns.cli", "peer", command, str(copy.configuration)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode != 0
        words = result.stdout + result.stderr
        assert f"a peer of INPS runs already: it answers at {inps.endpoint}" in words
        assert "stop it first" in words
        assert inps.health()["status"] == "ok"


def test_copy_of_a_peer_gives_way_to_the_one_at_the_endpoint(tmp_path: Path) -> None:
    federation = agencies_on_loopback()
    names = ("INPS", "INAIL", "CoC")
    inps, inail, coc = (peer_in(tmp_path / name, federation, name) for name in names)
    with running((inps, inail, coc)):
        subscribe(coc, "S1")
        inps.stop()
        copy = copy_of(inps, tmp_path / "copy")
        copy.start()  # nobody answers at the endpoint
        inps.start()
        try:
            published = publish_until_the_copy_refuses(inps, copy)
            assert copy.health()["status"] == "failing"
            inps.ask(change("last"))
            seen = eventually(lambda: all_until_last(coc), "the last event is delivered")
            assert set(published) <= set(seen)
            for each in (inps, copy):
                assert "as this organisation" in str(each.health()["reasons"])
        finally:
            copy.kill()


def publish_until_the_copy_refuses(inps: PeerProcess, copy: PeerProcess) -> list[str]:
    """Publishes at both in turn; returns the ids that the peer at the endpoint acknowledged."""
    published = []
    for number in range(200):
        inps.ask(change(f"e{number}"))
        published.append(f"e{number}")
        try:
            copy.ask(change(f"copy{number}"))
        except Busy as error:
            if "another peer runs as INPS" in str(error):
                return published
            raise
        time.sleep(0.1)
    raise AssertionError("the copy was not fenced out")


def all_until_last(peer: PeerProcess) -> list[str] | None:
    """Returns all events of the subscription S1, if the last one is there."""
    found = peer.ask(PullDeliveries("anna", "S1", limit=1_000))
    assert isinstance(found, Deliveries)
    events = [each.event for each in found.deliveries]
    return events if "last" in events else None
