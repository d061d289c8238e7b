"""A peer process whose disk was lost says so, and newcomers see no false incidents."""

from __future__ import annotations

from pathlib import Path

import pytest

from qns.federation.document import Organisation
from tests.runtime.peers import (
    PeerProcess,
    agencies_on_loopback,
    change,
    eventually,
    free_ports,
    peer_in,
    running,
)
from tests.runtime.test_process import read, subscribe


def warnings(peer: PeerProcess) -> list[str]:
    return [each["message"] for each in peer.records() if each["level"] == "warning"]


@pytest.mark.parametrize("keeps_lineage", [True, False], ids=["store lost", "disk lost"])
def test_lost_store_is_shown_in_health_and_reported_by_others(
    tmp_path: Path, keeps_lineage: bool
) -> None:
    federation = agencies_on_loopback().without("INAIL")
    inps, coc = (peer_in(tmp_path / name, federation, name) for name in ("INPS", "CoC"))
    with running([inps, coc]):
        subscribe(coc, "S1")
        subscribe(inps, "S2")
        inps.ask(change("e1"))
        assert read(coc, "S1", 1) == ["e1"]
        inps.kill()
        for file in (tmp_path / "INPS").glob("INPS.db*"):
            if not (keeps_lineage and file.suffix == ".lineage"):
                file.unlink()
        inps.start()
        state = eventually(
            lambda: (found := inps.health())["status"] == "degraded" and found, "INPS reports it"
        )
        (reason,) = [each for each in state["reasons"] if "lost" in each]
        assert reason.startswith("the store is lost: it is new, although this peer has run before")
        assert "qns peer restore" in reason
        eventually(
            lambda: [each for each in warnings(coc) if "remembers nothing" in each], "CoC reports"
        )
        assert not [each for each in warnings(coc) + warnings(inps) if "put back" in each]


def test_newcomer_logs_no_incident_of_members_that_were_restarted(tmp_path: Path) -> None:
    federation = agencies_on_loopback().without("INAIL")
    inps, coc = (peer_in(tmp_path / name, federation, name) for name in ("INPS", "CoC"))
    (port,) = free_ports(1)
    istat = Organisation("ISTAT", frozenset(["Enterprise"]), f"http://127.0.0.1:{port}/")
    newcomer = peer_in(tmp_path / "ISTAT", federation.with_organisation(istat), "ISTAT")
    with running([inps, coc]):
        assert inps.stop() == 0
        with running([inps, newcomer]):
            subscribe(newcomer, "S1")
            inps.ask(change("e1"))
            assert read(newcomer, "S1", 1) == ["e1"]
            assert not [
                each for each in warnings(newcomer) if "put back" in each or "remembers" in each
            ]
