"""Workload: rectangles and points in a square, as the thesis draws them (4.5.2, 4.1.3).

Centres gather: the square is cut into cells whose popularity follows Zipf, in no order; a centre is
uniform in its cell. Sides and points are uniform. With locality, brokers come in four groups, each
with a quarter of the square of its own, and a subscription comes from the group of its quarter with
that chance; what is asked for is the same whatever the locality, only who asks changes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Final

from qns.cbr.rectangles import Point, Rectangle
from qns.errors import ValueRefused

SIDE: Final = 1_000.0
"""Of the square."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How subscriptions are drawn."""

    cells: int = 10
    """Along each axis."""
    zipf: float = 1.0
    longest: float = 200.0
    """The longest side of a rectangle; all from 0 are equally likely."""
    locality: float = 0.0
    """The share of subscriptions that are issued in the group of their quarter."""

    def __post_init__(self) -> None:
        if not 0 <= self.locality <= 1:
            raise ValueRefused(f"locality {self.locality:g}", remedy="from 0 to 1")
        if self.cells < 2 or self.cells % 2:
            raise ValueRefused(f"{self.cells} cells", remedy="an even number, at least 2")
        if not 0 < self.longest <= SIDE:
            raise ValueRefused(f"sides up to {self.longest:g}", remedy=f"up to {SIDE:g}")


class Workload:
    """Draws subscriptions and publications, one after the other, from one source of chance."""

    def __init__(self, shape: Shape, random: Random, groups: list[list[int]]) -> None:
        """`groups` are the brokers; with locality they are four."""
        self.shape = shape
        self.random = random
        self.groups = groups
        self._brokers = [broker for group in groups for broker in group]
        cells = [(x, y) for x in range(shape.cells) for y in range(shape.cells)]
        random.shuffle(cells)
        self._cells = _Popular(cells, shape.zipf)

    def subscription(self) -> tuple[int, Rectangle]:
        """A broker, and what one of its users asks for."""
        random, shape = self.random, self.shape
        cell = self._cells.draw(random)
        asking = self._brokers
        if random.random() < shape.locality:
            asking = self.groups[_quarter(cell, shape.cells) % len(self.groups)]
        broker = random.choice(asking)
        width = SIDE / shape.cells
        lo, hi = [], []
        for place in cell:
            centre = (place + random.random()) * width
            half = random.uniform(0, shape.longest) / 2
            lo.append(max(0.0, centre - half))
            hi.append(min(SIDE, centre + half))
        return broker, Rectangle(tuple(lo), tuple(hi))

    def publication(self) -> tuple[int, Point]:
        """A broker, and a point."""
        random = self.random
        return random.choice(self._brokers), (random.uniform(0, SIDE), random.uniform(0, SIDE))


class _Popular:
    """Cells, the first the most popular."""

    def __init__(self, cells: list[tuple[int, int]], exponent: float) -> None:
        self.cells = cells
        self.cumulated = list(accumulate((rank + 1) ** -exponent for rank in range(len(cells))))

    def draw(self, random: Random) -> tuple[int, int]:
        return self.cells[bisect_left(self.cumulated, random.random() * self.cumulated[-1])]


def _quarter(cell: tuple[int, int], cells: int) -> int:
    return 2 * (cell[0] >= cells // 2) + (cell[1] >= cells // 2)
