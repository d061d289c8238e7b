"""Mark changes: a restored store is detected after any interruption, and epochs never repeat."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from qns.errors import ValueRefused
from qns.peer.lineage import (
    EPOCH_SCATTER,
    LOST_EPOCHS,
    NEVER_STARTED,
    MarkChange,
    begin_epoch,
    rotate_nonce,
)
from qns.peer.ports import Mark
from qns.store.lineage import MemoryLineage

OLD, NEW, OTHER = Mark(3, "old"), Mark(7, "new"), Mark(9, "other")


def test_first_start_begins_epoch_1_and_is_no_restore() -> None:
    first = Mark(1, "n")
    assert begin_epoch(None, (), "n") == MarkChange(first, (NEVER_STARTED, first), restored=False)


def test_epochs_after_the_first_one_have_gaps_that_depend_on_the_nonce() -> None:
    assert begin_epoch(None, (), "a", EPOCH_SCATTER).mark.epoch == 1
    epochs = {begin_epoch(NEW, (NEW,), str(n), EPOCH_SCATTER).mark.epoch for n in range(100)}
    assert len(epochs) > 90
    assert min(epochs) > NEW.epoch
    assert max(epochs) <= NEW.epoch + EPOCH_SCATTER


def test_start_after_an_interrupted_first_start_is_no_restore() -> None:
    written = begin_epoch(None, (), "a").marks_to_write
    assert not begin_epoch(None, written, "b").restored


def test_ordinary_start_begins_the_next_epoch() -> None:
    assert begin_epoch(NEW, (NEW,), "n") == MarkChange(
        Mark(8, "n"), (NEW, Mark(8, "n")), restored=False
    )


@pytest.mark.parametrize("stored", [OLD, NEW])
def test_start_after_an_interrupted_start_is_no_restore(stored: Mark) -> None:
    change = begin_epoch(stored, (OLD, NEW), "n")
    assert not change.restored
    assert change.mark == Mark(8, "n")


def test_later_epoch_with_the_known_nonce_is_no_restore() -> None:
    gone_on = Mark(12, NEW.nonce)  # others knew epoch 11, so the peer began epoch 12
    change = begin_epoch(gone_on, (NEW,), "n")
    assert change == MarkChange(Mark(13, "n"), (gone_on, Mark(13, "n")), restored=False)
    assert begin_epoch(Mark(6, NEW.nonce), (NEW,), "n").restored


def test_older_mark_is_a_restore_and_the_epoch_exceeds_all_known_epochs() -> None:
    assert begin_epoch(OLD, (NEW,), "n") == MarkChange(Mark(8, "n"), (Mark(8, "n"),), restored=True)


def test_mark_with_another_nonce_of_the_same_epoch_is_a_restore() -> None:
    assert begin_epoch(NEW, (Mark(7, "rotated"),), "n").restored


def test_empty_store_with_marks_in_the_lineage_is_a_restore() -> None:
    assert begin_epoch(None, (NEW,), "n") == MarkChange(
        Mark(8, "n"), (Mark(8, "n"),), restored=True
    )


def test_lost_marks_are_a_restore_with_a_jump_of_the_epoch() -> None:
    change = begin_epoch(NEW, (), "n")
    assert change.restored
    assert change.mark == Mark(8 + LOST_EPOCHS, "n")


def test_start_after_an_interrupted_start_of_a_restored_store_is_a_restore() -> None:
    written = begin_epoch(OLD, (NEW,), "a").marks_to_write
    again = begin_epoch(OLD, written, "b")
    assert again.restored
    assert again.mark == Mark(9, "b")


def test_rotation_changes_only_the_nonce() -> None:
    assert rotate_nonce(OLD, "n") == MarkChange(Mark(3, "n"), (OLD, Mark(3, "n")), restored=False)


def test_rotation_rejects_the_same_nonce() -> None:
    with pytest.raises(ValueRefused, match="the new nonce is the old one"):
        rotate_nonce(OLD, "old")


class MarkMachine(RuleBasedStateMachine):
    """Starts, backs up and restores a peer, interrupts it anywhere, and loses its marks once."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: Mark | None = None
        self.lineage = MemoryLineage()
        self.backups: list[Mark] = []
        """The backups that were reported as complete."""
        self.running = False
        self.ever_ran = False
        self.lost_marks = False
        self.is_a_copy = False
        self.epochs = [0]
        self.nonces = (f"nonce{number}" for number in count())

    def apply(self, change: MarkChange, steps: int) -> bool:
        """Performs the first `steps` of the three steps; True if the change is complete."""
        if steps >= 1:
            self.lineage.write(change.marks_to_write)
        if steps >= 2:
            self.stored = change.mark
        if steps >= 3:
            self.lineage.write((change.mark,))
        self.running = steps >= 3
        return self.running

    @rule(steps=st.integers(0, 3))
    def start(self, steps: int) -> None:
        change = begin_epoch(self.stored, self.lineage.read(), next(self.nonces))
        assert change.restored == self.is_a_copy
        assert change.mark.epoch > max(self.epochs)
        self.apply(change, steps)
        if steps >= 2:
            self.epochs.append(change.mark.epoch)
            self.is_a_copy = False
        self.ever_ran |= self.running

    @precondition(lambda self: self.running)
    @rule(steps=st.integers(0, 3))
    def back_up(self, steps: int) -> None:
        assert self.stored is not None
        copy = self.stored
        if self.apply(rotate_nonce(self.stored, next(self.nonces)), steps):
            self.backups.append(copy)

    @precondition(lambda self: self.backups)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
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


MarkMachine.TestCase.settings = settings(stateful_step_count=30)
TestMarkChanges = MarkMachine.TestCase
