"""Queue rows: the rows of one user's queue, the oldest in memory and the others only on the disk.

Each subscription has two such queues: deliveries that can be read, and events that wait because it
is paused or pending. Memory has the rows that are read first, up to a limit. The others are counted
and read from the store when their turn comes, so that a user who is away for a month costs disk
space and no memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from typing import Final, Generic, TypeVar

from qns.peer.row_view import RowView
from qns.peer.tables import DeliveryRow, QueuedRow, Table

QueueRow = TypeVar("QueueRow", DeliveryRow, QueuedRow)

_ROWS_PER_READ: Final = 5_000
_NUMBER: Final = 1
"""The column of the number by which rows are ordered, after the subscription."""


@dataclass(slots=True, eq=False)
class QueueRows(Generic[QueueRow]):
    table: Table[QueueRow]
    subscription: str
    view: RowView | None = None
    """Where rows are read that are only on the disk; None if there is no limit."""
    most_in_memory: float = inf
    _rows: OrderedDict[int, QueueRow] = field(default_factory=OrderedDict)
    """The first rows of the queue, by number. Ordered, because a dict is slow to find its first key
    after many deletions."""
    _upto: int = 0
    """Rows of this number or an earlier one are in memory, or removed."""
    _on_disk: int = 0
    """The number of rows that are only on the disk; all come after those in memory."""

    def __len__(self) -> int:
        return len(self._rows) + self._on_disk

    @property
    def in_memory(self) -> int:
        return len(self._rows)

    def add(self, row: QueueRow) -> bool:
        """Adds a row that the turn or the store has; its number is higher than all before.

        Returns True if the row is in memory.
        """
        if self._on_disk or len(self._rows) >= self.most_in_memory:
            self._on_disk += 1
            return False
        self._rows[row[_NUMBER]] = row
        self._upto = row[_NUMBER]
        return True

    def replace(self, row: QueueRow) -> None:
        """Replaces the row of the same number."""
        if row[_NUMBER] in self._rows:
            self._rows[row[_NUMBER]] = row

    def remove(self, row: QueueRow) -> None:
        """Removes a row that is in the queue."""
        if self._rows.pop(row[_NUMBER], None) is None:
            self._on_disk -= 1

    def get(self, number: int) -> QueueRow | None:
        row = self._rows.get(number)
        if row is None and self._on_disk and number > self._upto:
            row = self._view.get(self.table, (self.subscription, number))
        return row

    def first(self) -> QueueRow | None:
        """Returns the row of the lowest number."""
        if not self._rows and self._on_disk:
            for row in self._read(self._upto, max(int(self.most_in_memory), 1)):
                self._rows[row[_NUMBER]] = row
                self._upto = row[_NUMBER]
            self._on_disk -= len(self._rows)
        return next(iter(self._rows.values()), None)

    def after(self, number: int, limit: int = _ROWS_PER_READ) -> Iterator[QueueRow]:
        """Yields the rows after a number in order; each may be removed when it has been yielded.

        Those on the disk are read in portions of `limit` rows.
        """
        is_on_disk, last = self._on_disk > 0, max(number, self._upto)
        yield from [row for row in self._rows.values() if row[_NUMBER] > number]
        while is_on_disk:
            rows = self._read(last, limit)
            yield from rows
            is_on_disk = len(rows) == limit
            last = rows[-1][_NUMBER] if rows else last

    def between(self, first: int, last: int) -> list[QueueRow]:
        """Returns the rows of these numbers in order."""
        if first == last:
            row = self.get(first)
            return [] if row is None else [row]
        rows = self.after(first - 1, last - first + 1)
        return list(takewhile(lambda row: row[_NUMBER] <= last, rows))

    def upto(self, number: int) -> Iterator[QueueRow]:
        """Yields the rows up to a number in order; each may be removed when it has been yielded."""
        near = list(takewhile(lambda each: each <= number, self._rows))
        is_all, last = len(near) == len(self._rows), self._upto
        for each in near:
            yield self._rows[each]
        if is_all and self._on_disk:
            yield from takewhile(lambda row: row[_NUMBER] <= number, self.after(last))

    def find(self, source: str, event: str) -> QueueRow | None:
        """Returns the first row of an event."""
        for row in self._rows.values():
            if (row.source, row.event) == (source, event):
                return row
        if self._on_disk:
            for row in self._view.find(self.table, "event", event):
                if (row.source, row.subscription) == (source, self.subscription):
                    return row
        return None

    def _read(self, after: int, limit: int) -> list[QueueRow]:
        return self._view.scan(self.table, (self.subscription,), after, limit)

    @property
    def _view(self) -> RowView:
        assert self.view is not None, "a limit needs a view"
        return self.view
