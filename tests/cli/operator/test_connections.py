"""Tests of `qns peer connections`: the causes, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any

import pytest

from qns.runtime.causes import NO_HTTP, REFUSED, RESOLVES_NOT, TIMEOUT
from qns.runtime.connections import _REMEDIES, NO_PEER
from tests.cli.conftest import Cli
from tests.cli.other_program import other_program
from tests.runtime.peers import PeerProcess, agencies_on_loopback, configure, eventually


def findings(cli: Cli, peer: PeerProcess, what: str) -> list[dict[str, Any]]:
    found = cli("peer", "connections", peer.configuration, "--json").json_lines
    return [each for each in found if each["what"] == what]


def words(cli: Cli, peer: PeerProcess, what: str) -> str:
    return " | ".join(f"{each['words']} ({each['remedy']})" for each in findings(cli, peer, what))


def test_connections_in_order_have_status_0(peers: dict[str, PeerProcess], cli: Cli) -> None:
    def is_in_order() -> bool:
        outcome = cli("peer", "connections", peers["INPS"].configuration)
        return outcome.status == 0 and outcome.out.count("OK ") == 4

    eventually(is_in_order, "INPS has exchanged hellos with both")
    assert f"{peers['CoC'].endpoint} answers in " in words(cli, peers["INPS"], "CoC")
    assert "its clock differs by" in words(cli, peers["INPS"], "CoC")


def test_peer_that_does_not_run_is_named_with_the_cause(
    peers: dict[str, PeerProcess], cli: Cli
) -> None:
    peers["CoC"].kill()
    outcome = cli("peer", "connections", peers["INPS"].configuration)
    assert outcome.status == 1
    line = f"{peers['CoC'].endpoint}: {REFUSED} (ask its operator to start it, or correct"
    assert line in outcome.out
    refused = f"the last call of this peer failed: {REFUSED}"
    eventually(lambda: refused in words(cli, peers["INPS"], "CoC"), "INPS has called CoC")
    peers["CoC"].start()
    eventually(
        lambda: cli("peer", "connections", peers["INPS"].configuration).status == 0,
        "everything is in order again",
    )


@contextmanager
def inps_with_coc_at(endpoint: str, folder: Path) -> Iterator[PeerProcess]:
    """Starts only INPS, whose document has this endpoint for CoC."""
    federation = agencies_on_loopback()
    changed = {
        **federation.organisations,
        "CoC": replace(federation["CoC"], endpoint=endpoint),
    }
    document = replace(federation, organisations=changed)
    process = PeerProcess(configure(folder, document, "INPS"), federation["INPS"].endpoint)
    process.start()
    try:
        yield process
    finally:
        process.kill()


HEALTHY = {"organisation": "CoC", "federation": "agencies", "document": 1, "time": 0.0}


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        (["a web page"], f"{NO_PEER} (another program uses the port"),
        ({**HEALTHY, "organisation": "INAIL"}, "is the peer of INAIL (correct the endpoint"),
        ({**HEALTHY, "federation": "weather"}, "it is a peer of the federation weather, not of"),
        ({**HEALTHY, "document": 7}, "it has the newer version 7 of the federation document"),
        ({**HEALTHY, "document": 0}, "it has the older version 0 of the federation document"),
        ({**HEALTHY, "time": 3600.0}, "behind (set the clocks by NTP"),
    ],
)
def test_cause_is_named_with_a_remedy(state: object, cause: str, cli: Cli, tmp_path: Path) -> None:
    if isinstance(state, dict) and not state["time"]:
        state["time"] = time()
    with other_program(state) as other, inps_with_coc_at(other.endpoint, tmp_path) as inps:
        assert cause in words(cli, inps, "CoC")
        check = cli("peer", "check", inps.configuration).out
        assert cause in check, "peer check uses the same function"


def test_every_cause_of_a_failed_call_has_a_remedy() -> None:
    assert _REMEDIES.keys() >= {RESOLVES_NOT, REFUSED, TIMEOUT, NO_PEER, NO_HTTP}


def test_reason_for_which_a_peer_refuses_hellos_is_reported(cli: Cli, tmp_path: Path) -> None:
    """The document of CoC does not have INPS."""
    federation = agencies_on_loopback()
    smaller = federation.without("INPS")
    (tmp_path / "coc").mkdir()
    (tmp_path / "inps").mkdir()
    coc = PeerProcess(
        configure(tmp_path / "coc", replace(smaller, version=1), "CoC"),
        federation["CoC"].endpoint,
    )
    inps = PeerProcess(
        configure(tmp_path / "inps", federation, "INPS"), federation["INPS"].endpoint
    )
    try:
        coc.start()
        inps.start()
        eventually(
            lambda: "Hello was refused: INPS is not a member" in words(cli, inps, "CoC"),
            "CoC has refused the hello of INPS",
        )
    finally:
        for process in (coc, inps):
            if process.process is not None:
                process.kill()
