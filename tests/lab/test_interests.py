"""Associativity of arrays against exact zones and against a grid."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import Zone, associativity, associativity_of
from qns.lab.strategies.interests import Interests, boxes_of, weight

SPAN = 9
CORNERS = st.tuples(*[st.integers(0, 6)] * 2, *[st.integers(0, 3)] * 2)
RECTANGLES = st.lists(
    CORNERS.map(lambda c: Rectangle((c[0], c[1]), (c[0] + c[2], c[1] + c[3]))), max_size=7
)
FLOATS = st.lists(
    st.tuples(*[st.floats(-10, 10)] * 4).map(
        lambda c: Rectangle((min(c[0], c[1]), min(c[2], c[3])), (max(c[0], c[1]), max(c[2], c[3])))
    ),
    max_size=7,
)


def cells(rectangles: list[Rectangle]) -> set[tuple[int, int]]:
    return {
        (x, y)
        for x in range(SPAN)
        for y in range(SPAN)
        if any(each.holds((x + 0.5, y + 0.5)) for each in rectangles)
    }


def share(ours: list[Rectangle], theirs: list[Rectangle]) -> float:
    area = len(cells(ours))
    return len(cells(ours) & cells(theirs)) / area if area else 0.0


def zone_of(rectangles: list[Rectangle]) -> Zone:
    return Zone.from_rectangles((f"r{number}", one) for number, one in enumerate(rectangles))


@given(RECTANGLES, RECTANGLES)
def test_associativity_of_arrays_equals_that_on_a_grid(
    ours: list[Rectangle], theirs: list[Rectangle]
) -> None:
    assert associativity_of(boxes_of(ours), boxes_of(theirs)) == share(ours, theirs)
    assert weight(boxes_of(ours), boxes_of(theirs)) == share(ours, theirs) + share(theirs, ours)


@given(FLOATS, FLOATS)
def test_associativity_of_arrays_equals_that_of_zones_up_to_rounding(
    ours: list[Rectangle], theirs: list[Rectangle]
) -> None:
    exact = associativity(zone_of(ours), zone_of(theirs))
    fast = associativity_of(boxes_of(ours), boxes_of(theirs))
    if zone_of(ours).area() > 1e-300:
        assert fast == pytest.approx(exact, rel=1e-9, abs=1e-12)
        assert 0 <= fast <= 1
        assert associativity_of(boxes_of(ours), boxes_of(theirs + ours)) == 1


def test_associativity_of_arrays_equals_that_of_zones_with_thousands_of_rectangles() -> None:
    random = Random(4)

    def some(number: int) -> list[Rectangle]:
        lows = [(random.uniform(0, 900), random.uniform(0, 900)) for _ in range(number)]
        return [
            Rectangle(lo, (lo[0] + random.uniform(0, 30), lo[1] + random.uniform(0, 30)))
            for lo in lows
        ]

    ours, theirs = some(40), some(4_000)
    exact = associativity(zone_of(ours), zone_of(theirs))
    assert 0.1 < exact < 0.99
    fast = associativity_of(boxes_of(ours), boxes_of(theirs))
    assert fast == pytest.approx(exact, rel=1e-12)


@given(
    RECTANGLES,
    st.lists(st.tuples(st.integers(0, 5), CORNERS, st.booleans()), max_size=20),
    st.dictionaries(st.integers(0, 5), st.integers(10, 12), min_size=6),
)
def test_zone_of_a_link_is_the_union_of_its_brokers_after_any_changes(
    ours: list[Rectangle],
    changes: list[tuple[int, tuple[int, ...], bool]],
    towards: dict[int, int],
) -> None:
    interests, known = Interests(), dict[str, tuple[int, Rectangle]]()
    for number, (home, c, removes) in enumerate(changes):
        rectangle = Rectangle((c[0], c[1]), (c[0] + c[2], c[1] + c[3]))
        known[f"s{number}"] = home, rectangle
        interests.add(f"s{number}", rectangle, home)
        interests.of(home)  # so that the cached zone becomes stale
        if removes:
            gone = f"s{number // 2}"
            if known.pop(gone, None):
                interests.remove(gone)
    shares = interests.behind(boxes_of(ours), (10, 11, 12), towards)
    for link, found in shares.items():
        behind = [one for home, one in known.values() if towards[home] == link]
        assert found == share(ours, behind)
    for home in range(6):
        expected = sorted(one.lo + one.hi for place, one in known.values() if place == home)
        assert sorted(map(tuple, interests.of(home).reshape(-1, 4).tolist())) == expected


def test_returned_zone_never_changes() -> None:
    interests = Interests()
    interests.add("a", Rectangle((0.0, 0.0), (1.0, 1.0)), 3)
    interests.add("b", Rectangle((5.0, 5.0), (6.0, 6.0)), 3)
    before = interests.of(3)
    copy = before.copy()
    interests.remove("a")
    interests.add("c", Rectangle((8.0, 8.0), (9.0, 9.0)), 3)
    assert np.array_equal(before, copy)
    assert not np.array_equal(interests.of(3), copy)


def test_empty_zone_has_nothing_in_common_with_others() -> None:
    interests, nothing = Interests(), boxes_of(())
    interests.add("a", Rectangle((0.0, 0.0), (1.0, 1.0)), 3)
    assert interests.behind(nothing, (1,), {3: 1}) == {1: 0.0}
    assert Interests().behind(boxes_of([Rectangle((0.0, 0.0), (1.0, 1.0))]), (1,), {}) == {1: 0.0}
    assert weight(nothing, nothing) == 0.0
