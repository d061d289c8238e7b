"""Builds rows for any table from the types of its columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from qns.peer.ports import Store
from qns.peer.tables import COUNTERS, EVENTS, TABLES, CounterRow, Key, Table
from qns.peer.turn import Transaction
from qns.store.columns import Column, layout_of

Model = dict[Table[Any], dict[Key, Any]]

_PLAIN: dict[str, Any] = {"TEXT": "text", "INTEGER": 7, "REAL": 0.5, "BLOB": b"\x00\xff"}


def row(table: Table[Any], **values: object) -> Any:
    """Returns a row; columns without a given value have some value of the right type."""
    plain = {column.name: _PLAIN[column.kind] for column in layout_of(table).columns}
    return table.row(**(plain | values))


def numbered(table: Table[Any], number: int, **values: object) -> Any:
    """Returns a row whose key is derived from the number."""
    for column in layout_of(table).keys:
        values.setdefault(column.name, f"{number:09}" if column.kind == "TEXT" else number)
    return row(table, **values)


def put(*rows: tuple[Table[Any], Any]) -> Transaction:
    transaction = Transaction()
    for table, each in rows:
        transaction.put(table, each)
    return transaction


def delete(table: Table[Any], *keys: Key) -> Transaction:
    transaction = Transaction()
    for key in keys:
        transaction.delete(table, *key)
    return transaction


def growing(number: int, size: int = 4_000) -> Transaction:
    """Returns a transaction for which the file must grow by a page."""
    return put((EVENTS, numbered(EVENTS, number, xml=bytes(size))))


def in_place(number: int) -> Transaction:
    """Returns a transaction for which the file need not grow, if the row exists already."""
    return put((COUNTERS, CounterRow("some subscription", number, number)))


def content(store: Store) -> dict[str, list[Any]]:
    """Returns the rows of every table that is not empty, in the order of `rows`."""
    return {table.name: found for table in TABLES if (found := list(store.rows(table)))}


def in_order(model: Model) -> dict[str, list[Any]]:
    return {
        table.name: [rows[key] for key in sorted(rows)] for table, rows in model.items() if rows
    }


def applied(model: Model, transaction: Transaction) -> Model:
    """Returns the model after a transaction, computed in the most obvious way."""
    new = {table: dict(rows) for table, rows in model.items()}
    for table, changes in transaction.changes():
        for key, changed in changes.items():
            new.setdefault(table, {}).pop(key, None)
            if changed is not None:
                new[table][key] = changed
    return new


# Keys are drawn from few values, so that rows are replaced and deleted; other values are arbitrary.

_KEYS: dict[str, st.SearchStrategy[Any]] = {
    "TEXT": st.sampled_from(["", "a", "B", "b", "a\x00", "é", "\uffff", "\U0001f600"]),
    "INTEGER": st.sampled_from([-(2**63), -1, 0, 1, 2, 10, 2**63 - 1]),
}
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "TEXT": st.text(max_size=20),
    "INTEGER": st.integers(-(2**63), 2**63 - 1),
    "REAL": st.floats(allow_nan=False),
    "BLOB": st.binary(max_size=20),
}


def _values(column: Column) -> st.SearchStrategy[Any]:
    return st.none() | _VALUES[column.kind] if column.nullable else _VALUES[column.kind]


def keys_of(table: Table[Any]) -> st.SearchStrategy[Key]:
    return st.tuples(*(_KEYS[column.kind] for column in layout_of(table).keys))


def rows_of(table: Table[Any]) -> st.SearchStrategy[Any]:
    others = layout_of(table).columns[table.key :]
    return st.tuples(keys_of(table), *map(_values, others)).map(
        lambda values: table.row(*values[0], *values[1:])
    )


def _transaction(changes: Iterable[tuple[Table[Any], Any, Any]]) -> Transaction:
    transaction = Transaction()
    for table, key, changed in changes:
        if changed is None:
            transaction.delete(table, *key)
        else:
            transaction.put(table, changed)
    return transaction


def transactions(max_changes: int = 8) -> st.SearchStrategy[Transaction]:
    change = st.sampled_from(TABLES).flatmap(
        lambda table: (
            st.tuples(st.just(table), st.none(), rows_of(table))
            | st.tuples(st.just(table), keys_of(table), st.none())
        )
    )
    return st.lists(change, max_size=max_changes).map(_transaction)
