"""The disk of the simulator that loses what was not synced, and changes bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from qns.errors import StoreFailed, StoreFull
from qns.peer.tables import EVENTS, IDENTITY, IdentityRow
from qns.peer.turn import Transaction
from qns.store.faults import RESTORE
from qns.store.losing_disk import EMPTY, LosingDisk
from qns.store.sqlite import SqliteStore
from tests.store.rows import numbered, put


@pytest.fixture
def disk() -> Iterator[LosingDisk]:
    disk = LosingDisk(Random(1))
    yield disk
    disk.discard()


def turn(number: int) -> Transaction:
    """Returns what a turn writes: something, and the identity with the count of turns."""
    return put(
        (EVENTS, numbered(EVENTS, number, sequence=number, xml=bytes(3_000))),
        (IDENTITY, IdentityRow("P", 1, 1, "nonce", number, number)),
    )


def sequences(store: SqliteStore) -> list[int]:
    return [row.sequence for row in store.rows(EVENTS)]


def test_power_cut_loses_nothing_that_was_committed(disk: LosingDisk) -> None:
    for number in range(1, 60):
        disk.open().commit(turn(number))
        disk.cut_power()
    assert sequences(disk.open()) == list(range(1, 60))
    assert disk.take_survived() == []


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_commit_whose_sync_failed_is_reported_if_and_only_if_it_survives(
    seed: int, is_kept: bool
) -> None:
    disk = LosingDisk(Random(seed))
    try:
        store = disk.open()
        store.commit(turn(1))
        disk.fail_syncs(1, is_kept=is_kept)
        with pytest.raises(StoreFailed, match="SQLITE_IOERR_FSYNC"):
            store.commit(turn(2))
        if seed % 2:
            disk.cut_power()
        found = sequences(disk.open())
        survived = disk.take_survived()
        assert found == [1, 2][: 1 + len(survived)]
        assert disk.take_survived() == []
    finally:
        disk.discard()


def test_power_can_be_cut_in_the_middle_of_a_commit() -> None:
    outcomes = set()
    for operations in range(12):
        disk = LosingDisk(Random(operations))
        try:
            store = disk.open()
            store.commit(turn(1))
            disk.fail_syncs(1, is_kept=True, operations_until_cut=operations)
            with pytest.raises(StoreFailed):
                store.commit(turn(2))
            with suppress(StoreFailed):
                disk.open().commit(turn(3))
            with suppress(StoreFailed):
                disk.open()
            found = sequences(disk.open())
            assert found[0] == 1
            outcomes.add(tuple(found))
        finally:
            disk.discard()
    assert len(outcomes) > 1


def test_changed_page_is_found_by_the_check_and_at_every_start(disk: LosingDisk) -> None:
    for number in range(1, 40):
        disk.open().commit(turn(number))
    disk.check()
    assert disk.change_bits(3)
    assert disk.overlooked()
    with pytest.raises(StoreFailed, match="has changed on the disk") as error:
        disk.check()
    assert error.value.remedy == RESTORE
    for _ in range(2):
        with pytest.raises(StoreFailed, match="has changed on the disk"):
            disk.open()


def test_changed_bit_of_the_log_is_found_at_the_next_start(disk: LosingDisk) -> None:
    store = disk.open()
    for number in range(1, 8):
        store.commit(turn(number))
    assert disk.change_bit_of_log()
    with pytest.raises(StoreFailed, match="its log"):
        disk.open()


def test_copy_that_is_put_back_replaces_a_damaged_store(disk: LosingDisk) -> None:
    store = disk.open()
    store.commit(turn(1))
    copy = disk.copy()
    store.commit(turn(2))
    disk.check()
    disk.change_bits(1)
    disk.put_back(copy)
    assert not disk.is_changed
    assert sequences(disk.open()) == [1]
    disk.put_back(EMPTY)
    assert sequences(disk.open()) == []


def test_power_cut_leaves_a_copy_that_was_put_back_as_it_is(disk: LosingDisk) -> None:
    disk.open().commit(turn(1))
    disk.put_back(disk.copy())
    disk.cut_power()
    assert sequences(disk.open()) == [1]


def test_host_has_power_again_when_a_copy_is_put_back(disk: LosingDisk) -> None:
    store = disk.open()
    store.commit(turn(1))
    copy = disk.copy()
    disk.fail_syncs(1, is_kept=True, operations_until_cut=1)
    with pytest.raises(StoreFailed):
        store.commit(turn(2))
    with pytest.raises(StoreFailed):
        sequences(disk.open())  # its first operation cuts the power
    disk.put_back(copy)
    assert sequences(disk.open()) == [1]


def test_host_without_power_has_neither_a_copy_nor_bits_that_change(disk: LosingDisk) -> None:
    disk.open().commit(turn(1))
    disk.cut_power()
    with pytest.raises(StoreFailed, match="off"):
        disk.copy()
    assert not disk.change_bits(1)
    assert not disk.change_bit_of_log()


def test_disk_can_be_full_once(disk: LosingDisk) -> None:
    store = disk.open()
    disk.fill(True)
    with pytest.raises(StoreFull):
        store.commit(turn(1))
    store.commit(turn(2))
    assert sequences(disk.open()) == [2]
    assert disk.take_survived() == []
