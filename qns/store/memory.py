"""A store in memory, for tests and simulated peers: as strict as the disk, and quick to copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from qns.errors import StoreFull
from qns.store.columns import shape_of
from qns.tables import TABLES, Key, Row, Table, Transaction

_Rows = dict[Key, Any]


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """A store as it was; opaque."""

    tables: Mapping[Table[Any], _Rows]


class MemoryStore:
    """Implements `ports.Store`; beyond `capacity_rows` it does not grow, as on a full disk."""

    def __init__(self, *, capacity_rows: int | None = None) -> None:
        self.capacity_rows = capacity_rows
        self._tables: dict[Table[Any], _Rows] = {table: {} for table in TABLES}
        self._shared: set[Table[Any]] = set()
        """Tables whose rows a snapshot holds too: copied before they are changed."""

    @classmethod
    def from_snapshot(cls, snapshot: MemorySnapshot, *, capacity_rows: int | None = None) -> Self:
        store = cls(capacity_rows=capacity_rows)
        store._tables.update(snapshot.tables)
        store._shared.update(TABLES)
        return store

    def snapshot(self) -> MemorySnapshot:
        """A copy that later commits leave alone; rows are copied only when their table changes."""
        self._shared.update(TABLES)
        return MemorySnapshot(dict(self._tables))

    def rows(self, table: Table[Row]) -> Iterable[Row]:
        shape_of(table)
        return iter(sorted(self._tables[table].values()))

    def prepare(self, transaction: Transaction) -> Callable[[], None]:
        return partial(self.commit, transaction)

    def commit(self, transaction: Transaction) -> None:
        changes = list(transaction.changes())
        growth = 0
        for table, rows in changes:
            shape, present = shape_of(table), self._tables[table]
            for key, row in rows.items():
                if row is None:
                    shape.check_key(key)
                    growth -= key in present
                else:
                    shape.check_rows((row,))
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
                f"{rows} rows in a store of {self.capacity_rows}",
                remedy="delete rows, or give the store more room",
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
