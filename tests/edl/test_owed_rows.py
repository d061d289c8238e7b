"""Rows of an outbound stream that are only on the disk are read like those in memory."""

from __future__ import annotations

import pytest

from qns.edl.owed_rows import OwedRows
from qns.peer.row_view import RowView
from qns.peer.tables import OwedRow
from qns.peer.turn import Turn
from qns.store.memory import MemoryStore

MANY = 2_345
"""More rows than one read of the store returns, and not a multiple of it."""


def owed_rows(count: int, most_in_memory: float) -> OwedRows:
    store = MemoryStore()
    owed = OwedRows("C", RowView(store), most_in_memory)
    turn = Turn(0.0)
    for number in range(1, count + 1):
        owed.add(turn, OwedRow("C", number, 1, f"e{number}"), acknowledged=0)
    store.commit(turn.transaction)
    return owed


@pytest.mark.parametrize("most_in_memory", [1, 1_000, 10_000])
def test_all_numbers_are_read_in_order_however_many_are_in_memory(most_in_memory: int) -> None:
    owed = owed_rows(MANY, most_in_memory)
    assert [row.number for row in owed.between(1, MANY)] == list(range(1, MANY + 1))
    assert [row.number for row in owed.between(7, 2_100)] == list(range(7, 2_101))
    assert len(owed) == MANY
    assert owed.has_rows_on_disk is (most_in_memory < MANY)


def test_row_and_number_are_found_on_the_disk() -> None:
    owed = owed_rows(3, 1)
    assert [owed.is_in_memory(number) for number in (1, 2, 3)] == [True, False, False]
    row = owed.get(3)
    assert row is not None
    assert row.event == "e3"
    assert owed.number_of("e3") == 3
    assert owed.number_of("e4") is None
    assert owed.get(4) is None
