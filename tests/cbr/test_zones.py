"""Zones compared with a grid of whole coordinates, of which each cell and border is checked."""

from __future__ import annotations

import math
import runpy
import sys
from fractions import Fraction
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr import zones
from qns.cbr.rectangles import COORDINATE_BOUND, Rectangle
from qns.cbr.zones import (
    MAX_DIMENSION,
    Zone,
    associativity,
    broker_associativity,
    system_associativity,
)
from qns.errors import DuplicateId, NameNotKnown, QnsError, ValueRefused

SPAN = {1: 9, 2: 6, 3: 3}  # dimension -> size of the grid


def rect(*sides: tuple[float, float]) -> Rectangle:
    """Returns the rectangle with one (lo, hi) per axis."""
    return Rectangle(tuple(lo for lo, _ in sides), tuple(hi for _, hi in sides))


def zone_of(*rectangles: Rectangle, dimension: int = 2) -> Zone:
    return Zone.from_rectangles(
        ((f"r{number}", one) for number, one in enumerate(rectangles)), dimension=dimension
    )


def common_area(zone: Zone, other: Zone) -> float:
    return zones._areas(zone, other)[1]


LEFT, RIGHT = rect((0, 2), (0, 2)), rect((2, 4), (0, 2))


# The oracle: a half step represents the open edge or cell around it. So the points of the half-step
# grid decide together what a union of closed boxes with whole corners holds.


def half_steps(one: Rectangle) -> set[tuple[float, ...]]:
    axes = zip(one.lo, one.hi, strict=True)
    return set(product(*([k / 2 for k in range(int(2 * lo), int(2 * hi) + 1)] for lo, hi in axes)))


def held(rectangles: list[Rectangle]) -> set[tuple[float, ...]]:
    return set().union(*map(half_steps, rectangles))


def cell_count(points: set[tuple[float, ...]]) -> int:
    return sum(all(value % 1 == 0.5 for value in point) for point in points)


def on_grid(dimension: int) -> st.SearchStrategy[Rectangle]:
    ends = st.integers(0, SPAN[dimension])
    side = st.tuples(ends, ends).map(lambda pair: (min(pair), max(pair)))
    return st.lists(side, min_size=dimension, max_size=dimension).map(lambda sides: rect(*sides))


@given(st.data(), st.sampled_from(sorted(SPAN)))
def test_zone_agrees_with_the_grid_after_inserts_and_deletes(
    data: st.DataObject, dimension: int
) -> None:
    boxes = on_grid(dimension)
    model = {
        f"bulk{number}": one for number, one in enumerate(data.draw(st.lists(boxes, max_size=12)))
    }
    zone = Zone.from_rectangles(model.items(), dimension=dimension)
    for number, one in enumerate(data.draw(st.lists(boxes, max_size=12))):
        zone.insert(f"new{number}", one)
        model[f"new{number}"] = one
    for leaver in data.draw(st.sets(st.sampled_from(sorted(model)))) if model else ():
        zone.delete(leaver)
        del model[leaver]

    union = held(list(model.values()))
    asked = data.draw(boxes)
    assert dict(zone.rectangles) == model
    assert zone.area() == cell_count(union)
    assert zone.covers(asked) == (half_steps(asked) <= union)
    for point in (asked.lo, asked.hi, tuple(value + 0.5 for value in asked.lo)):
        assert zone.match(point) == sorted(
            name for name, one in model.items() if point in half_steps(one)
        )


@given(st.data(), st.sampled_from(sorted(SPAN)))
def test_common_area_of_two_zones_agrees_with_the_grid(data: st.DataObject, dimension: int) -> None:
    ours, theirs = (data.draw(st.lists(on_grid(dimension), max_size=8)) for _ in range(2))
    zone, other = (zone_of(*boxes, dimension=dimension) for boxes in (ours, theirs))
    area, common = cell_count(held(ours)), cell_count(held(ours) & held(theirs))
    assert common_area(zone, other) == common_area(other, zone) == common
    assert associativity(zone, other) == (common / area if area else 0.0)


COORDINATES = st.floats(-COORDINATE_BOUND, COORDINATE_BOUND) | st.floats(-1, 1)
TINY = 1e-300  # smaller products of sides lose digits
FLOAT_SIDES = st.tuples(COORDINATES, COORDINATES).map(lambda pair: (min(pair), max(pair)))
FLOAT_BOXES = st.lists(
    st.tuples(FLOAT_SIDES, FLOAT_SIDES).map(lambda sides: rect(*sides)), max_size=8
)


def exact_area(rectangles: list[Rectangle]) -> Fraction:
    """Returns the sum over the cells between all sides, in fractions."""
    xs, ys = (
        sorted({end for one in rectangles for end in (one.lo[axis], one.hi[axis])})
        for axis in (0, 1)
    )
    area = Fraction(0)
    for left, right in pairwise(xs):
        across = [one for one in rectangles if one.lo[0] <= left and right <= one.hi[0]]
        for low, high in pairwise(ys):
            if any(one.lo[1] <= low and high <= one.hi[1] for one in across):
                area += (Fraction(right) - Fraction(left)) * (Fraction(high) - Fraction(low))
    return area


@given(FLOAT_BOXES)
def test_area_is_exact_except_for_the_last_digits(boxes: list[Rectangle]) -> None:
    assert math.isclose(zone_of(*boxes).area(), exact_area(boxes), rel_tol=1e-13, abs_tol=1e-300)


@given(FLOAT_BOXES, FLOAT_BOXES)
def test_associativity_never_exceeds_one_by_rounding(
    ours: list[Rectangle], theirs: list[Rectangle]
) -> None:
    zone, other = zone_of(*ours), zone_of(*theirs)
    assert 0 <= associativity(zone, other) <= 1
    assert common_area(zone, other) == common_area(other, zone)
    wider = zone_of(*theirs, *ours)
    assert associativity(zone, wider) in ((1,) if zone.area() >= TINY else (0, 1))
    if zone.area() == 0:
        assert associativity(zone, wider) == 0


def test_zone_with_a_subnormal_measure_can_have_associativity_zero() -> None:
    sliver = rect((0.0, 1.0), (0.0, 5e-324))
    assert zone_of(sliver).area() > 0
    assert associativity(zone_of(sliver), zone_of(sliver)) == 1
    assert associativity(zone_of(sliver), zone_of(sliver, rect((0.0, 0.5), (0.0, 1.0)))) == 0


@given(FLOAT_BOXES)
def test_every_corner_matches_in_a_rectangle_of_any_size(boxes: list[Rectangle]) -> None:
    zone = zone_of(*boxes)
    for number, one in enumerate(boxes):
        assert f"r{number}" in zone.match(one.lo)
        assert f"r{number}" in zone.match(one.hi)
        assert zone.covers(one)


@pytest.mark.parametrize("side", [5e-324, 1e-100, 1e-17, 2.2e-16, 1e-15])
def test_index_does_not_treat_a_tiny_rectangle_as_a_point(side: float) -> None:
    tiny = rect((0, side), (0, side))
    zone = Zone()
    zone.insert("r0", tiny)
    assert zone.match(tiny.hi) == zone.match((0, side)) == ["r0"]
    assert zone.covers(rect((side, side), (0, side)))
    assert zone.match((-side, 0)) == []


def test_point_on_the_border_of_two_rectangles_matches_both() -> None:
    zone = zone_of(LEFT, RIGHT)
    assert zone.match((2, 1)) == ["r0", "r1"]
    assert zone.match((1, 1)) == ["r0"]
    assert zone.match((4.000001, 1)) == []


def test_matching_is_correct_after_thousands_of_inserts_and_deletes() -> None:
    chance = Random(41)
    model: dict[str, Rectangle] = {}
    zone = Zone()
    for step in range(3_000):
        if chance.random() < 0.6 or not model:
            x, y = chance.randrange(100), chance.randrange(100)
            model[f"r{step}"] = rect((x, x + chance.randrange(20)), (y, y + chance.randrange(20)))
            zone.insert(f"r{step}", model[f"r{step}"])
        else:
            leaver = chance.choice(list(model))
            zone.delete(leaver)
            del model[leaver]
        if step % 30 == 0:
            point = (chance.randrange(120), chance.randrange(120))
            assert zone.match(point) == sorted(n for n, one in model.items() if one.holds(point))


def test_two_rectangles_cover_a_third_that_neither_contains() -> None:
    whole = rect((0, 4), (0, 2))
    zone = zone_of(LEFT, RIGHT)
    assert zone.covers(whole)
    assert zone.area() == 8
    zone.delete("r1")
    assert not zone.covers(whole)
    assert zone.area() == 4
    zone.insert("again", RIGHT)
    assert zone.area() == 8


def test_narrowest_possible_gap_between_two_rectangles_is_not_covered() -> None:
    just_after = math.nextafter(2.0, 3.0)
    zone = zone_of(LEFT, rect((just_after, 4), (0, 2)))
    assert not zone.covers(rect((0, 4), (0, 2)))
    assert not zone.covers(rect((1, 3), (1, 1)))
    assert zone.covers(rect((just_after, 3), (1, 1)))


def test_segment_or_point_is_covered_by_rectangles_that_touch_it() -> None:
    zone = zone_of(LEFT, rect((2, 4), (2, 4)), rect((5, 9), (1, 1)))
    assert zone.covers(rect((0, 2), (2, 2)))
    assert zone.covers(rect((0, 4), (2, 2)))  # one half is on the edge of each rectangle
    assert zone.covers(rect((6, 8), (1, 1)))  # within a segment
    assert not zone.covers(rect((6, 8), (1, 2)))
    assert zone.covers(rect((4, 4), (4, 4)))
    assert not zone.covers(rect((3, 3), (1, 1)))


def test_rectangles_that_the_index_finds_by_its_margin_cover_nothing() -> None:
    line = 5e-16  # closer than the index can distinguish
    assert not zone_of(rect((0, 1), (line, line)), rect((1, 2), (line, line))).covers(
        rect((0, 2), (0, 0))
    )


def test_rectangle_without_area_matches_and_adds_no_area() -> None:
    zone = zone_of(rect((1, 1), (0, 5)), rect((3, 3), (3, 3)))
    assert zone.match((1, 2)) == ["r0"]
    assert zone.match((3, 3)) == ["r1"]
    assert zone.area() == 0
    assert associativity(zone, zone) == 0


def test_equal_rectangles_with_different_ids_are_kept_separately() -> None:
    zone = zone_of(LEFT, LEFT)
    zone.delete("r0")
    assert zone.match((1, 1)) == ["r1"]
    assert zone.area() == 4


def test_empty_zone_covers_nothing_and_accepts_inserts() -> None:
    zone = zone_of()
    assert (len(zone), zone.area(), zone.match((0, 0))) == (0, 0, [])
    assert not zone.covers(rect((0, 0), (0, 0)))
    zone.insert("first", LEFT)
    assert "first" in zone
    assert zone.covers(LEFT)


def test_small_common_area_of_large_zones_keeps_its_digits() -> None:
    large, sliver = rect((-1e9, 0), (-1e9, 1)), rect((-1e-9, 1e9), (0, 1e9))
    assert common_area(zone_of(large), zone_of(sliver)) == pytest.approx(1e-9, rel=1e-15)


def test_associativity_is_not_symmetric() -> None:
    small, large = zone_of(LEFT), zone_of(LEFT, RIGHT)
    assert associativity(small, large) == 1
    assert associativity(large, small) == 0.5


def test_associativity_of_a_system_is_the_mean_of_its_brokers() -> None:
    brokers = {"A": zone_of(LEFT), "B": zone_of(LEFT, RIGHT), "C": zone_of(RIGHT), "D": zone_of()}
    links = {"A": ["B"], "B": ["A", "C"], "C": ["B"]}
    assert broker_associativity(brokers["B"], [brokers["A"], brokers["C"]]) == 1
    assert system_associativity(brokers, links) == 3 / 4
    assert system_associativity({}, {}) == 0


@pytest.mark.parametrize("links", [{"A": ["Z"]}, {"Z": ["A"]}])
def test_link_to_a_broker_without_a_zone_is_rejected(links: dict[str, list[str]]) -> None:
    with pytest.raises(NameNotKnown, match="unknown broker 'Z'"):
        system_associativity({"A": zone_of(LEFT)}, links)


@pytest.mark.parametrize(
    ("lo", "hi", "complaint"),
    [
        ((0.0, math.nan), (1.0, 1.0), r"lo, axis 1: 'nan' is outside"),
        ((-math.inf, 0.0), (1.0, 1.0), r"lo, axis 0: '-inf' is outside"),
        ((0, 0), (1, 10**400), r"hi, axis 1: .* is outside ±2\^53 \(use a finite bound"),
        ((0, 0), (1, "2"), r"hi, axis 1: .* is not a number"),
        ((0, 0), (1, True), r"hi, axis 1: 'True' is not a number"),
        ((0, 0), (1, Fraction(1, 3)), r"hi, axis 1: .* is not exactly a double"),
        ((0, 2), (1, 1), r"axis 1: lo 2.0 is above hi 1.0 \(swap"),
        ((0, 0), (1, 1, 1), r"lo has 2 coordinates and hi has 3"),
        ((), (), r"lo: no coordinates"),
        (0, 1, r"lo: no coordinates"),
    ],
)
def test_invalid_rectangle_is_rejected_with_a_remedy(
    lo: object, hi: object, complaint: str
) -> None:
    with pytest.raises(ValueRefused, match=complaint) as refused:
        Rectangle(lo, hi)  # type: ignore[arg-type]
    assert refused.value.remedy


def test_rejected_change_leaves_the_zone_unchanged() -> None:
    zone = zone_of(LEFT, RIGHT)
    with pytest.raises(DuplicateId, match="'r0' is in the zone already"):
        zone.insert("r0", rect((7, 8), (7, 8)))
    with pytest.raises(ValueRefused, match="3 dimensions where the zone has 2"):
        zone.insert("solid", rect((7, 8), (7, 8), (7, 8)))
    with pytest.raises(NameNotKnown, match=r"unknown rectangle 'r7' \(known: r0, r1\)"):
        zone.delete("r7")
    assert dict(zone.rectangles) == {"r0": LEFT, "r1": RIGHT}
    assert zone.area() == 8
    assert zone.match((7.5, 7.5)) == []


def test_point_or_rectangle_of_another_dimension_is_rejected() -> None:
    zone = zone_of(LEFT)
    with pytest.raises(ValueRefused, match="point: 1 dimensions"):
        zone.match((1,))
    with pytest.raises(ValueRefused, match="point, axis 0: 'nan'"):
        zone.match((math.nan, 0))
    with pytest.raises(ValueRefused, match="3 dimensions where the zone has 2"):
        zone.covers(rect((0, 1), (0, 1), (0, 1)))
    with pytest.raises(ValueRefused, match="the other zone: 1 dimensions"):
        associativity(zone, Zone(1))


@pytest.mark.parametrize("dimension", [0, -1, MAX_DIMENSION + 1])
def test_zone_of_zero_or_too_many_dimensions_is_rejected(dimension: int) -> None:
    with pytest.raises(ValueRefused, match="dimensions"):
        Zone(dimension)


def test_largest_possible_zone_has_a_finite_measure() -> None:
    everything = rect(*[(-COORDINATE_BOUND, COORDINATE_BOUND)] * MAX_DIMENSION)
    zone = zone_of(everything, everything, dimension=MAX_DIMENSION)
    assert zone.area() == 2.0 ** (54 * MAX_DIMENSION)


def test_bulk_load_rejects_a_duplicate_id() -> None:
    with pytest.raises(DuplicateId, match="'twice'"):
        Zone.from_rectangles([("twice", LEFT), ("twice", RIGHT)])


def test_error_without_rtree_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rtree.index", None)
    with pytest.raises(QnsError, match=r'pip install "qns\[lab\]"'):
        runpy.run_path(str(zones.__file__))


def test_answers_without_numba_are_the_same_bit_by_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shapes = [
        [rect((x / 7, (x + size) / 7), (y / 3, (y + size) / 3)) for x, y, size in triples]
        for triples in (
            [(k * 37 % 101, k * 53 % 89, k % 13) for k in range(150)],
            [(k * 41 % 97, k * 59 % 83, k % 11) for k in range(150)],
        )
    ]

    def measures(names: dict[str, Any]) -> tuple[float, float, float, list[bool]]:
        ours, theirs = (
            names["Zone"].from_rectangles((str(k), one) for k, one in enumerate(boxes))
            for boxes in shapes
        )
        arrays = [np.array([(each.lo, each.hi) for each in boxes]) for boxes in shapes]
        share = names["associativity_of"](arrays[0][:20], arrays[1])
        near = names["overlapping"](arrays[0], arrays[1][:20]).tolist()
        assert len({*near}) == 2
        assert 0 < share < 1
        return ours.area(), common_area(ours, theirs), share, near

    compiled = measures(
        vars(zones)
    )  # runs before numba is hidden, because it compiles at the first call
    monkeypatch.setattr("qns.cbr.compilation.njit", None)
    plain = runpy.run_path(str(zones.__file__))
    assert plain["_sweep"].__class__ is not zones._sweep.__class__
    assert measures(plain) == compiled
