"""Delta: a change of a set, and the combination of two changes."""

from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.delta import NO_CHANGE, Delta

sets = st.frozensets(st.integers(0, 7))


def between(before: frozenset[int], after: frozenset[int]) -> Delta[int]:
    return Delta(after - before, before - after)


@given(sets, sets, sets)
def test_two_consecutive_deltas_combine_into_the_delta_of_both(
    first: frozenset[int], second: frozenset[int], third: frozenset[int]
) -> None:
    assert between(first, second).then(between(second, third)) == between(first, third)


@given(sets, sets)
def test_delta_is_true_exactly_if_the_set_changes(
    before: frozenset[int], after: frozenset[int]
) -> None:
    assert bool(between(before, after)) == (before != after)


def test_combining_with_no_change_returns_the_same_delta() -> None:
    change = Delta(frozenset({1}), frozenset({2}))
    assert not NO_CHANGE
    assert NO_CHANGE.then(change) == change.then(NO_CHANGE) == change
