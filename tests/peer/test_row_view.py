"""The row view reads what a store with all turns committed would have, for both stores."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import StoreFailed
from qns.peer.row_view import RowView
from qns.peer.tables import COUNTERS, OWED, OwedRow
from qns.peer.turn import Transaction
from qns.store.memory import MemoryStore
from qns.store.sqlite import SqliteStore

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["A", "B"]), st.integers(1, 8), st.sampled_from(["e", "f", "g", None])
    ),
    max_size=12,
)
"""Consumer, number and event; without an event the row is deleted."""


def transaction_of(changes: list[tuple[str, int, str | None]]) -> Transaction:
    transaction = Transaction()
    for consumer, number, event in changes:
        if event is None:
            transaction.delete(OWED, consumer, number)
        else:
            transaction.put(OWED, OwedRow(consumer, number, 1, event))
    return transaction


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@given(turns=st.lists(CHANGES, max_size=5), written=st.integers(0, 5), limit=st.integers(1, 10))
def test_reads_see_committed_and_uncommitted_turns(
    kind: str, turns: list[Any], written: int, limit: int
) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore.in_memory("viewed")
    view, whole = RowView(store), MemoryStore()
    for changes in turns:
        transaction = transaction_of(changes)
        view.begin(transaction)
        whole.commit(transaction)
    for changes in turns[:written]:
        store.commit(transaction_of(changes))
        view.committed()
    for consumer in ("A", "B"):
        for after in range(9):
            expected = whole.scan(OWED, (consumer,), after, limit)
            assert view.scan(OWED, (consumer,), after, limit) == expected
            assert view.get(OWED, (consumer, after)) == whole.get(OWED, (consumer, after))
    for event in ("e", "f", "g"):
        assert view.find(OWED, "event", event) == whole.find(OWED, "event", event)
        expected = whole.find(OWED, "event", event)[:limit]
        assert view.find(OWED, "event", event, limit) == expected
        assert whole.find(OWED, "event", event, limit) == expected
    if isinstance(store, SqliteStore):
        store.close()
        SqliteStore.forget("viewed")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_rows_cannot_be_found_by_a_column_without_index(kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore.in_memory("unindexed")
    with pytest.raises(StoreFailed, match="has no index of delivered"):
        store.find(COUNTERS, "delivered", 1)
    if isinstance(store, SqliteStore):
        store.close()
        SqliteStore.forget("unindexed")
