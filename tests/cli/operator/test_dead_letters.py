"""Tests of `qns peer dead-letters` with real peers: a Quality Factory uses an id twice."""

from __future__ import annotations

from typing import Any

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import AGENCIES
from qns.iil.requests import AcknowledgeDeliveries, Deliveries, Publish, PullDeliveries, Subscribe
from tests.cli.conftest import Cli
from tests.runtime.peers import PeerProcess, eventually, wait_until_stable


def publish(peer: PeerProcess, id: str, name: str) -> None:
    fields = {"id": id, "class": "Enterprise/Holder", "source": "CoC", "data": {"Name": name}}
    peer.ask(Publish(EventReader(AGENCIES).from_fields(fields)))


def delivered(peer: PeerProcess) -> list[tuple[int, str]]:
    answer = peer.ask(PullDeliveries("maria", "all"))
    assert isinstance(answer, Deliveries)
    return [(each.number, each.event) for each in answer.deliveries]


def letters(cli: Cli, peer: PeerProcess, *options: str) -> list[dict[str, Any]]:
    found = cli("peer", "dead-letters", "list", peer.configuration, "--json", *options).json
    rows: list[dict[str, Any]] = found["rows"]
    assert len(rows) == found["total"]
    return rows


def make_dead_letter(cli: Cli, peers: dict[str, PeerProcess], id: str) -> dict[str, Any]:
    """Publishes two events under one id; INPS rejects the second. Returns the dead letter."""
    inps, coc = peers["INPS"], peers["CoC"]
    before = len(letters(cli, coc))
    publish(coc, id, "M. Mecalla")
    eventually(lambda: id in [event for _, event in delivered(inps)], f"{id} is delivered")
    publish(coc, f"{id}-later", "M. Rossi")  # so that CoC forgets the id
    eventually(lambda: f"{id}-later" in [event for _, event in delivered(inps)], "it is delivered")
    eventually(lambda: coc.metrics()["qns_events_kept"] == before, "CoC has forgotten both")
    publish(coc, id, "Another Person")
    eventually(lambda: len(letters(cli, coc)) == before + 1, "INPS has rejected it")
    return letters(cli, coc)[-1]


@pytest.fixture(scope="module")
def subscribed(peers: dict[str, PeerProcess]) -> dict[str, PeerProcess]:
    peers["INPS"].ask(Subscribe("maria", "Enterprise/Holder", id="all"))
    wait_until_stable(peers["INPS"], "maria")
    return peers


def test_dead_letter_is_listed_shown_and_redelivered(
    subscribed: dict[str, PeerProcess], cli: Cli
) -> None:
    inps, coc = subscribed["INPS"], subscribed["CoC"]
    letter = make_dead_letter(cli, subscribed, "d1")
    assert (letter["receiver"], letter["source"], letter["event"]) == ("INPS", "CoC", "d1")
    assert letter["reason"] == "CoC has published another event with id d1"
    assert "see qns peer dead-letters list" in str(coc.health()["reasons"])
    listed = cli("peer", "dead-letters", "list", coc.configuration).out.splitlines()
    assert listed[0].split() == ["number", "age", "receiver", "source", "event", "class", "reason"]
    assert listed[1].split()[3:7] == ["INPS", "CoC", "d1", "Enterprise/Holder"]
    number = letter["number"]
    shown = cli("peer", "dead-letters", "show", coc.configuration, number).out
    assert "  reason    CoC has published another event with id d1\n" in shown
    assert "Another Person" not in shown
    shown = cli("peer", "dead-letters", "show", coc.configuration, number, "--payload").out
    assert "Name = Another Person" in shown
    assert letters(cli, coc, "--receiver", "INAIL") == []
    inps.ask(AcknowledgeDeliveries("maria", "all", 2))  # INPS forgets the first event
    eventually(lambda: inps.metrics()["qns_events_kept"] == 0, "INPS has forgotten the first event")
    outcome = cli("peer", "dead-letters", "redeliver", coc.configuration, "--receiver", "INPS")
    assert (outcome.status, outcome.out) == (0, f"sent again: {number}\n")
    eventually(lambda: delivered(inps) == [(3, "d1")], "the second event is delivered")
    assert letters(cli, coc) == []


def test_dead_letter_is_dropped_only_with_yes_and_recorded(
    subscribed: dict[str, PeerProcess], cli: Cli
) -> None:
    coc = subscribed["CoC"]
    number = make_dead_letter(cli, subscribed, "d2")["number"]
    outcome = cli("peer", "dead-letters", "drop", coc.configuration, number)
    assert outcome.status == 2
    assert "nothing was dropped" in outcome.err
    assert len(letters(cli, coc)) == 1
    outcome = cli("peer", "dead-letters", "drop", coc.configuration, number, "--yes", "--json")
    assert outcome.json == {"done": [number], "refused": []}
    assert letters(cli, coc) == []
    again = cli("peer", "dead-letters", "drop", coc.configuration, number, "--yes")
    assert again.status == 1
    assert f"not dropped: {number}: there is no dead letter {number}" in again.out
    records = [
        each for each in coc.records() if each["message"].startswith("a dead letter was dropped")
    ]
    assert [(each["to"], each["event"]) for each in records] == [("INPS", "d2")]
    both = cli(
        "peer", "dead-letters", "drop", coc.configuration, number, "--receiver", "X", "--yes"
    )
    assert "or both are" in both.err


def test_judge_counts_the_dropped_dead_letter(
    subscribed: dict[str, PeerProcess], cli: Cli, tmp_path: Any
) -> None:
    for peer in subscribed.values():
        peer.stop()
    stores = [peer.configuration.with_name(f"{name}.db") for name, peer in subscribed.items()]
    history = tmp_path / "history.jsonl"
    assert cli("history", *stores, "--out", history).status == 0
    assert '"discard"' in history.read_text(encoding="utf-8")
    assert "1 dead letters dropped" in cli("verify", history).out
