"""Tests of `qns contains`."""

from __future__ import annotations

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES, WEATHER
from tests.cli.conftest import Cli

S3 = 'Enterprise/Holder where FiscalCode = "MCLMSM73H17H501F" and Name.accuracy <= medium'


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Enterprise/Holder", "Enterprise/Holder where Name.accuracy <= medium"),
        ("Enterprise/Holder where Name.accuracy <= medium", S3),
        (S3, S3.replace(" where", " from INPS, INAIL where")),
        ("<Enterprise>", "only enterprise/holder"),
    ],
)
def test_each_subscription_of_the_worked_case_contains_the_next(a: str, b: str, cli: Cli) -> None:
    assert cli("contains", "--schema", "agencies", a, b) == (
        0,
        "yes: every event that matches B matches A\n",
        "",
    )
    back = cli("contains", "--schema", "agencies", b, a)
    assert back.status == 1
    assert back.out.startswith("no: ")


def test_equivalent_subscriptions_are_reported_as_equivalent(cli: Cli) -> None:
    xml = '<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder"/>'
    outcome = cli("contains", "--schema", "agencies", xml, "only Enterprise/Holder")
    assert outcome == (0, "yes: they are equivalent: the same events match both\n", "")
    as_json = cli("contains", "--json", "--schema", "agencies", xml, "only Enterprise/Holder")
    assert as_json.json["contains"] is as_json.json["equivalent"] is True


@pytest.mark.parametrize(
    ("a", "b", "attribute"),
    [
        ("Report/Wind", "Report", "scope"),
        ("Report from Met01", "Report", "sources"),
        ("Report where Region exists", "Report", "Report.Region"),
        (
            "Report where Station starts with 'LI'",
            "Report where Station contains 'LI'",
            "Report.Station",
        ),
        (
            "Report where Observed > 2024-01-01T00:00:00Z",
            "Report where Observed >= 2024-01-01T00:00:00Z",
            "Report.Observed",
        ),
        (
            "Report/Wind where Speed.accuracy falls below 0.5",
            "Report/Wind where Speed.accuracy falls below 0.6",
            "Report/Wind.Speed.accuracy",
        ),
    ],
)
def test_witness_in_json_is_an_event_that_matches_b_and_not_a(
    a: str, b: str, attribute: str, cli: Cli
) -> None:
    outcome = cli("contains", "--schema", "weather", "--json", a, b)
    assert outcome.status == 1
    assert outcome.json["contains"] is False
    assert outcome.json["attribute"] == attribute
    event = EventReader(WEATHER).from_fields(outcome.json["witness"])
    assert parse_subscription(b, WEATHER).matches(event)
    assert not parse_subscription(a, WEATHER).matches(event)


def test_witness_is_printed_with_its_attributes(cli: Cli) -> None:
    outcome = cli(
        *("contains", "--schema", "weather"),
        "Report/Wind where Speed.accuracy falls below 0.5",
        'Report/Wind where Speed.accuracy falls below 0.6 and Station = "LIRF"',
    )
    assert outcome.out == (
        "no: B accepts values of Report/Wind.Speed.accuracy that A does not\n"
        "an event that matches B and not A:\n"
        "  Report/Wind from Anyone\n"
        '    Station = "LIRF"\n'
        "    Speed.accuracy = 0.5, before that 0.6\n"
    )


def test_errors_in_both_subscriptions_are_shown_at_their_places(cli: Cli) -> None:
    outcome = cli("contains", "--schema", "agencies", "Enterprise wher", "Firm\nwhere x")
    assert outcome.status == 2
    assert outcome.err == (
        "qns: error: A: expected 'from', 'where' or the end, found 'wher' (did you mean where?)\n"
        "  Enterprise wher\n"
        "             ^\n"
        "qns: error: B:2: expected an operator, found the end\n"
        "  where x\n"
        "         ^\n"
    )
    assert not outcome.out


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "<",
        "\0",
        "Enterprise where Code = \x1b",
        "<subscription",
        "<subscription/>",
        "é" * 300_000,
    ],
)
def test_wrong_text_is_an_error_without_a_stack_trace(text: str, cli: Cli) -> None:
    for arguments in ((text, "Enterprise"), ("Enterprise", text)):
        outcome = cli("contains", "--schema", "agencies", *arguments)
        assert outcome.status == 2
        assert outcome.err.startswith("qns: error: ")
        assert len(outcome.err) < 1_000
        assert "\x1b" not in outcome.err


def test_first_example_of_the_qns_help_answers_yes(cli: Cli) -> None:
    assert parse_subscription("Enterprise/Holder", AGENCIES)
    assert "qns contains --schema agencies 'Enterprise/Holder' " in cli("--help").out
