"""Tests of `qns why` with real peers, at the consumer and at the producer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.shipped import AGENCIES
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    Publish,
    PullDeliveries,
    Subscribe,
)
from tests.cli.conftest import Cli
from tests.runtime.peers import (
    QUICK,
    PeerProcess,
    agencies,
    change,
    eventually,
    wait_until_stable,
)

SUBSCRIPTIONS = {
    "bad": "Enterprise/Holder where Name.accuracy <= medium",
    "good": "Enterprise/Holder where Name.accuracy > medium",
    "elsewhere": "Enterprise/Holder from INAIL",
}
FIELDS = {
    "id": "w1",
    "class": "Enterprise/Holder",
    "source": "CoC",
    "data": {"Name": "M. Mecalla"},
    "quality": {"Name.Accuracy": "low"},
}


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PeerProcess]]:
    """CoC has published w1, which has reached `bad` at INPS."""
    with agencies(tmp_path_factory.mktemp("why"), f"history = true\n{QUICK}") as running:
        inps, coc = running["INPS"], running["CoC"]
        for id, text in SUBSCRIPTIONS.items():
            inps.ask(Subscribe("maria", text, id=id))
        wait_until_stable(inps, "maria")
        coc.ask(change("w1", "CoC"))

        def is_delivered() -> bool:
            answer = inps.ask(PullDeliveries("maria", "bad"))
            assert isinstance(answer, Deliveries)
            return bool(answer.deliveries)

        eventually(is_delivered, "w1 is delivered")
        yield running


def test_delivered_event_is_explained(peers: dict[str, PeerProcess], cli: Cli) -> None:
    outcome = cli("why", "w1", "bad", "--config", peers["INPS"].configuration)
    assert outcome.status == 0
    first, *rest = outcome.out.splitlines()
    assert first == "event w1 of CoC and subscription bad of INPS: delivered"
    assert "    yes Name.accuracy <= 0.6: the event has 0.3" in rest
    assert any("delivered as number 1; the user has not acknowledged it, at 2" in x for x in rest)
    assert any("history: " in x and "delivered to subscription bad as number 1" in x for x in rest)
    assert "M. Mecalla" not in outcome.out


@pytest.mark.parametrize(
    ("id", "condition"),
    [
        ("good", "    no  Name.accuracy > 0.6: the event has 0.3"),
        ("elsewhere", "    no  source in {INAIL}: the event has CoC"),
    ],
)
def test_condition_that_fails_is_named(
    peers: dict[str, PeerProcess], cli: Cli, id: str, condition: str
) -> None:
    outcome = cli("why", "w1", id, "--config", peers["INPS"].configuration)
    assert outcome.status == 1
    assert outcome.out.startswith(f"event w1 of CoC and subscription {id} of INPS: it does not ")
    assert condition in outcome.out.splitlines()


def test_why_at_the_producer_shows_how_far_the_event_has_come(
    peers: dict[str, PeerProcess], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QNS_CONFIG", str(peers["CoC"].configuration))
    peers["CoC"].ask(change("w2", "CoC"))
    found = cli("why", "w2", "--to", "INPS", "--json").json
    assert found["verdict"] in ("delivered", "on its way", "unknown")
    assert {"pub", "cross"} <= {each["do"] for each in found["history"]}
    peers["INPS"].kill()
    peers["CoC"].ask(change("w3", "CoC"))
    outcome = cli("why", "w3", "--to", "INPS")
    assert outcome.status == 0
    assert outcome.out.startswith("event w3 of CoC and INPS: on its way\n")
    assert "it is owed to INPS as number 3 and is not acknowledged" in outcome.out
    peers["INPS"].start()


@pytest.mark.parametrize("kind", ["json", "xml"])
def test_forgotten_event_is_explained_from_a_file(
    peers: dict[str, PeerProcess], cli: Cli, tmp_path: Path, kind: str
) -> None:
    inps = peers["INPS"]
    eventually(lambda: inps.metrics()["qns_deliveries_waiting"] >= 2, "INPS works again")
    inps.ask(AcknowledgeDeliveries("maria", "bad", 1))
    without = cli("why", "w1", "good", "--config", inps.configuration, "--source", "CoC")
    assert without.status == 1
    assert "this peer does not have the event" in without.out
    file = tmp_path / f"event.{kind}"
    if kind == "json":
        file.write_text(json.dumps(FIELDS), encoding="utf-8")
    else:
        file.write_bytes(write_event(EventReader(AGENCIES).from_fields(FIELDS), AGENCIES))
    outcome = cli("why", "w1", "good", "--config", inps.configuration, "--event", file)
    assert "    no  Name.accuracy > 0.6: the event has 0.3" in outcome.out
    delivered = cli("why", "w1", "bad", "--config", inps.configuration, "--event", file)
    assert delivered.status == 0, "the history knows that it was delivered"


def test_event_that_is_in_the_history_is_not_reported_as_never_published(
    peers: dict[str, PeerProcess], cli: Cli
) -> None:
    inail, coc = peers["INAIL"], peers["CoC"]
    inail.ask(Subscribe("ugo", "Enterprise", id="all"))
    wait_until_stable(inail, "ugo")
    fields = {"id": "w4", "class": "Enterprise", "source": "CoC"}
    coc.ask(Publish(EventReader(AGENCIES).from_fields(fields)))
    asked = ("why", "w4", "--to", "INPS", "--config", coc.configuration)
    eventually(lambda: not cli(*asked, "--json").json["is_here"], "INAIL has acknowledged w4")
    outcome = cli(*asked)
    assert "published as number" in outcome.out
    assert "never published here" not in outcome.out
    assert "does not have the event any more, but has had it" in outcome.out
    assert "to INAIL" not in outcome.out, "only INPS is asked about"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["w1", "bda"], "unknown subscription 'bda' (did you mean bad?)"),
        (["w1", "--event", "nothing.json"], "nothing.json: cannot be read"),
    ],
)
def test_wrong_question_is_refused(
    peers: dict[str, PeerProcess], cli: Cli, words: list[str], problem: str
) -> None:
    outcome = cli("why", *words, "--config", peers["INPS"].configuration)
    assert outcome.status == 2
    assert problem in outcome.err


def test_missing_configuration_is_reported(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QNS_CONFIG", raising=False)
    assert "give --config CONFIG.toml, or set QNS_CONFIG" in cli("why", "e1", "s").err
