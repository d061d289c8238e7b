"""The behaviour that all stores have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import StoreFailed, StoreFull
from qns.peer.ports import Store
from qns.peer.tables import (
    COUNTERS,
    EVENTS,
    HISTORY,
    QUEUED,
    SERVED,
    TABLES,
    WAITING,
    CounterRow,
    HistoryRow,
    Table,
)
from qns.peer.turn import Transaction
from qns.store.memory import MemoryStore
from qns.store.sqlite import SqliteStore
from tests.store.rows import applied, content, delete, in_order, numbered, put, row, rows_of

NAME = "test_stores"


@pytest.fixture(params=["memory", "sqlite in memory", "sqlite on disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "sqlite in memory":
        with SqliteStore.in_memory(NAME) as opened:
            yield opened
        SqliteStore.forget(NAME)
    else:
        with SqliteStore(tmp_path / "store.db") as opened:
            yield opened


def test_new_store_is_empty(store: Store) -> None:
    assert content(store) == {}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_row_is_read_back_as_committed(store: Store, table: Table[Any]) -> None:
    store.commit(put((table, row(table))))
    (found,) = store.rows(table)
    assert found == row(table)
    assert type(found) is table.row


def test_last_row_before_a_number_is_found_across_gaps(store: Store) -> None:
    keys = [(1, 1), (1, 7), (70_003, 1), (1_086_765, 2), (1_086_765, 3)]
    store.commit(put(*((HISTORY, HistoryRow(*key, "{}")) for key in keys)))
    for bound, key in ((1, None), (2, (1, 7)), (1_086_765, (70_003, 1)), (2**40, keys[-1])):
        found = store.last_before(HISTORY, bound)
        assert (found and found[:2]) == key
    with pytest.raises(StoreFailed):
        store.last_before(EVENTS, 1)  # its key begins with a text


def test_prepared_transaction_is_committed_by_the_returned_function(store: Store) -> None:
    finish = store.prepare(put((COUNTERS, CounterRow("s", 1, 0))))
    finish()
    store.prepare(Transaction())()
    assert list(store.rows(COUNTERS)) == [CounterRow("s", 1, 0)]


def test_added_transaction_overrides_earlier_changes(store: Store) -> None:
    first = put((COUNTERS, CounterRow("a", 1, 0)), (COUNTERS, CounterRow("b", 1, 0)))
    later = Transaction()
    later.delete(COUNTERS, "a")
    later.put(COUNTERS, CounterRow("b", 2, 0))
    first.add(later)
    store.commit(first)
    assert list(store.rows(COUNTERS)) == [CounterRow("b", 2, 0)]


@given(data=st.data())
def test_random_values_are_read_back_as_committed(data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(TABLES))
    rows = data.draw(st.lists(rows_of(table), max_size=5))
    transaction = put(*((table, each) for each in rows))
    expected = in_order(applied({}, transaction))
    with SqliteStore.in_memory("values") as on_sqlite:
        for store in (on_sqlite, MemoryStore()):
            store.commit(transaction)
            assert content(store) == expected
    SqliteStore.forget("values")


def test_infinity_and_the_largest_numbers_are_stored_exactly(store: Store) -> None:
    rows = [
        numbered(EVENTS, 1, expires_at=math.inf, sequence=2**63 - 1),
        numbered(EVENTS, 2, expires_at=-math.inf, sequence=-(2**63)),
        numbered(EVENTS, 3, expires_at=5e-324, sequence=0),
    ]
    store.commit(put(*((EVENTS, each) for each in rows)))
    assert list(store.rows(EVENTS)) == rows


def test_rows_are_ordered_by_key(store: Store) -> None:
    rows = [row(QUEUED, subscription=name, order=n) for name in "bBaéz" for n in (10, 9, -1, 100)]
    store.commit(put(*((QUEUED, each) for each in rows)))
    assert list(store.rows(QUEUED)) == sorted(rows)


def test_rows_are_complete_and_ordered_across_several_batches(store: Store) -> None:
    rows = [
        row(SERVED, delivery_group=g, source=s, event=str(e))
        for g in "ab"
        for s in "xyz"
        for e in range(171)
    ]
    store.commit(put(*((SERVED, each) for each in rows)))
    assert list(store.rows(SERVED)) == sorted(rows)


def test_rows_can_be_deleted_while_they_are_read(store: Store) -> None:
    store.commit(put(*((COUNTERS, numbered(COUNTERS, n)) for n in range(1_000))))
    read = []
    for each in store.rows(COUNTERS):
        read.append(each)
        store.commit(delete(COUNTERS, each[:1]))
    assert read == [numbered(COUNTERS, n) for n in range(1_000)]
    assert content(store) == {}


def test_put_replaces_the_row_with_the_same_key(store: Store) -> None:
    store.commit(put((COUNTERS, CounterRow("s", 1, 0))))
    store.commit(put((COUNTERS, CounterRow("s", 2, 5))))
    assert list(store.rows(COUNTERS)) == [CounterRow("s", 2, 5)]


def test_delete_removes_only_the_row_with_the_key(store: Store) -> None:
    store.commit(put(*((QUEUED, row(QUEUED, subscription="s", order=n)) for n in range(3))))
    store.commit(delete(QUEUED, ("s", 1), ("s", 99), ("t", 0)))
    assert [each.order for each in store.rows(QUEUED)] == [0, 2]


def test_last_of_several_changes_to_a_row_takes_effect(store: Store) -> None:
    transaction = Transaction()
    transaction.put(COUNTERS, CounterRow("goes", 1, 0))
    transaction.delete(COUNTERS, "goes")
    transaction.delete(COUNTERS, "stays")
    transaction.put(COUNTERS, CounterRow("stays", 1, 0))
    store.commit(transaction)
    assert [each.subscription for each in store.rows(COUNTERS)] == ["stays"]


def test_empty_transaction_is_accepted(store: Store) -> None:
    store.commit(Transaction())
    assert content(store) == {}


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        (EVENTS, "expires_at", math.nan),
        (EVENTS, "expires_at", None),
        (EVENTS, "expires_at", "soon"),
        (EVENTS, "expires_at", 2**53 + 1),
        (EVENTS, "sequence", 2**63),
        (EVENTS, "sequence", -(2**63) - 1),
        (EVENTS, "sequence", 1.0),
        (EVENTS, "sequence", "1"),
        (EVENTS, "id", b"x"),
        (EVENTS, "id", None),
        (EVENTS, "id", "\ud800"),
        (EVENTS, "xml", "text"),
        (EVENTS, "xml", bytearray(b"x")),
        (WAITING, "until", "x"),
        (WAITING, "late", None),
    ],
)
def test_transaction_with_an_invalid_value_is_rejected_completely(
    store: Store, table: Table[Any], column: str, value: object
) -> None:
    transaction = put((COUNTERS, row(COUNTERS)), (table, row(table, **{column: value})))
    with pytest.raises(StoreFailed, match=f"table {table.name}: {column} "):
        store.commit(transaction)
    assert content(store) == {}


def test_none_is_stored_in_a_nullable_column(store: Store) -> None:
    store.commit(put((WAITING, row(WAITING, until=None))))
    (found,) = store.rows(WAITING)
    assert found.until is None


def test_key_of_the_wrong_length_is_rejected(store: Store) -> None:
    with pytest.raises(StoreFailed, match="takes 2 values, not 1"):
        store.commit(delete(EVENTS, ("a",)))


def test_unknown_table_is_rejected(store: Store) -> None:
    stranger = Table("events", CounterRow)
    with pytest.raises(StoreFailed, match="has no table events"):
        store.commit(put((stranger, CounterRow("s", 1, 1))))
    with pytest.raises(StoreFailed, match="has no table events"):
        list(store.rows(stranger))


def check_snapshots(store: Any, again: Callable[[Any], Any]) -> None:
    store.commit(put((COUNTERS, CounterRow("a", 1, 0))))
    snapshot = store.snapshot()
    store.commit(put((COUNTERS, CounterRow("a", 2, 0)), (EVENTS, row(EVENTS))))
    for _ in range(2):
        with again(snapshot) as copy:
            assert content(copy) == {"counters": [CounterRow("a", 1, 0)]}
            copy.commit(delete(COUNTERS, ("a",)))
    assert content(store) == {"counters": [CounterRow("a", 2, 0)], "events": [row(EVENTS)]}


def test_memory_store_and_its_snapshot_are_independent() -> None:
    check_snapshots(
        MemoryStore(), lambda snapshot: nullcontext(MemoryStore.from_snapshot(snapshot))
    )


def test_sqlite_store_and_its_snapshot_are_independent() -> None:
    with SqliteStore.in_memory(NAME) as store:
        check_snapshots(store, lambda snapshot: SqliteStore.from_snapshot("another", snapshot))
    SqliteStore.forget(NAME)
    SqliteStore.forget("another")


def test_memory_store_rejects_rows_beyond_its_capacity() -> None:
    store = MemoryStore(capacity_rows=2)
    store.commit(put(*((COUNTERS, numbered(COUNTERS, n)) for n in (1, 2))))
    before = content(store)
    with pytest.raises(StoreFull, match="3 rows do not fit in a store of 2"):
        store.commit(put((EVENTS, row(EVENTS)), (COUNTERS, numbered(COUNTERS, 1, dropped=99))))
    assert content(store) == before
    store.commit(put((COUNTERS, numbered(COUNTERS, 1, dropped=99))))
    transaction = delete(COUNTERS, ("000000002",))
    transaction.put(EVENTS, row(EVENTS))
    store.commit(transaction)
    assert content(store) == {
        "events": [row(EVENTS)],
        "counters": [numbered(COUNTERS, 1, dropped=99)],
    }
