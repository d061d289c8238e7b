"""Lives: a restored store is noticed, whatever was cut short before, and no epoch comes twice."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from qns.errors import ValueRefused
from qns.lineage import LOST_EPOCHS, UNBORN, Life, begin_life, rotated
from qns.ports import Mark
from qns.store.lineage import MemoryLineage

OLD, NEW, OTHER = Mark(3, "old"), Mark(7, "new"), Mark(9, "other")


def test_the_first_life_of_all() -> None:
    first = Mark(1, "n")
    assert begin_life(None, (), "n") == Life(first, (UNBORN, first), restored=False)


def test_a_first_start_that_was_cut_short_is_no_restore() -> None:
    written = begin_life(None, (), "a").marks_to_write
    assert not begin_life(None, written, "b").restored


def test_an_ordinary_start_counts_on() -> None:
    assert begin_life(NEW, (NEW,), "n") == Life(Mark(8, "n"), (NEW, Mark(8, "n")), restored=False)


@pytest.mark.parametrize("stored", [OLD, NEW])
def test_a_start_after_one_that_was_cut_short_is_no_restore(stored: Mark) -> None:
    life = begin_life(stored, (OLD, NEW), "n")
    assert not life.restored
    assert life.mark == Mark(8, "n")


def test_an_older_mark_is_a_restore_and_the_epoch_goes_beyond_all_that_is_known() -> None:
    assert begin_life(OLD, (NEW,), "n") == Life(Mark(8, "n"), (Mark(8, "n"),), restored=True)


def test_another_nonce_of_the_same_epoch_is_a_restore() -> None:
    assert begin_life(NEW, (Mark(7, "rotated"),), "n").restored


def test_an_empty_store_whose_marks_are_known_is_a_restore() -> None:
    assert begin_life(None, (NEW,), "n") == Life(Mark(8, "n"), (Mark(8, "n"),), restored=True)


def test_lost_marks_count_as_a_restore_far_ahead() -> None:
    life = begin_life(NEW, (), "n")
    assert life.restored
    assert life.mark == Mark(8 + LOST_EPOCHS, "n")


def test_a_restored_start_that_was_cut_short_is_still_a_restore() -> None:
    written = begin_life(OLD, (NEW,), "a").marks_to_write
    again = begin_life(OLD, written, "b")
    assert again.restored
    assert again.mark == Mark(9, "b")


def test_rotation_changes_the_nonce_only() -> None:
    assert rotated(OLD, "n") == Life(Mark(3, "n"), (OLD, Mark(3, "n")), restored=False)


def test_rotation_needs_another_nonce() -> None:
    with pytest.raises(ValueRefused, match="the new nonce is the old one"):
        rotated(OLD, "old")


class LivesMachine(RuleBasedStateMachine):
    """A peer that is started, backed up, cut short anywhere, put back, and loses its marks once."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: Mark | None = None
        self.lineage = MemoryLineage()
        self.backups: list[Mark] = []
        """Those that were reported as done."""
        self.running = False
        self.ever_ran = False
        self.lost_marks = False
        self.is_a_copy = False
        self.epochs = [0]
        self.nonces = (f"nonce{number}" for number in count())

    def change(self, life: Life, steps: int) -> bool:
        """Takes so many of the three steps; whether the change is complete."""
        if steps >= 1:
            self.lineage.write(life.marks_to_write)
        if steps >= 2:
            self.stored = life.mark
        if steps >= 3:
            self.lineage.write((life.mark,))
        self.running = steps >= 3
        return self.running

    @rule(steps=st.integers(0, 3))
    def start(self, steps: int) -> None:
        life = begin_life(self.stored, self.lineage.read(), next(self.nonces))
        assert life.restored == self.is_a_copy
        assert life.mark.epoch > max(self.epochs)
        self.change(life, steps)
        if steps >= 2:
            self.epochs.append(life.mark.epoch)
            self.is_a_copy = False
        self.ever_ran |= self.running

    @precondition(lambda self: self.running)
    @rule(steps=st.integers(0, 3))
    def back_up(self, steps: int) -> None:
        assert self.stored is not None
        copy = self.stored
        if self.change(rotated(self.stored, next(self.nonces)), steps):
            self.backups.append(copy)

    @precondition(lambda self: self.backups)
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        self.stored = data.draw(st.sampled_from(self.backups))
        self.running, self.is_a_copy = False, True

    @precondition(lambda self: self.ever_ran and self.lineage.read())
    @rule()
    def lose_the_store(self) -> None:
        self.stored = None
        self.running, self.is_a_copy = False, True

    @precondition(lambda self: self.stored is not None and not self.lost_marks)
    @rule()
    def lose_the_marks(self) -> None:
        self.lineage.write(())
        self.lost_marks = True
        self.running, self.is_a_copy = False, True


LivesMachine.TestCase.settings = settings(stateful_step_count=30)
TestLives = LivesMachine.TestCase
