"""Associativity cost: the time of the exact sweep against the number of rectangles, and of a grid.

Coordinates are whole numbers, so that a grid of unit cells is exact, too: it visits every cell of
the square and must find the same associativity as the sweep.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from time import perf_counter
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qns.cbr.compilation import HAS_NUMBA
from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import Zone, associativity
from qns.lab.simulated.workload import SIDE, Shape, Workload

SIZES: Final = (100, 300, 1_000, 3_000, 10_000)
_REPEATS: Final = 3


class Cost(NamedTuple):
    rectangles: int
    """The number of rectangles in each of the two zones."""
    associativity: float
    difference: float
    """The distance from the associativity on the grid, which is at most rounding."""
    sweep_s: float
    grid_s: float
    is_compiled: bool


def associativity_cost(sizes: Iterable[int] = SIZES, seed: int = 0) -> list[Cost]:
    """Returns the best of a few runs at each size, after a first run that may compile."""
    _measured(10, seed)
    return [_measured(size, seed) for size in sizes]


def _measured(size: int, seed: int) -> Cost:
    random = Random(f"{seed} {size}")  # noqa: S311
    draw = Workload(Shape(), random, [[0]])
    ours, theirs = ([_whole(draw.subscription()[1]) for _ in range(size)] for _ in range(2))
    zones = [
        Zone.from_rectangles((str(number), each) for number, each in enumerate(some))
        for some in (ours, theirs)
    ]
    found, sweep_s = 0.0, []
    for _ in range(_REPEATS):
        started = perf_counter()
        found = associativity(*zones)
        sweep_s.append(perf_counter() - started)
    started = perf_counter()
    expected = grid_associativity(ours, theirs)
    grid_s = perf_counter() - started
    return Cost(size, found, abs(found - expected), min(sweep_s), grid_s, HAS_NUMBA)


def grid_associativity(ours: Iterable[Rectangle], theirs: Iterable[Rectangle]) -> float:
    """Computes the associativity by brute force; corners are whole numbers within the square."""
    own, other = _cells(ours), _cells(theirs)
    area = int(own.sum())
    return int((own & other).sum()) / area if area else 0.0


def _cells(rectangles: Iterable[Rectangle]) -> NDArray[np.bool_]:
    cells = np.zeros((int(SIDE), int(SIDE)), dtype=np.bool_)
    for each in rectangles:
        (left, low), (right, high) = each.lo, each.hi
        cells[int(left) : int(right), int(low) : int(high)] = True
    return cells


def _whole(rectangle: Rectangle) -> Rectangle:
    lo = tuple(float(int(value)) for value in rectangle.lo)
    return Rectangle(lo, tuple(float(int(value)) for value in rectangle.hi))
