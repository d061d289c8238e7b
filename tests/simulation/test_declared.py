"""Tests of the rule Declared: which setbacks must be recorded, and which are counted apart."""

from __future__ import annotations

import math

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation, Organisation
from qns.iil.requests import Publish, Published, Subscribe, Subscribed
from qns.peer.turn import Record
from qns.simulation.declared import ONLY_VIEWS, RULE, UNNOTICED, Declared
from qns.simulation.findings import Findings
from qns.simulation.ledger import Ledger
from qns.simulation.world import TUNING

TAKEN = {"t": 12.0, "org": "C", "do": "take", "source": "P", "event": "e1"}
STABLE = {"t": 13.0, "org": "P", "do": "stable", "sub": "s1", "producer": "C"}


@pytest.fixture
def ledger() -> Ledger:
    """P acknowledged an event and a subscription at 11 s, and went back from 20 s to 10 s."""
    found = Ledger(TUNING)
    members = {name: Organisation(name, frozenset({"Report"})) for name in ("P", "C")}
    found.document_changed(0.0, Federation("weather", WEATHER, members))
    event = EventReader(WEATHER).from_fields({"id": "e1", "class": "Report", "source": "P"})
    published = found.ask(10.5, "P", Publish(event))
    subscribed = found.ask(10.5, "P", Subscribe("user", "Report", id="s1"))
    assert published is not None
    assert subscribed is not None
    found.grant(11.0, published, Published("e1", ()))
    found.grant(11.0, subscribed, Subscribed("s1", (), math.inf))
    found.restored(20.0, "P", 10.0)
    found.process_started(20.0, "P", 0.0)
    return found


def judge(ledger: Ledger, *history: Record, setbacks: frozenset[str] = frozenset()) -> Findings:
    findings = Findings()
    Declared(ledger, history, findings, setbacks).judge()
    return findings


def test_setback_that_a_member_has_an_event_of_must_be_recorded(ledger: Ledger) -> None:
    assert judge(ledger, TAKEN).broken[RULE] == 1


@pytest.mark.parametrize(
    "record",
    [
        {"t": 21.0, "org": "P", "do": "start", "restored": True},
        {"t": 21.0, "org": "C", "do": "rewind", "source": "P"},
        {"t": 21.0, "org": "C", "do": "skip", "source": "P"},
    ],
)
def test_record_of_either_peer_declares_the_setback(ledger: Ledger, record: Record) -> None:
    findings = judge(ledger, TAKEN, record)
    assert (findings.asked[RULE], findings.broken[RULE]) == (1, 0)


def test_setback_of_a_host_that_did_not_start_before_the_next_one_is_not_judged(
    ledger: Ledger,
) -> None:
    ledger.starts["P"].clear()
    ledger.restored(22.0, "P", 18.0)
    ledger.process_started(22.0, "P", 0.0)
    assert not judge(ledger, TAKEN).asked[RULE]


def test_status_of_the_peer_declares_the_setback(ledger: Ledger) -> None:
    assert not judge(ledger, TAKEN, setbacks=frozenset({"P"})).violations


def test_record_from_before_the_setback_declares_nothing(ledger: Ledger) -> None:
    early = {"t": 19.0, "org": "P", "do": "start", "restored": True}
    assert judge(ledger, TAKEN, early).broken[RULE] == 1


def test_setback_is_counted_apart_if_no_member_has_evidence(ledger: Ledger) -> None:
    findings = judge(ledger)
    assert not findings.asked[RULE]
    assert findings.apart == {UNNOTICED: 1}


def test_setback_is_counted_apart_if_the_member_with_the_event_went_back_too(
    ledger: Ledger,
) -> None:
    ledger.restored(25.0, "C", 5.0)
    findings = judge(ledger, TAKEN)
    assert not findings.asked[RULE]
    assert findings.apart == {UNNOTICED: 1}


def test_setback_that_only_a_view_shows_is_counted_apart(ledger: Ledger) -> None:
    assert judge(ledger, STABLE).apart == {ONLY_VIEWS: 1}


def test_setback_that_undid_nothing_is_not_judged(ledger: Ledger) -> None:
    ledger.restores["P"].clear()
    ledger.restored(20.0, "P", 19.0)
    findings = judge(ledger, TAKEN)
    assert not findings.asked
    assert not findings.apart
