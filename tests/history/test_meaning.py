"""Tests that the judge's own matching agrees with the routing core. They share no code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_readable, write_thesis
from qns.errors import QnsError
from qns.history.meaning import meaning_of, plain_event
from tests.strategies import ALL_TYPES, events, subscriptions

PART = "Thing/Part"


@given(subscription=subscriptions(), event=events())
def test_meaning_of_both_notations_agrees_with_the_routing_core(
    subscription: Subscription, event: Event
) -> None:
    plain = plain_event(ALL_TYPES, write_event_json(event, ALL_TYPES))
    for text in (write_readable(subscription, ALL_TYPES), write_thesis(subscription, ALL_TYPES)):
        meaning = meaning_of(ALL_TYPES, text)
        assert meaning.matches(plain) == subscription.matches(event)
        assert bool(meaning.mismatch(plain)) != subscription.matches(event)


def case(path: str, **fields: Any) -> dict[str, Any]:
    return {"id": "e", "class": path, "source": "INPS", **fields}


CASES = [
    ("Thing", case("Thing/Part/Screw"), True),
    ("only Thing", case(PART), False),
    ("Thing from INAIL", case("Thing"), False),
    ("Thing from INAIL, INPS", case("Thing"), True),
    ("Thing where Count != 3", case("Thing"), False),
    ("Thing where Count != 3", case("Thing", data={"Count": 4}), True),
    ("Thing where Count exists", case("Thing", quality={"Count.accuracy": 1}), False),
    ("Thing where Count in {< 2, 5 to 7}", case("Thing", data={"Count": 7}), True),
    ("Thing where Count in {< 2, 5 to 7}", case("Thing", data={"Count": 2}), False),
    (f"{PART} where Weight > 0.1", case(PART, data={"Weight": 0.1}), False),
    (f"{PART} where Weight between 1 and 2", case(PART, data={"Weight": 2}), True),
    (f"{PART} where Broken = true", case(PART, data={"Broken": True}), True),
    (f"{PART} where Broken != true", case(PART, data={"Broken": True}), False),
    (f'{PART} where Part.Code contains "B"', case(PART, data={"Part.Code": "abc"}), False),
    ("Thing where Since < 2024-03-01", case("Thing", data={"Since": "2024-02-29"}), True),
    (
        "Thing/Part/Screw where Checked >= 2024-01-31T12:00:00Z",
        case("Thing/Part/Screw", data={"Checked": "2024-01-31T13:00:00+01:00"}),
        True,
    ),
    # Quality: the class itself only, and transitions need a previous value (semantics §3)
    ("Thing where Count.accuracy >= 0", case(PART, data={"Count": 1}), False),
    (
        "Thing where Count.accuracy <= medium",
        case("Thing", quality={"Count.accuracy": "MEDIUM"}),
        True,
    ),
    (
        "Thing where Count.accuracy = 0.3",
        case("Thing", quality={"Count.accuracy": 0.1 + 0.2}),
        True,
    ),
    ("Thing where Count.accuracy was >= 0.5", case("Thing", quality={"Count.accuracy": 1}), False),
    (
        "Thing where Count.accuracy was >= 0.5",
        case("Thing", previous={"Count.accuracy": 0.7}),
        False,
    ),
    (
        "Thing where Count.accuracy changes by 0.3",
        case("Thing", quality={"Count.accuracy": 0.4}, previous={"Count.accuracy": 0.7}),
        True,
    ),
    (
        "Thing where Count.accuracy falls below 0.7",
        case("Thing", quality={"Count.accuracy": 0.4}, previous={"Count.accuracy": 0.7}),
        True,
    ),
    (
        "Thing where Count.accuracy rises above 0.4",
        case("Thing", quality={"Count.accuracy": 0.4}, previous={"Count.accuracy": 0.3}),
        False,
    ),
]


@pytest.mark.parametrize(("text", "fields", "expected"), CASES)
def test_worked_cases_match_as_expected(text: str, fields: dict[str, Any], expected: bool) -> None:
    plain = plain_event(ALL_TYPES, fields)
    assert meaning_of(ALL_TYPES, text).matches(plain) is expected
    event = EventReader(ALL_TYPES).from_fields(fields)
    assert parse_subscription(text, ALL_TYPES).matches(event) is expected


@pytest.mark.parametrize(
    ("text", "fields", "words"),
    [
        ("Thing/Part", case("Thing"), "its class is Thing"),
        ("Thing from INAIL", case("Thing"), "INPS is not one of the subscription's sources"),
        ("Thing where Count > 3", case("Thing"), "it carries no Thing.Count"),
        ("Thing where Count > 3", case("Thing", data={"Count": 2}), "its Thing.Count is 2"),
        (
            "Thing where Count.accuracy falls below 0.5",
            case("Thing", quality={"Count.accuracy": 0.25}),
            "its Thing.Count.accuracy is 0.25 and its previous value is missing",
        ),
        (
            "Thing where Count.accuracy falls below 0.5",
            case("Thing", quality={"Count.accuracy": 0.25}, previous={"Count.accuracy": 0}),
            "its Thing.Count.accuracy is 0.25 and was 0",
        ),
        ("Thing", case("Thing"), ""),
    ],
)
def test_mismatch_returns_why_an_event_does_not_match(
    text: str, fields: dict[str, Any], words: str
) -> None:
    assert meaning_of(ALL_TYPES, text).mismatch(plain_event(ALL_TYPES, fields)) == words


@pytest.mark.parametrize(
    "text",
    [
        "Thing where Cont > 3",
        "Nothing",
        "Thing where Count contains 3",
        'Thing where Code > "a"',
        "Thing where Count was > 3",
        "Thing where Count > three",
        "Thing where Count.accuracy > 2",
        "Thing where Count.accuracy > lowish",
        "Thing/Part where Weight > NaN",
        "Thing/Part where Broken = yes",
        "Thing/Part where Thing.Code.accuracy > 0.5",
        "Thing where Since > 2024-02-30",
        "Thing/Part/Screw where Checked > 2024-01-31T12:00:00",
        "Thing where",
    ],
)
def test_invalid_subscription_text_is_rejected(text: str) -> None:
    with pytest.raises(QnsError):
        meaning_of(ALL_TYPES, text)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "e", "class": "Thing"},
        case("Nothing"),
        case("Thing", data={"Count": 1.5}),
        case("Thing", data={"Count": "1"}),
        case("Thing", data={"Code": 1}),
        case("Thing", data={"Since": "yesterday"}),
        case("Thing", data=[]),
        case("Thing", quality={"Count": 1}),
        case("Thing", quality={"Count.accuracy": 1.5}),
        case("Thing", quality={"Count.accuracy": float("nan")}),
        case(PART, quality={"Thing.Code.accuracy": 1}),
        case(PART, data={"Weight": float("inf")}),
    ],
)
def test_invalid_event_is_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(QnsError):
        plain_event(ALL_TYPES, fields)
