"""Filter-driven rendezvous: brokers agree on the rendezvous, and filters stop where paths join."""

from __future__ import annotations

from functools import partial
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.errors import ValueRefused
from qns.lab.simulated.history import RecordedRun
from qns.lab.simulated.measure import diffuse
from qns.lab.simulated.system import Publication
from qns.lab.simulated.workload import SIDE
from qns.lab.strategies.catalogue import Setting
from qns.lab.strategies.rendezvous import RendezvousBroker, Ring

COORDINATE = st.floats(0, SIDE)


def _run(brokers: int, seed: int, cells: int = 8) -> tuple[RecordedRun, list[RendezvousBroker]]:
    ring = Ring(brokers, Random(seed), cells=cells)
    run = Setting(brokers, seed).run(partial(RendezvousBroker, ring=ring))
    members = [each for each in run.system.brokers if isinstance(each, RendezvousBroker)]
    return run, members


def _way(members: list[RendezvousBroker], start: int, cell: tuple[int, int]) -> list[int]:
    way = [start]
    while (following := members[way[-1]].towards(cell)) is not None:
        way.append(following)
        assert len(way) <= len(members)
    return way


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("brokers", [1, 2, 30])
def test_every_path_ends_at_the_rendezvous_and_gains_a_digit_with_each_hop(
    brokers: int, seed: int
) -> None:
    _, members = _run(brokers, seed, cells=3)
    ring = members[0].ring
    for cell in product(range(3), repeat=2):
        target = ring.names[ring.rendezvous(cell)]
        for start in range(brokers):
            way = _way(members, start, cell)
            assert way[-1] == ring.rendezvous(cell)
            common = [
                next((n for n, d in enumerate(target) if d != ring.names[each][n]), len(target))
                for each in way
            ]
            assert common == sorted(set(common))


@given(st.integers(1, 13), st.tuples(COORDINATE, COORDINATE), st.tuples(COORDINATE, COORDINATE))
def test_point_is_in_one_cell_that_every_rectangle_around_it_intersects(
    cells: int, one: tuple[float, float], other: tuple[float, float]
) -> None:
    ring = Ring(3, Random(1), cells=cells)
    lo = tuple(map(min, one, other))
    hi = tuple(map(max, one, other))
    rectangle = Rectangle(lo, hi)
    met = set(ring.cells_of(rectangle))
    for point in (lo, hi, one, other):
        assert ring.cell_of(point) in met
        assert ring.part_in(ring.cell_of(point), rectangle).holds(point)


def _subscribe(run: RecordedRun, broker: int, id: str, *corners: float) -> int:
    """Returns the number of messages."""
    before = run.sent.total()
    run.subscribe(broker, id, Rectangle((corners[0], corners[1]), (corners[2], corners[3])))
    run.settle()
    return run.sent.total() - before


def _far(members: list[RendezvousBroker], cell: tuple[int, int]) -> list[int]:
    """Returns the longest path to the rendezvous."""
    return max((_way(members, start, cell) for start in range(len(members))), key=len)


def test_subscription_stops_at_a_broker_that_already_announced_as_much() -> None:
    run, members = _run(30, 3, cells=1)
    way = _far(members, (0, 0))
    assert len(way) > 2
    assert _subscribe(run, way[0], "wide", 0, 0, 500, 500) == len(way) - 1
    assert _subscribe(run, way[0], "inside", 100, 100, 200, 200) == 0
    assert _subscribe(run, way[1], "below", 100, 100, 200, 200) == 0
    assert _subscribe(run, way[0], "beside", 400, 400, 600, 600) == len(way) - 1
    assert members[way[-1]].table_size == 2


def test_only_the_part_inside_a_cell_decides_whether_a_filter_is_announced() -> None:
    """Of a filter in two cells, only the half that is not covered is announced."""
    run, members = _run(30, 3, cells=2)
    start = _far(members, (1, 0))[0]
    right = _way(members, start, (1, 0))
    _subscribe(run, start, "left", 100, 100, 499, 200)
    assert _subscribe(run, start, "both", 200, 100, 600, 200) >= len(right) - 1
    assert _subscribe(run, start, "again", 110, 110, 590, 190) == 0  # inside the union of both
    first = members[start].branches[0, 0]
    assert set(first.announced.rectangles) == {"left", "both"}
    assert _subscribe(run, start, "left and new", 150, 120, 900, 180) == len(right) - 1
    assert set(first.announced.rectangles) == {"left", "both"}


def test_unsubscribing_the_cover_brings_back_what_it_covered() -> None:
    run, members = _run(30, 3, cells=1)
    way = _far(members, (0, 0))
    _subscribe(run, way[0], "wide", 0, 0, 500, 500)
    _subscribe(run, way[0], "inside", 100, 100, 200, 200)
    run.unsubscribe(way[0], "wide")
    run.settle()
    assert set(members[way[-1]].branches[0, 0].wanted[way[-2]].rectangles) == {"inside"}
    publisher = next(each for each in range(30) if each not in way)
    assert diffuse(run, Publication("in", (150.0, 150.0), publisher)).ideal == 1
    assert diffuse(run, Publication("out", (300.0, 300.0), publisher)).ideal == 0
    run.unsubscribe(way[0], "inside")
    run.settle()
    assert not any(each.table_size for each in members)


def test_notification_without_subscribers_ends_at_the_rendezvous() -> None:
    run, members = _run(30, 3, cells=1)
    way = _far(members, (0, 0))
    _subscribe(run, way[0], "some", 0, 0, 10, 10)
    seen = diffuse(run, Publication("e", (900.0, 900.0), way[0]))
    assert (seen.hops, seen.pure_forwarders) == (len(way) - 1, len(way) - 1)


def test_ring_without_cells_is_refused() -> None:
    with pytest.raises(ValueRefused, match="0 cells"):
        Ring(3, Random(1), cells=0)
