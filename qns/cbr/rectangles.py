"""Rectangle: a closed, axis-aligned box in the n-dimensional content space (thesis 4.1.1).

It is the geometrical zone of one subscription. It is closed, and a side may have length 0.
Coordinates are doubles within ±2^53, where every whole number is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Final

from qns.errors import ValueRefused, shorten

Point = tuple[float, ...]

COORDINATE_BOUND: Final = 2.0**53


@dataclass(frozen=True, slots=True)
class Rectangle:
    """All points p with lo ≤ p ≤ hi on every axis."""

    lo: Point
    hi: Point

    def __post_init__(self) -> None:
        lo, hi = point_of(self.lo, place="lo"), point_of(self.hi, place="hi")
        if len(lo) != len(hi):
            raise ValueRefused(
                f"lo has {len(lo)} coordinates and hi has {len(hi)}",
                remedy="give both one coordinate per axis",
            )
        for axis, (low, high) in enumerate(zip(lo, hi, strict=True)):
            if low > high:
                raise ValueRefused(
                    f"lo {low!r} is above hi {high!r}",
                    place=f"axis {axis}",
                    remedy="swap lo and hi on this axis",
                )
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    @property
    def dimension(self) -> int:
        return len(self.lo)

    def holds(self, point: Point) -> bool:
        """True if the point lies inside or on the boundary."""
        for low, value, high in zip(self.lo, point, self.hi, strict=True):
            if not low <= value <= high:
                return False
        return True

    def contains(self, other: Rectangle) -> bool:
        """True if every point of `other` is in this rectangle."""
        return self.holds(other.lo) and self.holds(other.hi)

    def meets(self, other: Rectangle) -> bool:
        """True if some point is in both. A shared corner is enough."""
        for low, high, their_low, their_high in zip(
            self.lo, self.hi, other.lo, other.hi, strict=True
        ):
            if low > their_high or their_low > high:
                return False
        return True


def point_of(coordinates: Iterable[float], *, place: str = "point") -> Point:
    """Returns the coordinates as doubles. Raises ValueRefused if one is not exactly a double."""
    try:
        given = tuple(coordinates)
    except TypeError:
        given = ()
    if not given:
        raise ValueRefused(
            "no coordinates", place=place, remedy="give one number per axis, as a tuple"
        )
    return tuple(_coordinate(value, f"{place}, axis {axis}") for axis, value in enumerate(given))


def _coordinate(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueRefused(
            f"{shorten(repr(value))} is not a number", place=place, remedy="give a float or an int"
        )
    try:
        double = float(value)
    except OverflowError:
        double = math.inf
    if not -COORDINATE_BOUND <= double <= COORDINATE_BOUND:  # NaN fails both comparisons
        raise ValueRefused(
            f"{shorten(repr(value))} is outside ±2^53",
            place=place,
            remedy="use a finite bound, or another unit on this axis",
        )
    if double != value:
        raise ValueRefused(
            f"{shorten(repr(value))} is not exactly a double",
            place=place,
            remedy="round it to a float first",
        )
    return double
