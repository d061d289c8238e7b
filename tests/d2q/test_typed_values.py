"""The values of an event as Python objects, by the names of the schema."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given

from qns.cbr.event import Event
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.shipped import WEATHER
from qns.d2q.typed_values import data_of, previous_of, quality_of
from tests.strategies import ALL_TYPES, events

GUST = {
    "id": "e1",
    "class": "Report/Wind/Gust",
    "source": "Met03",
    "data": {
        "Station": "Roma",
        "Observed": "2024-01-31T13:00:00+01:00",
        "Direction": 270,
        "Peak": 12.1,
        "Dangerous": False,
    },
    "quality": {"Peak.accuracy": "low"},
    "previous": {"Peak.accuracy": 0.9},
}


def test_values_have_the_types_of_the_schema() -> None:
    event = EventReader(WEATHER).from_fields(GUST)
    data = data_of(event, WEATHER)
    assert dict(data) == {
        "Report.Station": "Roma",
        "Report.Observed": datetime(2024, 1, 31, 12, tzinfo=UTC),
        "Report/Wind.Direction": 270,
        "Report/Wind/Gust.Peak": Decimal("12.1"),
        "Report/Wind/Gust.Dangerous": False,
    }
    assert [type(value) for value in data.values()] == [str, datetime, int, Decimal, bool]
    assert dict(quality_of(event, WEATHER)) == {"Report/Wind/Gust.Peak.accuracy": 0.3}
    assert dict(previous_of(event, WEATHER)) == {"Report/Wind/Gust.Peak.accuracy": 0.9}


def test_value_is_found_under_every_spelling_of_its_name() -> None:
    event = EventReader(WEATHER).from_fields(GUST)
    data, quality = data_of(event, WEATHER), quality_of(event, WEATHER)
    for name in ("Peak", "peak", "Gust.Peak", "Report/Wind/Gust.Peak"):
        assert data[name] == Decimal("12.1")
    assert quality["PEAK.Accuracy"] == 0.3


def test_absent_value_and_unknown_name_raise_key_error() -> None:
    event = EventReader(WEATHER).from_fields(GUST)
    data = data_of(event, WEATHER)
    assert data.get("Region") is None
    assert "Peak.accuracy" not in data
    with pytest.raises(KeyError, match="did you mean Peak"):
        data["Peek"]


@given(events())
def test_typed_values_are_those_of_the_json_object(event: Event) -> None:
    fields = write_event_json(event, ALL_TYPES)
    data = data_of(event, ALL_TYPES)
    assert {name: as_json(value) for name, value in data.items()} == fields["data"]
    assert dict(quality_of(event, ALL_TYPES)) == fields["quality"]
    assert dict(previous_of(event, ALL_TYPES)) == fields.get("previous", {})


def as_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value
