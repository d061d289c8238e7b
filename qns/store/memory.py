"""A store in memory for tests and simulated peers. It checks values as strictly as SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from qns.errors import StoreFull
from qns.peer.tables import ALL, TABLES, Key, Row, Table
from qns.peer.turn import Transaction
from qns.store.columns import layout_of

_Rows = dict[Key, Any]


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """The content of a store at one time; only `MemoryStore` uses its fields."""

    tables: Mapping[Table[Any], _Rows]


class MemoryStore:
    """Implements `ports.Store`; with `capacity_rows` rows it behaves like a full disk."""

    def __init__(self, *, capacity_rows: int | None = None) -> None:
        self.capacity_rows = capacity_rows
        self._tables: dict[Table[Any], _Rows] = {table: {} for table in TABLES}
        self._shared: set[Table[Any]] = set()
        """Tables whose rows are shared with a snapshot; they are copied before they change."""

    @classmethod
    def from_snapshot(cls, snapshot: MemorySnapshot) -> Self:
        store = cls()
        store._tables.update(snapshot.tables)
        store._shared.update(TABLES)
        return store

    def snapshot(self) -> MemorySnapshot:
        """Returns a copy that later commits do not change; a table is copied when it changes."""
        self._shared.update(TABLES)
        return MemorySnapshot(dict(self._tables))

    def rows(self, table: Table[Row]) -> Iterable[Row]:
        layout_of(table)
        return iter(sorted(self._tables[table].values()))

    def get(self, table: Table[Row], key: Key) -> Row | None:
        layout_of(table).check_key(key)
        found: Row | None = self._tables[table].get(key)
        return found

    def scan(self, table: Table[Row], prefix: Key, after: int, limit: int) -> list[Row]:
        layout_of(table).check_key((*prefix, after))
        width = len(prefix)
        keys = (k for k in self._tables[table] if k[:width] == prefix and k[width] > after)
        return [self._tables[table][key] for key in sorted(keys)[:limit]]

    def last_before(self, table: Table[Row], bound: int) -> Row | None:
        layout_of(table).check_first(bound)
        last = max((key for key in self._tables[table] if key[0] < bound), default=None)
        return None if last is None else self.get(table, last)

    def find(self, table: Table[Row], column: str, value: object, limit: int = ALL) -> list[Row]:
        place = layout_of(table).place_of(column)
        found = (row for row in self._tables[table].values() if row[place] == value)
        return sorted(found)[:limit]

    def prepare(self, transaction: Transaction) -> Callable[[], None]:
        return partial(self.commit, transaction)

    def commit(self, transaction: Transaction) -> None:
        changes = list(transaction.changes())
        growth = 0
        for table, rows in changes:
            layout, present = layout_of(table), self._tables[table]
            for key, row in rows.items():
                if row is None:
                    layout.check_key(key)
                    growth -= key in present
                else:
                    layout.check_rows((row,))
                    growth += key not in present
        self._check_capacity(growth)
        for table, rows in changes:
            self._apply(table, rows)

    def _check_capacity(self, growth: int) -> None:
        if self.capacity_rows is None or growth <= 0:
            return
        rows = sum(map(len, self._tables.values())) + growth
        if rows > self.capacity_rows:
            raise StoreFull(
                f"{rows} rows do not fit in a store of {self.capacity_rows}",
                remedy="delete rows, or increase the capacity",
            )

    def _apply(self, table: Table[Any], changes: _Rows) -> None:
        if table in self._shared:
            self._tables[table] = self._tables[table].copy()
            self._shared.discard(table)
        present = self._tables[table]
        for key, row in changes.items():
            if row is None:
                present.pop(key, None)
            else:
                present[key] = row
