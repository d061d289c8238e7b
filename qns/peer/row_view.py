"""Row view: reads rows of the store as the turns so far have left them.

A peer works ahead of the disk: the rows of its last turns may not be written yet, and those of the
turn in progress never are. Their changes are overlaid here on what the store has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, TypeVar

from qns.peer.ports import Store
from qns.peer.tables import ALL, DeliveryRow, Key, QueuedRow, Row, Table
from qns.peer.turn import Transaction

EventOfUser = TypeVar("EventOfUser", DeliveryRow, QueuedRow)

_FEW: Final = 4
"""As many rows of an event are read first: thousands of users may have it in their queues."""


class RowView:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._uncommitted: deque[Transaction] = deque()

    def begin(self, transaction: Transaction) -> None:
        """Adds the transaction of a turn that begins."""
        self._uncommitted.append(transaction)

    def committed(self, turns: int = 1) -> None:
        """Drops the transactions of the oldest turns, which the store has by now."""
        for _ in range(turns):
            self._uncommitted.popleft()

    def rows(self, table: Table[Row]) -> Iterable[Row]:
        """Yields the rows that the store has, without the changes of uncommitted turns."""
        return self._store.rows(table)

    def get(self, table: Table[Row], key: Key) -> Row | None:
        """Returns the row with this key, or None."""
        for transaction in reversed(self._uncommitted):
            changes = transaction.of(table)
            if key in changes:
                return changes[key]
        return self._store.get(table, key)

    def scan(self, table: Table[Row], prefix: Key, after: int, limit: int) -> list[Row]:
        """Returns rows in the order of their keys: `prefix`, then a number beyond `after`."""
        width = len(prefix)
        changed = {
            key: row
            for key, row in self._changes(table)
            if key[:width] == prefix and key[width] > after
        }
        # More rows are read than needed, because some of them may be deleted.
        found = {
            row[: table.key]: row
            for row in self._store.scan(table, prefix, after, limit + len(changed))
        }
        return _present(found | changed)[:limit]

    def find(self, table: Table[Row], column: str, value: object, limit: int = ALL) -> list[Row]:
        """Returns the first rows with this value in a column that has an index."""
        index = table.row._fields.index(column)  # type: ignore[attr-defined]
        stored = self._store.find(table, column, value, limit)
        found: dict[Key, Any] = {row[: table.key]: row for row in stored}
        if self._uncommitted:
            put = (each.keys_with(table, column, value) for each in self._uncommitted)
            for key in {*found, *chain.from_iterable(put)}:
                row = self._latest(table, key, found.get(key))
                found[key] = row if row is not None and row[index] == value else None
            is_cut = len(stored) == limit
            if is_cut and any(found[row[: table.key]] is None for row in stored):
                return self.find(table, column, value)[:limit]
        return _present(found)[:limit]

    def has_event(self, table: Table[EventOfUser], source: str, event: str) -> bool:
        """True if a table of users' queues has a row of the event."""
        rows = self.find(table, "event", event, _FEW)
        if len(rows) == _FEW and all(row.source != source for row in rows):
            rows = self.find(table, "event", event)
        return any(row.source == source for row in rows)

    def _latest(self, table: Table[Row], key: Key, stored: Row | None) -> Row | None:
        """Returns the row with this key, given what the store has."""
        for transaction in reversed(self._uncommitted):
            changes = transaction.of(table)
            if key in changes:
                return changes[key]
        return stored

    def _changes(self, table: Table[Row]) -> Iterator[tuple[Key, Row | None]]:
        for transaction in self._uncommitted:
            yield from transaction.of(table).items()


def _present(rows: dict[Key, Any]) -> list[Any]:
    return [rows[key] for key in sorted(rows) if rows[key] is not None]
