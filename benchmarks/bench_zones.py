"""Measures zones: the plane sweep against a numpy grid, the R-tree against scans of all rectangles.

    python benchmarks/bench_zones.py

Before each measurement, both sides must give exactly the same answer.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from qns.cbr.rectangles import Point, Rectangle
from qns.cbr.zones import Zone

SEED = 422
SIZES = (100, 1_000, 5_000)
SPACE = 1_000_000  # whole coordinates, so that neither side rounds
LONGEST_SIDE = 50_000
POINTS = 200

Row = dict[str, Any]
Match = Callable[[Point], list[str]]


def run() -> list[Row]:
    """Returns one row per comparison; `ratio` says how many times faster QNS is."""
    zone_of(SIZES[0]).area()  # numba compiles on first use
    return [*area_rows(), *match_rows()]


def area_rows() -> list[Row]:
    rows = []
    for size in SIZES:
        zone = zone_of(size)
        rectangles = list(zone.rectangles.values())
        assert zone.area() == grid_area(rectangles)
        ours = best_of(5, zone.area)
        theirs = best_of(5, partial(grid_area, rectangles))
        rows.append(row("area of a union: sweep", size, ours, "numpy grid", theirs))
    return rows


def match_rows() -> list[Row]:
    rows = []
    points = some_points()
    for size in SIZES:
        zone = zone_of(size)
        ours = best_of(5, partial(match_all, zone.match, points)) / POINTS
        for baseline, scan in (
            ("linear scan", linear_scan(zone)),
            ("numpy scan", numpy_scan(zone)),
        ):
            assert match_all(zone.match, points) == match_all(scan, points)
            theirs = best_of(3, partial(match_all, scan, points)) / POINTS
            rows.append(row("match a point: R-tree", size, ours, baseline, theirs))
    return rows


def match_all(match: Match, points: list[Point]) -> list[list[str]]:
    return [match(point) for point in points]


def linear_scan(zone: Zone) -> Match:
    rectangles = dict(zone.rectangles)
    return lambda point: sorted(name for name, one in rectangles.items() if one.holds(point))


def numpy_scan(zone: Zone) -> Match:
    ids = np.array(list(zone.rectangles))
    lo = np.array([one.lo for one in zone.rectangles.values()])
    hi = np.array([one.hi for one in zone.rectangles.values()])
    return lambda point: sorted(ids[((lo <= point) & (point <= hi)).all(axis=1)].tolist())


def grid_area(rectangles: list[Rectangle]) -> float:
    """Returns the area by coordinate compression: marks every cell that a rectangle contains."""
    lo = np.array([one.lo for one in rectangles])
    hi = np.array([one.hi for one in rectangles])
    xs, ys = (np.unique(np.concatenate((lo[:, axis], hi[:, axis]))) for axis in (0, 1))
    marked = np.zeros((len(xs) - 1, len(ys) - 1), dtype=np.bool_)
    lefts, rights = np.searchsorted(xs, lo[:, 0]), np.searchsorted(xs, hi[:, 0])
    lows, highs = np.searchsorted(ys, lo[:, 1]), np.searchsorted(ys, hi[:, 1])
    for left, right, low, high in zip(lefts, rights, lows, highs, strict=True):
        marked[left:right, low:high] = True
    # `marked @ heights` would be a copy of 10^8 doubles, and BLAS threads make its time erratic.
    covered = np.einsum("ij,j->i", marked, np.diff(ys))
    return float((covered * np.diff(xs)).sum())


def zone_of(size: int) -> Zone:
    chance = random.Random(SEED + size)
    rectangles = []
    for number in range(size):
        lo = [chance.randrange(SPACE - LONGEST_SIDE) for _ in range(2)]
        hi = [low + chance.randrange(1, LONGEST_SIDE) for low in lo]
        rectangles.append((f"r{number}", Rectangle(tuple(lo), tuple(hi))))
    return Zone.from_rectangles(rectangles)


def some_points() -> list[Point]:
    chance = random.Random(SEED)
    return [(chance.uniform(0, SPACE), chance.uniform(0, SPACE)) for _ in range(POINTS)]


def best_of(times: int, work: Callable[[], object]) -> float:
    best = math.inf
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def row(what: str, size: int, seconds: float, baseline: str, baseline_seconds: float) -> Row:
    return {
        "what": what,
        "size": size,
        "seconds": seconds,
        "baseline": baseline,
        "baseline_seconds": baseline_seconds,
        "ratio": baseline_seconds / seconds,
    }


def main() -> None:
    print(f"{'what':<24}{'size':>7}{'ours':>13}  {'baseline':<12}{'theirs':>13}{'ratio':>9}")
    for one in run():
        print(
            f"{one['what']:<24}{one['size']:>7}{one['seconds'] * 1e6:>10.1f} µs"
            f"  {one['baseline']:<12}{one['baseline_seconds'] * 1e6:>10.1f} µs{one['ratio']:>8.1f}×"
        )


if __name__ == "__main__":
    main()
