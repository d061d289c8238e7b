"""Typed events follow the same rules for names, types and errors as events in XML."""

from __future__ import annotations

from datetime import UTC, date, datetime
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import DATE, DATETIME, DECIMAL, INTEGER, QUALITY
from qns.cbr.event import Event
from qns.errors import QnsError
from qns.soap.typed_event import TypedEvent, TypedQuality, TypedValue, from_event, to_event
from tests.strategies import ALL_TYPES, events


@given(events(), st.none() | st.integers(0, 2**50), st.sampled_from([0.0, 1.5, inf]))
def test_event_converted_to_texts_and_back_is_equal(
    event: Event, published_us: int | None, available_s: float
) -> None:
    event = event._replace(published_us=published_us, available_s=available_s)
    assert to_event(from_event(event, ALL_TYPES), ALL_TYPES) == event


def test_typed_event_accepts_any_spelling_of_names_and_quality_as_number_or_label() -> None:
    typed = TypedEvent(
        "e1",
        "THING/part",
        "INPS",
        "2024-01-31T12:00:00Z",
        60.0,
        (
            TypedValue("weight", " 12.5 "),
            TypedValue("Part.Code", " a "),
            TypedValue("Count", "+7"),
            TypedValue("Since", "2024-02-29"),
        ),
        (
            TypedQuality("Weight", "Accuracy", "HIGH", "0.5"),
            TypedQuality("Broken", "currency", None, "low"),
        ),
    )
    event = to_event(typed, ALL_TYPES)
    assert event.data_class == "Thing/Part"
    assert event.published_us == DATETIME.key(datetime(2024, 1, 31, 12, tzinfo=UTC))
    assert event.available_s == 60.0
    assert event.values == {
        "Thing/Part.Weight": DECIMAL.key(12.5),
        "Thing/Part.Code": " a ",
        "Thing.Count": INTEGER.key(7),
        "Thing.Since": DATE.key(date(2024, 2, 29)),
        "Thing/Part.Weight.accuracy": QUALITY.key(0.9),
    }
    assert event.previous == {
        "Thing/Part.Weight.accuracy": QUALITY.key(0.5),
        "Thing/Part.Broken.currency": QUALITY.key(0.3),
    }


def part(data: list[TypedValue], quality: list[TypedQuality] | None = None) -> TypedEvent:
    return TypedEvent("e1", "Thing/Part", "INPS", data=tuple(data), quality=tuple(quality or ()))


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        (TypedEvent("e1", "Nothing", "INPS"), "unknown class"),
        (TypedEvent("", "Thing", "INPS"), "id is empty"),
        (TypedEvent("e1", "Thing", " INPS"), "organisation"),
        (TypedEvent("e1", "Thing", "INPS", "yesterday"), "dateTime"),
        (part([TypedValue("Colour", "red")]), "data 'Colour': .*has no property"),
        (part([TypedValue("Weight", "heavy")]), "data 'Weight': .*decimal"),
        (part([TypedValue("Weight", "1"), TypedValue("weight", "2")]), "given twice"),
        (part([TypedValue("Weight.accuracy", "1")]), "quality dimension among the data"),
        (part([], [TypedQuality("Weight", "taste", "1")]), "quality 'Weight.taste': .*dimension"),
        (part([], [TypedQuality("Weight", "accuracy", "2")]), "quality 'Weight.accuracy'"),
        (part([], [TypedQuality("Weight", "accuracy")]), "has no value"),
        (part([], [TypedQuality("Weight.accuracy", "accuracy", "1")]), "dimension already"),
        (part([], [TypedQuality("Count", "accuracy", "1")]), "enclosing class"),
        (
            part(
                [],
                [
                    TypedQuality("Weight", "accuracy", "1"),
                    TypedQuality("weight", "ACCURACY", None, "1"),
                ],
            ),
            "given twice",
        ),
    ],
)
def test_error_in_a_typed_event_names_its_place(typed: TypedEvent, problem: str) -> None:
    with pytest.raises(QnsError, match=problem):
        to_event(typed, ALL_TYPES)
