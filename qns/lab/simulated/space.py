"""Space: the lab's square as a D2Q schema, for production peers and the judge of histories.

A point is an event of class `Point` with two decimal attributes; a rectangle is a subscription that
constrains both. D2Q decimals have at most 15 digits, so coordinates are rounded before they reach
any strategy.
"""

from __future__ import annotations

from typing import Final

from qns.cbr.domains import DECIMAL
from qns.cbr.event import Event
from qns.cbr.rectangles import Point, Rectangle
from qns.d2q.lexical import write_value
from qns.d2q.schema import Schema

AXES: Final = ("x", "y")
CLASS: Final = "Point"
SCHEMA: Final = Schema("lab", {CLASS: dict.fromkeys(AXES, DECIMAL.name)})
PLACES: Final = 6
"""Decimal places of a coordinate."""


def rounded(point: Point) -> Point:
    return tuple(round(value, PLACES) for value in point)


def rounded_rectangle(rectangle: Rectangle) -> Rectangle:
    return Rectangle(rounded(rectangle.lo), rounded(rectangle.hi))


def organisation(broker: int) -> str:
    """The name of the broker's organisation. Names sort like the numbers."""
    return f"B{broker:04}"


def broker(organisation: str) -> int:
    return int(organisation[1:])


def subscription_text(rectangle: Rectangle) -> str:
    """The rectangle in the subscription language; ValueRefused if a coordinate is not rounded."""
    terms = (
        f"{axis} between {_written(low)} and {_written(high)}"
        for axis, low, high in zip(AXES, rectangle.lo, rectangle.hi, strict=True)
    )
    return f"{CLASS} where {' and '.join(terms)}"


def _written(coordinate: float) -> str:
    return write_value(DECIMAL, DECIMAL.key(coordinate))


def event_of(id: str, point: Point, publisher: int) -> Event:
    values = {
        f"{CLASS}.{axis}": DECIMAL.key(value) for axis, value in zip(AXES, point, strict=True)
    }
    return Event(id, CLASS, organisation(publisher), values)
