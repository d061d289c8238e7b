"""Intervals: a set of integer keys, as disjoint closed intervals in ascending order.

It is the value set of every ordered attribute. Adjacent intervals are joined, so that equal sets
are equal objects.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from qns.cbr.domains import Domain

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Intervals:
    """A set of integers. `spans` are disjoint, not adjacent, and ascending."""

    spans: tuple[Interval, ...]

    @classmethod
    def of(cls, spans: Iterable[Interval]) -> Intervals:
        """Returns the union of any closed intervals. An interval with lo > hi is empty."""
        joined: list[Interval] = []
        for lo, hi in sorted(span for span in spans if span[0] <= span[1]):
            if joined and lo <= joined[-1][1] + 1:
                if hi > joined[-1][1]:
                    joined[-1] = (joined[-1][0], hi)
            else:
                joined.append((lo, hi))
        return cls(tuple(joined))

    @classmethod
    def all_of(cls, domain: Domain) -> Intervals:
        return cls(((domain.lo, domain.hi),))

    @property
    def is_empty(self) -> bool:
        return not self.spans

    @property
    def terms(self) -> int:
        """The number of intervals that are needed to write this set."""
        return len(self.spans)

    @property
    def lowest(self) -> int:
        return self.spans[0][0]

    @property
    def highest(self) -> int:
        return self.spans[-1][1]

    def holds(self, key: object) -> bool:
        """True if an event's key lies in the set."""
        if not isinstance(key, int):
            return False
        spans = self.spans
        if len(spans) == 1:
            return spans[0][0] <= key <= spans[0][1]
        place = bisect_right(spans, key, key=_lower_end) - 1
        return place >= 0 and key <= spans[place][1]

    def contains(self, other: object) -> bool:
        """True if every key of `other` is in this set."""
        if not isinstance(other, Intervals):
            return False
        mine = self.spans
        if len(mine) == 1:
            return not other.spans or (
                mine[0][0] <= other.spans[0][0] and other.spans[-1][1] <= mine[0][1]
            )
        for lo, hi in other.spans:
            place = bisect_right(mine, lo, key=_lower_end) - 1
            if place < 0 or hi > mine[place][1]:
                return False
        return True

    def intersect(self, other: Intervals) -> Intervals:
        common: list[Interval] = []
        left, right = 0, 0
        while left < len(self.spans) and right < len(other.spans):
            lo = max(self.spans[left][0], other.spans[right][0])
            hi = min(self.spans[left][1], other.spans[right][1])
            if lo <= hi:
                common.append((lo, hi))
            if self.spans[left][1] < other.spans[right][1]:
                left += 1
            else:
                right += 1
        return Intervals(tuple(common))

    def union(self, other: Intervals) -> Intervals:
        return Intervals.of(self.spans + other.spans)

    def outside(self, other: Intervals) -> int | None:
        """Returns a key that is in this set and not in `other`, or None."""
        for lo, hi in self.spans:
            key = lo
            while key <= hi:
                place = bisect_right(other.spans, key, key=_lower_end) - 1
                if place < 0 or key > other.spans[place][1]:
                    return key
                key = other.spans[place][1] + 1
        return None


def _lower_end(span: Interval) -> int:
    return span[0]
