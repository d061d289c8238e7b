"""Tests of `qns peer drain` and `qns peer resume`, with real peer processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qns.errors import Busy
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    ListSubscriptions,
    Ok,
    Published,
    PullDeliveries,
    Renew,
    Request,
    Subscribe,
    Subscribed,
    Subscriptions,
)
from tests.cli.conftest import ROOT, Cli
from tests.runtime.peers import PeerProcess, agencies, change, eventually

pytestmark = pytest.mark.slow

HOLDERS = "Enterprise/Holder"


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[dict[str, PeerProcess]]:
    with agencies(tmp_path) as started:
        yield started


def subscribe(peer: PeerProcess, id: str) -> None:
    """Subscribes and waits until the subscription is stable at all producers."""
    assert isinstance(peer.ask(Subscribe("anna", HOLDERS, id=id)), Subscribed)

    def is_stable() -> bool:
        listed = peer.ask(ListSubscriptions("anna"))
        assert isinstance(listed, Subscriptions)
        return not any(each.pending for each in listed.subscriptions)

    eventually(is_stable, f"{id} is stable")


def is_refused(peer: PeerProcess, request: Request) -> bool:
    """True if the request is refused because the peer drains."""
    try:
        peer.ask(request)
    except Busy as refused:
        return "the peer is draining" in refused.problem
    return False


def pulled(peer: PeerProcess, id: str) -> list[str]:
    found = peer.ask(PullDeliveries("anna", id), wait_s=1.0)
    assert isinstance(found, Deliveries)
    return [each.event for each in found.deliveries]


def draining_command(peer: PeerProcess) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "qns.cli", "peer", "drain", str(peer.configuration), "--wait"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_draining_peer_refuses_new_work_and_goes_on_with_the_old(
    peers: dict[str, PeerProcess], cli: Cli
) -> None:
    inps, coc = peers["INPS"], peers["CoC"]
    subscribe(inps, "mine")
    subscribe(coc, "theirs")
    outcome = cli("peer", "drain", inps.configuration)
    assert outcome.status == 0
    assert outcome.out.startswith("INPS is drain")
    for request in (change("e1"), Subscribe("anna", HOLDERS, id="new")):
        assert is_refused(inps, request)
    health = inps.health()
    assert health["status"] == "degraded"
    assert any("qns peer resume" in reason for reason in health["reasons"])
    # Events of others still arrive, and users can still read, acknowledge and renew.
    coc.ask(change("e2", source="CoC"))
    eventually(lambda: "e2" in pulled(inps, "mine"), "e2 is delivered")
    assert isinstance(inps.ask(Renew("anna", "mine", 3_600.0)), Subscribed)
    assert isinstance(inps.ask(AcknowledgeDeliveries("anna", "mine", 1)), Ok)

    resumed = cli("peer", "resume", inps.configuration)
    assert resumed.out == "INPS accepts publications and subscriptions\n"
    assert isinstance(inps.ask(change("e1")), Published)
    again = cli("peer", "resume", inps.configuration)
    assert again.out == "INPS accepts publications and subscriptions; it was not draining\n"


def test_drain_survives_a_restart(peers: dict[str, PeerProcess], cli: Cli) -> None:
    inps = peers["INPS"]
    cli("peer", "drain", inps.configuration)
    for end in (inps.stop, inps.kill):
        end()
        inps.start()
        assert is_refused(inps, change("e1"))
    cli("peer", "resume", inps.configuration)
    inps.stop()
    inps.start()
    assert isinstance(inps.ask(change("e1")), Published)


def test_drain_waits_until_nothing_is_owed(peers: dict[str, PeerProcess], cli: Cli) -> None:
    inps, coc = peers["INPS"], peers["CoC"]
    subscribe(coc, "theirs")
    coc.kill()
    for number in range(3):
        inps.ask(change(f"e{number}"))
    work = cli("peer", "drain", "--json", inps.configuration).json
    assert work["draining"]
    assert not work["drained"]
    assert work["owed"] == {"CoC": 3}
    waiting = draining_command(inps)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(2.0)
    coc.start()
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert out.startswith("INPS is drained: owed nothing, custody 0")
    assert pulled(coc, "theirs") == ["e0", "e1", "e2"]


def test_waiting_drain_ends_when_the_peer_is_resumed(
    peers: dict[str, PeerProcess], cli: Cli
) -> None:
    inps, coc = peers["INPS"], peers["CoC"]
    subscribe(coc, "theirs")
    coc.kill()
    inps.ask(change("e1"))
    waiting = draining_command(inps)
    eventually(lambda: "draining" in str(inps.health()["reasons"]), "INPS drains")
    cli("peer", "resume", inps.configuration)
    out, _ = waiting.communicate(timeout=60)
    assert out == "INPS was resumed meanwhile\n"
