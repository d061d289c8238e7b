"""Regions with many intervals, compared with enumeration over a small range of keys."""

from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import QUALITY
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region

KEYS = range(14)


def small_sets() -> st.SearchStrategy[Intervals]:
    keys = st.integers(0, KEYS[-1])
    return st.lists(st.tuples(keys, keys), min_size=1, max_size=4).map(Intervals.of)


@given(small_sets(), small_sets(), st.integers(0, 10))
def test_normal_form_of_a_region_is_tight(new: Intervals, previous: Intervals, change: int) -> None:
    pairs = {
        (n, p)
        for n in KEYS
        for p in KEYS
        if new.holds(n) and previous.holds(p) and abs(n - p) >= change
    }
    region = Region.of(new, previous, change)
    assert region.is_empty == (not pairs)
    if pairs:
        assert region.previous is not None
        assert {n for n in KEYS if region.new.holds(n)} == {n for n, _ in pairs}
        assert {p for p in KEYS if region.previous.holds(p)} == {p for _, p in pairs}
        assert region.smallest_change == min(abs(n - p) for n, p in pairs)
        assert {(n, p) for n in KEYS for p in KEYS if region.holds(n, p)} == pairs


def test_region_with_thousands_of_intervals_is_normalised_in_one_pass() -> None:
    """Two nested loops over both sets would take minutes here."""
    step = QUALITY.hi // 20_000
    new = Intervals.of((key * step, key * step) for key in range(0, 20_000, 2))
    previous = Intervals.of((key * step, key * step) for key in range(1, 20_000, 2))
    region = Region.of(new, previous, 3 * QUALITY.hi // 10)
    assert region.contains(region)
    assert region.smallest_change >= 3 * QUALITY.hi // 10
