"""Limits: an accepted subscription can be printed and parsed again, in bounded time."""

from __future__ import annotations

import time

import pytest

from qns.cbr.domains import DECIMAL
from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.d2q.document import DataObject, Document
from qns.d2q.document_xml import read_document, write_document
from qns.d2q.dtd import read_dtd, write_dtd
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.language import parse_subscription
from qns.d2q.lexical import write_number
from qns.d2q.printing import write_readable, write_thesis
from qns.d2q.schema import Schema
from qns.d2q.schema_xml import read_schema, write_schema
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import read_subscription, write_subscription
from qns.d2q.terms import (
    MAX_NORMAL_TERMS,
    MAX_TERMS,
    MAX_VALUE_CHARACTERS,
)
from qns.errors import LimitExceeded

UNSEEN = "\U0010fffd"  # takes twelve characters when it is printed
LINEAGE = ["/".join(["N" * 200] * depth) for depth in range(1, 65)]
DEEP = LINEAGE[-1]
LONG_NAME = f"{DEEP}.S"  # no shorter name is unique: all enclosing classes have an S and this name
WIDE = Schema(
    "wide",
    {path: {"S": "string"} for path in LINEAGE}
    | {"C": {f"p{number}": "dateTime" for number in range(MAX_NORMAL_TERMS)}},
)
NORMAL = range(MAX_NORMAL_TERMS)
DIRECTION = "Report/Wind where Direction"


def within(attribute: str, number: int) -> str:
    return (
        f"{attribute} > 2024-01-31T12:00:00.{number:06}Z"
        f" and {attribute} < 2025-01-31T12:00:00.{number:06}Z"
    )


LARGEST = {
    "numbers": f"{DIRECTION} in {{{', '.join(str(2 * n) for n in NORMAL)}}}",
    "ranges": f"{DIRECTION} in {{{', '.join(f'{5 * n} to {5 * n + 2}' for n in NORMAL)}}}",
    "gaps": f"{DIRECTION} >= 0 and "
    + " and ".join(f"Direction != {2 * n + 1}" for n in NORMAL[:-1]),
    "two terms for one": "C where " + " and ".join(within(f"p{n}", n) for n in NORMAL),
    "decimals": "Report/Wind where Speed in {"
    + ", ".join(f"{n + 1}.5e-250 to {n + 1}.75e-250" for n in NORMAL)
    + "}",
    "excluded": "Report where " + " and ".join(f"Station != 'x{n}'" for n in NORMAL),
    "fragments": "Report where " + " and ".join(f"Station contains 'x{n:04}y'" for n in NORMAL),
    "the same condition": "Report where " + " and ".join(["Station != 'x'"] * MAX_TERMS),
    "one string": f"Report where Station = '{UNSEEN * MAX_VALUE_CHARACTERS}'",
    "sources": "C from "
    + ", ".join(f"'{UNSEEN * 5}{n:04}'" for n in range(4_096))
    + " where "
    + " and ".join(within(f"p{n}", n) for n in NORMAL),
    "long names": f"{DEEP} where " + " and ".join(f"{LONG_NAME} != '{n}'" for n in range(15)),
    "a long name with a long list": f"{DEEP} where {LONG_NAME} in {{"
    + ", ".join(f"'{n}'" for n in NORMAL)
    + "}",
    "transitions": "Report/Wind where Speed.accuracy in {"
    + ", ".join(f"{n / 10_000}" for n in range(0, 4_000, 2))
    + "} and Speed.accuracy was in {"
    + ", ".join(f"{n / 10_000}" for n in range(1, 4_000, 2))
    + "} and Speed.accuracy changes by 0.1",
}


@pytest.mark.parametrize("text", LARGEST.values(), ids=LARGEST)
def test_largest_subscriptions_print_and_parse(text: str) -> None:
    schema = WEATHER if text.startswith("Report") else WIDE
    started = time.perf_counter()
    subscription = parse_subscription(text, schema)
    assert time.perf_counter() - started < 10
    for again in spelled_again(subscription, schema):
        assert again == subscription


def spelled_again(subscription: Subscription, schema: Schema) -> list[Subscription]:
    return [
        parse_subscription(write_readable(subscription, schema), schema),
        parse_subscription(write_thesis(subscription, schema), schema),
        read_subscription(write_subscription(subscription, schema), schema),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{DIRECTION} in {{{', '.join(str(2 * n) for n in range(MAX_NORMAL_TERMS + 1))}}}",
            "4,097 terms in normal form (at most 4,096: split it)",
        ),
        (
            f"{DIRECTION} != 0 and {DIRECTION[18:]} in {{{'1, ' * MAX_TERMS}1}}",
            "a list of more than 8,192 elements",
        ),
        (f"Report where Station = '{'x' * 40_001}'", "40,001 characters in strings and sources"),
        (
            f"Report where Station = '{'x' * 20_001}' and Region = '{'x' * 20_000}'",
            "40,001 characters in strings and sources",
        ),
        (
            f"Report from A where Station = '{'x' * 40_000}'",
            "40,001 characters in strings and sources",
        ),
        (f"Report from '{'x' * 40_001}'", "40,001 characters in strings and sources"),
        (
            f"{DEEP} where " + " and ".join(f"{LONG_NAME} != '{n}'" for n in range(16)),
            "characters in names (at most 200,000: split it)",
        ),
        (f"Report where Station = '{'x' * 1_000_000}'", "a string of 1,000,000 characters"),
    ],
)
def test_subscription_beyond_a_limit_is_rejected(text: str, said: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        parse_subscription(text, WEATHER if text.startswith("Report") else WIDE)
    assert said in str(caught.value)
    assert caught.value.line == 1


def test_error_points_at_the_condition_that_contradicts_a_thousand_others() -> None:
    conditions = " and ".join(f"Station contains 'x{n:04}'" for n in range(2_000))
    text = f"Report where {conditions} and Station = 'y' and Region exists"
    with pytest.raises(Exception, match="no event can satisfy") as caught:
        parse_subscription(text, WEATHER)
    assert getattr(caught.value, "column", None) == text.index("Station = 'y'") + 1


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1e285, "1e285"),
        (-1.5e285, "-1.5e285"),
        (1e-200, "1e-200"),
        (1.25e-200, "1.25e-200"),
        (1e15, "1000000000000000"),
        (1e-15, "0.000000000000001"),
        (0.3, "0.3"),
        (0.0, "0"),
        (12.50, "12.5"),
    ],
)
def test_long_numbers_are_written_with_an_exponent(number: float, written: str) -> None:
    assert write_number(number) == written
    assert float(written) == number


def test_numbers_with_an_exponent_are_read_in_all_formats() -> None:
    key = DECIMAL.key(1e285)
    event = Event("e", "Report/Wind", "Met01", {"Report/Wind.Speed": key})
    written = write_event(event, WEATHER)
    assert b">1e285<" in written
    assert read_event(written, WEATHER) == event
    wind = DataObject("Report/Wind", {"Report/Wind.Speed": key}, id="w")
    document = Document("weather", (wind,))
    assert read_document(write_document(document, WEATHER), WEATHER) == document
    schema = Schema("tiny", {"A": {"X": "string"}}, {"hardly": 1e-200, "low": 0.3})
    assert "hardly=1e-200" in write_dtd(schema)
    assert read_dtd(write_dtd(schema)) == schema
    assert read_schema(write_schema(schema)) == schema


def test_length_of_written_decimals_is_bounded() -> None:
    for key in (DECIMAL.lo, DECIMAL.hi, 1, -1, DECIMAL.hi // 2, DECIMAL.lo // 3):
        assert len(write_number(float(str(DECIMAL.value(key))))) <= 24
