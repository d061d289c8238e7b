"""The demo computes the worked case of semantics §10, and the examples hold the same inputs."""

from __future__ import annotations

import json

import pytest

from qns.cli.worked_case import EVENTS, SUBSCRIPTIONS
from tests.cli.conftest import ROOT, Cli

AGENCIES = ROOT / "examples" / "agencies"


def test_the_examples_hold_the_inputs_of_the_demo() -> None:
    text = (AGENCIES / "subscriptions.tsv").read_text(encoding="utf-8")
    assert dict(line.split("\t") for line in text.splitlines() if "\t" in line) == SUBSCRIPTIONS
    events = (AGENCIES / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in events] == list(EVENTS)


@pytest.mark.parametrize(
    "told",
    [
        "S1 ⊃ S2 ⊃ S3 ⊃ S4",
        "INPS   U11 S1, U12 S2, U13 S3    M = {S1}",
        "INAIL  U21 S3, U22 S4            M = {S3}",
        "CoC    INPS → {S1}   INAIL → {S3}",
        "INAIL  INPS → {S1}",
        "INPS   INAIL → {S3}",
        "sent once to INPS   → U11, U12, U13",
        "sent once to INAIL  → U21            not U22: S4 does not listen to CoC",
        "sent once to INPS   → U11, U12       not U13",
        "erratum: the thesis prints U11 only, but e2 matches S2 of U12 too",
        "U14 joins INPS with S2  M = {S1}   nothing is sent",
        "U11 leaves INPS         M = {S2}   2 messages",
        "changeSub to CoC     −{S1}  +{S2}",
        "changeSub to INAIL   −{S1}  +{S2}",
    ],
)
def test_the_demo_tells_the_worked_case(told: str, cli: Cli) -> None:
    outcome = cli("demo")
    assert outcome.status == 0
    assert told in outcome.out
    assert not outcome.err


def test_e2_is_sent_to_inps_alone(cli: Cli) -> None:
    second_event = cli("demo").out.partition("e2  ")[2].partition("\n\n")[0]
    assert second_event.count("sent once to") == 1


def test_the_demo_fits_on_a_screen_or_two(cli: Cli) -> None:
    lines = cli("demo").out.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)


def test_the_worked_case_through_match(cli: Cli) -> None:
    outcome = cli(
        *("match", "--schema", "agencies"),
        *("--subscriptions", AGENCIES / "subscriptions.tsv"),
        *("--events", AGENCIES / "events.jsonl"),
    )
    assert outcome.status == 0
    assert outcome.json_lines == [
        {"event": "e1", "matches": ["S1", "S2", "S3"]},
        {"event": "e2", "matches": ["S1", "S2"]},
    ]
