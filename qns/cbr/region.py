"""Region: the value set of a quality dimension, over pairs (previous value, new value).

A plain threshold bounds the new value only; a transition (`falls below`, `rises above`,
`changes by`) also needs a previous value. Regions are kept in normal form: both projections are
tight, and `change` is the smallest difference that occurs, or 0 if it excludes nothing. So equal
regions are equal objects, and containment is decided exactly (semantics §3, §5).
"""

from __future__ import annotations

from dataclasses import dataclass

from qns.cbr.domains import QUALITY
from qns.cbr.intervals import Intervals

EVERY_QUALITY = Intervals.all_of(QUALITY)
_NOTHING = Intervals(())


@dataclass(frozen=True, slots=True)
class Region:
    """All (previous, new) with `new` in `new`, `previous` in `previous`, |new − previous| ≥ change.

    If `previous` is None, the previous value can be anything and may be absent.
    """

    new: Intervals
    previous: Intervals | None = None
    change: int = 0

    @classmethod
    def of(cls, new: Intervals, previous: Intervals | None = None, change: int = 0) -> Region:
        """Makes a region from value sets and the least change, in normal form."""
        if previous is None:
            return cls(new)
        if new.is_empty or previous.is_empty:
            return cls(_NOTHING)
        if change:
            new = _at_distance(new, previous, change)
            if new.is_empty:
                return cls(_NOTHING)
            previous = _at_distance(previous, new, change)
            smallest = _smallest_distance(new, previous, change)
            change = 0 if _smallest_distance(new, previous, 0) == smallest else smallest
        return cls(new, previous, change)

    @classmethod
    def falls_below(cls, threshold: int) -> Region:
        return cls.of(_between(0, threshold - 1), _between(threshold, QUALITY.hi))

    @classmethod
    def rises_above(cls, threshold: int) -> Region:
        return cls.of(_between(threshold + 1, QUALITY.hi), _between(0, threshold))

    @classmethod
    def changes_by(cls, threshold: int) -> Region:
        return cls.of(EVERY_QUALITY, EVERY_QUALITY, threshold)

    @property
    def is_empty(self) -> bool:
        return self.new.is_empty

    @property
    def terms(self) -> int:
        return self.new.terms + (self.previous.terms if self.previous else 0) + bool(self.change)

    @property
    def smallest_change(self) -> int:
        """The smallest |new − previous| in the region."""
        if self.previous is None or self.is_empty:
            return 0
        return _smallest_distance(self.new, self.previous, self.change)

    def holds(self, new: object, previous: object = None) -> bool:
        if not self.new.holds(new):
            return False
        if self.previous is None:
            return True
        return self.previous.holds(previous) and (
            isinstance(new, int)
            and isinstance(previous, int)
            and abs(new - previous) >= self.change
        )

    def contains(self, other: object) -> bool:
        if not isinstance(other, Region):
            return False
        if other.is_empty:
            return True
        if not self.new.contains(other.new):
            return False
        if self.previous is None:
            return True
        return (
            other.previous is not None
            and self.previous.contains(other.previous)
            and other.smallest_change >= self.change
        )

    def intersect(self, other: Region) -> Region:
        if self.previous is None or other.previous is None:
            previous = self.previous or other.previous
        else:
            previous = self.previous.intersect(other.previous)
        return Region.of(self.new.intersect(other.new), previous, max(self.change, other.change))

    def union(self, other: Region) -> Region | None:
        """Returns the union if it is found to be such a region, else None."""
        if self.contains(other):
            return self
        if other.contains(self):
            return other
        if self.change != other.change:
            return None
        if self.previous == other.previous:
            return Region.of(self.new.union(other.new), self.previous, self.change)
        if self.new == other.new and self.previous is not None and other.previous is not None:
            return Region.of(self.new, self.previous.union(other.previous), self.change)
        return None

    def outside(self, other: Region) -> tuple[int, int | None] | None:
        """Returns a pair (new, previous) that is in this region and not in `other`, or None."""
        return next((pair for pair in self._corners(other) if not other.holds(*pair)), None)

    def _corners(self, other: Region) -> list[tuple[int, int | None]]:
        """Returns pairs of this region. One of them is outside `other` if any pair is."""
        news = [self.new.lowest, self.new.highest]
        if (missing := self.new.outside(other.new)) is not None:
            news.insert(0, missing)
        if self.previous is None:
            pairs: list[tuple[int, int | None]] = [(new, None) for new in news]
            return pairs
        olds = [self.previous.lowest, self.previous.highest]
        if (
            other.previous is not None
            and (missing := self.previous.outside(other.previous)) is not None
        ):
            olds.insert(0, missing)
        closest = _closest_pair(self.new, self.previous, self.change)
        candidates = [(new, old) for new in news for old in olds]
        if closest is not None:
            candidates.append(closest)
        return [(new, old) for new, old in candidates if self.holds(new, old)]


def _between(lo: int, hi: int) -> Intervals:
    return Intervals.of([(max(lo, QUALITY.lo), min(hi, QUALITY.hi))])


def _at_distance(these: Intervals, those: Intervals, distance: int) -> Intervals:
    """Returns the keys of `these` that lie at least `distance` from some key of `those`."""
    return these.intersect(
        Intervals.of(
            [(QUALITY.lo, those.highest - distance), (those.lowest + distance, QUALITY.hi)]
        )
    )


def _smallest_distance(these: Intervals, those: Intervals, at_least: int) -> int:
    pair = _closest_pair(these, those, at_least)
    assert pair is not None
    return abs(pair[0] - pair[1])


def _closest_pair(these: Intervals, those: Intervals, at_least: int) -> tuple[int, int] | None:
    """Returns the pair (this, that) with the smallest difference that is not below `at_least`."""
    above = _closest_above(these, those, at_least)
    below = _closest_above(those, these, at_least)
    if below is None:
        return above
    if above is None or below[0] - below[1] < above[0] - above[1]:
        return below[1], below[0]
    return above


def _closest_above(upper: Intervals, lower: Intervals, at_least: int) -> tuple[int, int] | None:
    """Returns the closest (u, l) with u in `upper`, l in `lower` and u − l not below `at_least`.

    For each interval of `lower` only the first of `upper` that reaches far enough can be best.
    Both are ascending, so one pass is enough.
    """
    best: tuple[int, int] | None = None
    nth = 0
    for low, high in lower.spans:
        while nth < len(upper.spans) and upper.spans[nth][1] < low + at_least:
            nth += 1
        if nth == len(upper.spans):
            break
        first, last = upper.spans[nth]
        distance = max(at_least, first - high, 0)
        if best is None or distance < best[0] - best[1]:
            start = max(low, first - distance)
            assert start <= min(high, last - distance)
            best = start + distance, start
    return best
