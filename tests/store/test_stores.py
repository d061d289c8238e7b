"""What every store does, whatever it is made of."""

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
from qns.ports import Store
from qns.store.memory import MemoryStore
from qns.store.sqlite import SqliteStore
from qns.tables import (
    COUNTERS,
    EVENTS,
    QUEUED,
    SERVED,
    TABLES,
    WAITING,
    CounterRow,
    Table,
    Transaction,
)
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


def test_a_new_store_is_empty(store: Store) -> None:
    assert content(store) == {}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_row_comes_back_as_it_went_in(store: Store, table: Table[Any]) -> None:
    store.commit(put((table, row(table))))
    (found,) = store.rows(table)
    assert found == row(table)
    assert type(found) is table.row


def test_what_is_prepared_counts_from_the_second_step_on(store: Store) -> None:
    make_last = store.prepare(put((COUNTERS, CounterRow("s", 1, 0))))
    make_last()
    store.prepare(Transaction())()
    assert list(store.rows(COUNTERS)) == [CounterRow("s", 1, 0)]


def test_the_word_of_the_later_transaction_is_the_last(store: Store) -> None:
    first = put((COUNTERS, CounterRow("a", 1, 0)), (COUNTERS, CounterRow("b", 1, 0)))
    later = Transaction()
    later.delete(COUNTERS, "a")
    later.put(COUNTERS, CounterRow("b", 2, 0))
    first.add(later)
    store.commit(first)
    assert list(store.rows(COUNTERS)) == [CounterRow("b", 2, 0)]


@given(data=st.data())
def test_any_value_comes_back_as_it_went_in(data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(TABLES))
    rows = data.draw(st.lists(rows_of(table), max_size=5))
    transaction = put(*((table, each) for each in rows))
    expected = in_order(applied({}, transaction))
    with SqliteStore.in_memory("values") as on_sqlite:
        for store in (on_sqlite, MemoryStore()):
            store.commit(transaction)
            assert content(store) == expected
    SqliteStore.forget("values")


def test_infinity_and_the_largest_numbers_are_kept(store: Store) -> None:
    rows = [
        numbered(EVENTS, 1, expires_at=math.inf, sequence=2**63 - 1),
        numbered(EVENTS, 2, expires_at=-math.inf, sequence=-(2**63)),
        numbered(EVENTS, 3, expires_at=5e-324, sequence=0),
    ]
    store.commit(put(*((EVENTS, each) for each in rows)))
    assert list(store.rows(EVENTS)) == rows


def test_rows_come_in_the_order_of_their_key(store: Store) -> None:
    rows = [row(QUEUED, subscription=name, order=n) for name in "bBaéz" for n in (10, 9, -1, 100)]
    store.commit(put(*((QUEUED, each) for each in rows)))
    assert list(store.rows(QUEUED)) == sorted(rows)


def test_more_rows_than_are_read_at_a_time(store: Store) -> None:
    rows = [
        row(SERVED, delivery_group=g, source=s, event=str(e))
        for g in "ab"
        for s in "xyz"
        for e in range(171)
    ]
    store.commit(put(*((SERVED, each) for each in rows)))
    assert list(store.rows(SERVED)) == sorted(rows)


def test_rows_may_change_while_they_are_read(store: Store) -> None:
    store.commit(put(*((COUNTERS, numbered(COUNTERS, n)) for n in range(1_000))))
    read = []
    for each in store.rows(COUNTERS):
        read.append(each)
        store.commit(delete(COUNTERS, each[:1]))
    assert read == [numbered(COUNTERS, n) for n in range(1_000)]
    assert content(store) == {}


def test_a_put_replaces_the_row_with_the_same_key(store: Store) -> None:
    store.commit(put((COUNTERS, CounterRow("s", 1, 0))))
    store.commit(put((COUNTERS, CounterRow("s", 2, 5))))
    assert list(store.rows(COUNTERS)) == [CounterRow("s", 2, 5)]


def test_a_delete_takes_one_row_and_no_more(store: Store) -> None:
    store.commit(put(*((QUEUED, row(QUEUED, subscription="s", order=n)) for n in range(3))))
    store.commit(delete(QUEUED, ("s", 1), ("s", 99), ("t", 0)))
    assert [each.order for each in store.rows(QUEUED)] == [0, 2]


def test_of_two_changes_to_a_row_the_last_counts(store: Store) -> None:
    transaction = Transaction()
    transaction.put(COUNTERS, CounterRow("goes", 1, 0))
    transaction.delete(COUNTERS, "goes")
    transaction.delete(COUNTERS, "stays")
    transaction.put(COUNTERS, CounterRow("stays", 1, 0))
    store.commit(transaction)
    assert [each.subscription for each in store.rows(COUNTERS)] == ["stays"]


def test_nothing_to_commit_is_fine(store: Store) -> None:
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
def test_a_value_that_would_not_come_back_is_refused_and_nothing_is_committed(
    store: Store, table: Table[Any], column: str, value: object
) -> None:
    transaction = put((COUNTERS, row(COUNTERS)), (table, row(table, **{column: value})))
    with pytest.raises(StoreFailed, match=f"table {table.name}: {column} "):
        store.commit(transaction)
    assert content(store) == {}


def test_none_is_kept_where_the_type_allows_it(store: Store) -> None:
    store.commit(put((WAITING, row(WAITING, until=None))))
    (found,) = store.rows(WAITING)
    assert found.until is None


def test_a_key_of_another_length_is_refused(store: Store) -> None:
    with pytest.raises(StoreFailed, match="takes 2 values, not 1"):
        store.commit(delete(EVENTS, ("a",)))


def test_a_table_that_is_not_listed_is_refused(store: Store) -> None:
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


def test_a_snapshot_and_what_is_made_from_it_go_their_own_ways_in_memory() -> None:
    check_snapshots(
        MemoryStore(), lambda snapshot: nullcontext(MemoryStore.from_snapshot(snapshot))
    )


def test_a_snapshot_and_what_is_made_from_it_go_their_own_ways_in_sqlite() -> None:
    with SqliteStore.in_memory(NAME) as store:
        check_snapshots(store, lambda snapshot: SqliteStore.from_snapshot("another", snapshot))
    SqliteStore.forget(NAME)
    SqliteStore.forget("another")


def test_a_memory_store_is_full_at_its_capacity() -> None:
    store = MemoryStore(capacity_rows=2)
    store.commit(put(*((COUNTERS, numbered(COUNTERS, n)) for n in (1, 2))))
    before = content(store)
    with pytest.raises(StoreFull, match="3 rows in a store of 2"):
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
