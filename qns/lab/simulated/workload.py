"""Workload: rectangles and points in a square, as the thesis draws them (4.5.2, 4.1.3).

The square is divided into cells whose popularity follows Zipf, in random order. The centre of a
rectangle is uniform in its cell; sides and points are uniform. With locality, brokers are in four
groups, each with its own quarter of the square, and a subscription is issued in the group of its
quarter with that probability. Locality changes who issues a subscription, never its rectangle.
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
"""Length of a side of the square."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How subscriptions are drawn."""

    cells: int = 10
    """Number of cells along each axis."""
    zipf: float = 1.0
    longest: float = 200.0
    """The longest side of a rectangle; sides are uniform from 0 to this."""
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
    """Draws subscriptions and publications, one after the other, from one random generator."""

    def __init__(self, shape: Shape, random: Random, groups: list[list[int]]) -> None:
        """`groups` are all brokers; with locality there are four groups."""
        self.shape = shape
        self.random = random
        self.groups = groups
        self._brokers = [broker for group in groups for broker in group]
        cells = [(x, y) for x in range(shape.cells) for y in range(shape.cells)]
        random.shuffle(cells)
        self._cells = _Popular(cells, shape.zipf)

    def subscription(self) -> tuple[int, Rectangle]:
        """Draws a broker and the rectangle that one of its users subscribes to."""
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
        """Draws a broker and the point that it publishes."""
        random = self.random
        return random.choice(self._brokers), (random.uniform(0, SIDE), random.uniform(0, SIDE))


class _Popular:
    """Cells in order of popularity, the most popular first."""

    def __init__(self, cells: list[tuple[int, int]], exponent: float) -> None:
        self.cells = cells
        self.cumulated = list(accumulate((rank + 1) ** -exponent for rank in range(len(cells))))

    def draw(self, random: Random) -> tuple[int, int]:
        return self.cells[bisect_left(self.cumulated, random.random() * self.cumulated[-1])]


def _quarter(cell: tuple[int, int], cells: int) -> int:
    return 2 * (cell[0] >= cells // 2) + (cell[1] >= cells // 2)
