"""Events in JSON: any input gives an event that XML can carry, or a QnsError."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from qns.cbr.domains import DATA_DOMAINS, DECIMAL, STRING
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.shipped import WEATHER
from qns.errors import LimitExceeded, QnsError, ValueRefused

NESTED = "[" * 1010 + "]" * 1010


def fields(**changes: Any) -> dict[str, Any]:
    return {"id": "a", "class": "Report", "source": "Met01"} | changes


def error_of(**changes: Any) -> QnsError:
    with pytest.raises(QnsError) as caught:
        EventReader(WEATHER).from_fields(fields(**changes))
    return caught.value


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ('"data": {"Station": %s}', "data 'Station': a value of type list is not a string"),
        ('"data": {"Observed": %s}', "a value of type list is not a dateTime"),
        ('"quality": {"Station.accuracy": %s}', "a value of type list is not a quality value"),
        ('"data": %s', "'data' is not a JSON object"),
        ('"id": %s', "event: 'id' is a value of type list"),
        ('"source": %s', "'source' is a value of type list"),
        ('"class": %s', "'class' is a value of type list"),
        ('"published": %s', "'published' is not a dateTime"),
        ('"available": %s', "'available' is a value of type list"),
    ],
)
def test_deep_nesting_is_rejected_with_a_short_message(part: str, said: str) -> None:
    line = '{"id": "a", "class": "Report", "source": "x", ' + part % NESTED + "}"
    with pytest.raises(QnsError) as caught:
        EventReader(WEATHER).read(line)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": ""}, "an event's id is empty"),
        ({"id": "a\0"}, "character U+0000"),
        ({"id": 10**5000}, "'id' is a whole number of more than 38 digits"),
        ({"id": True}, "'id' is True"),
        ({"id": None}, "'id' is missing"),
        ({"source": ""}, "an organisation's name is empty"),
        ({"source": " x "}, "' x ' is not an organisation's name (remove the blanks"),
        ({"source": "a\x1b[31m"}, "character U+001B"),
        ({"source": "x" * 500_000}, "a string of 500,000 characters"),
        ({"source": 7}, "'source' is 7"),
        ({"available": 10**5000}, "'available' is a whole number of more than 38 digits"),
        ({"available": True}, "'available' is True"),
        ({"available": -1}, "'available' is -1"),
        ({"data": {"Station": 10**5000}}, "a whole number of more than 38 digits is not a string"),
    ],
)
def test_event_that_xml_cannot_carry_is_rejected(changes: dict[str, Any], said: str) -> None:
    error = error_of(**changes)
    assert said in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 300


@pytest.mark.parametrize("id", ["e 1", " a ", "sì\n", "7", "-~"])
@pytest.mark.parametrize("source", ["Met01", "Camera di Commercio", "è"])
def test_event_accepted_as_json_can_be_written_as_xml(id: str, source: str) -> None:
    event = EventReader(WEATHER).from_fields(fields(id=id, source=source))
    assert read_event(write_event(event, WEATHER), WEATHER) == event


def test_last_of_two_equal_json_keys_is_used() -> None:
    line = '{"id": "a", "id": "b", "class": "Report", "source": "x"}'
    assert EventReader(WEATHER).read(line).id == "b"


HOSTILE = [
    10**5000,
    -(10**5000),
    float("nan"),
    float("inf"),
    Decimal("sNaN"),
    Decimal("NaN"),
    Decimal("-Infinity"),
    Decimal("1e9999999"),
    Decimal("1e-9999999"),
    Decimal("1." + "0" * 40 + "1"),
    [[]],
    {},
    None,
    b"",
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: f"{type(value).__name__}")
@pytest.mark.parametrize("domain", DATA_DOMAINS.values(), ids=str)
def test_domain_rejects_objects_that_are_not_its_values(domain: Any, value: object) -> None:
    with pytest.raises(ValueRefused) as caught:
        domain.key(value)
    assert len(str(caught.value)) < 200


def test_decimals_are_limited_to_fifteen_significant_digits_everywhere() -> None:
    for text in ("123456789012345", "1.23456789012345e-290", "9.99999999999999e290", "0e-9999"):
        assert DECIMAL.value(DECIMAL.key(Decimal(text))) == float(text)
    assert DECIMAL.key(Decimal("1." + "0" * 40)) == DECIMAL.key(1.0)
    for text in ("1e291", "9.9e-291", "-1e291"):
        with pytest.raises(ValueRefused, match="from 1e-290 to below 1e291") as caught:
            DECIMAL.key(Decimal(text))
        assert "digits" not in str(caught.value)
        with pytest.raises(ValueRefused, match="from 1e-290 to below 1e291"):
            DECIMAL.key(float(text))


def test_string_of_maximum_length_is_accepted() -> None:
    assert STRING.key("x" * 65_536)
    with pytest.raises(LimitExceeded):
        STRING.key("x" * 65_537)
