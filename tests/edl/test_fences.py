"""The staircase of fences decides as all fences together do."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from qns.edl.fences import Fences
from qns.edl.messages import Fence

FENCES = st.lists(st.builds(Fence, st.integers(1, 8), st.integers(1, 8)), max_size=12)


def first_after(fences: list[Fence], epoch: int) -> int | None:
    """Returns the smallest first number of a later epoch, found one by one."""
    return min((each.first for each in fences if each.epoch > epoch), default=None)


@given(FENCES)
def test_staircase_decides_about_every_epoch_as_all_fences_do(added: list[Fence]) -> None:
    fences = Fences()
    for fence in added:
        fences.add(fence)
    assert [fences.first_after(epoch) for epoch in range(10)] == [
        first_after(added, epoch) for epoch in range(10)
    ]
    assert list(fences) == list(Fences(added))


@given(FENCES)
def test_fence_of_a_later_epoch_has_a_larger_number(added: list[Fence]) -> None:
    fences = list(Fences(added))
    for earlier, later in pairwise(fences):
        assert earlier.epoch < later.epoch
        assert earlier.first < later.first


@given(FENCES)
def test_fences_that_are_replaced_are_returned(added: list[Fence]) -> None:
    fences, kept = Fences(), set[Fence]()
    for fence in added:
        replaced = fences.add(fence)
        if replaced is not None:
            kept = kept - set(replaced) | {fence}
        assert set(fences) == kept


@given(FENCES, st.integers(0, 9))
def test_fences_after_an_epoch_are_those_of_later_epochs(added: list[Fence], epoch: int) -> None:
    fences = Fences(added)
    assert fences.after(epoch) == [each for each in fences if each.epoch > epoch]
    assert fences.newest == max(fences, default=None)
