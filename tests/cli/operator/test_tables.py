"""Tests of `qns peer tables` with real peers."""

from __future__ import annotations

from typing import Any

from qns.iil.requests import Subscribe
from tests.cli.conftest import Cli
from tests.runtime.peers import PeerProcess, change, eventually


def tables(cli: Cli, peer: PeerProcess, *options: str) -> Any:
    return cli("peer", "tables", peer.configuration, "--json", *options).json


def test_tables_show_both_ends_of_a_subscription(peers: dict[str, PeerProcess], cli: Cli) -> None:
    inps, coc = peers["INPS"], peers["CoC"]
    inps.ask(Subscribe("maria", "Enterprise/Holder where Name.accuracy <= medium", id="bad"))
    element = "Enterprise/Holder where Name.accuracy <= 0.6"

    def is_in_force() -> bool:
        rows = tables(cli, inps)["views"]["rows"]
        return all((row["state"], row["pending"]) == ("in force", 0) for row in rows)

    eventually(is_in_force, "the view is in force at both producers")
    assert tables(cli, inps)["merge"] == {"total": 1, "rows": [element]}
    (row,) = tables(cli, coc)["external"]["rows"]
    assert (row["consumer"], row["elements"]["rows"]) == ("INPS", [element])
    coc.ask(change("e1", "CoC"))

    def is_acknowledged() -> bool:
        rows = tables(cli, coc)["streams_to"]["rows"]
        return {row["consumer"]: row["lag_events"] for row in rows} == {"INPS": 0, "INAIL": 0}

    eventually(is_acknowledged, "INPS has acknowledged e1")
    printed = cli("peer", "tables", coc.configuration).out
    for title in ("External Merge Table", "streams to consumers", "custody", "links"):
        assert f"\n{title}" in printed
    assert any(line.split()[:4] == ["INPS", "1", "1", "0"] for line in printed.splitlines())


def test_tables_are_cut_at_the_limit_and_say_so(peers: dict[str, PeerProcess], cli: Cli) -> None:
    for number in range(3):
        text = f'Enterprise where Code = "{number}"'
        peers["INAIL"].ask(Subscribe("anna", text, id=f"c{number}"))
    found = tables(cli, peers["INAIL"], "--limit", "1")
    assert (found["merge"]["total"], len(found["merge"]["rows"])) == (3, 1)
    assert (found["links"]["total"], len(found["links"]["rows"])) == (2, 1)
    printed = cli("peer", "tables", peers["INAIL"].configuration, "--limit", "1").out
    assert "  … and 2 more: see --limit\n" in printed
    assert cli("peer", "tables", peers["INAIL"].configuration, "--limit", "0").status == 2


def test_tables_show_why_a_link_fails(peers: dict[str, PeerProcess], cli: Cli) -> None:
    peers["CoC"].kill()

    def problem() -> str:
        rows = tables(cli, peers["INPS"])["links"]["rows"]
        return str(next(row["problem"] for row in rows if row["other"] == "CoC"))

    eventually(lambda: "refused" in problem(), "INPS sees that nobody listens at CoC")
    peers["CoC"].start()
    eventually(lambda: problem() == "", "the link is well again")
