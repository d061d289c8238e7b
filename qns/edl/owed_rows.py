"""Owed rows: the rows of one outbound stream, most of them only on the disk if there are many.

The memory has the rows of the oldest unacknowledged numbers, and of recently acknowledged ones, up
to a limit. The others are read from the store when they are sent or acknowledged, so that a
consumer which is away for a month costs disk space and no memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.peer.row_view import RowView
from qns.peer.tables import OWED, OwedRow
from qns.peer.turn import Turn

_ROWS_PER_READ: Final = 1_000


@dataclass(slots=True, eq=False)
class OwedRows:
    consumer: str
    view: RowView | None = None
    """Where rows are read that are only on the disk; None if there is no limit."""
    most_in_memory: float = inf
    _rows: OrderedDict[int, OwedRow] = field(default_factory=OrderedDict)
    """By number. Ordered, because a dict is slow to find its first key after many deletions."""
    _numbers: dict[str, int] = field(default_factory=dict)
    """Event -> number, of the same rows."""
    _on_disk: int = 0
    """The number of rows that are only on the disk."""

    def __len__(self) -> int:
        return len(self._rows) + self._on_disk

    @property
    def has_rows_on_disk(self) -> bool:
        return self._on_disk > 0

    def is_in_memory(self, number: int) -> bool:
        return number in self._rows

    def add(self, turn: Turn, row: OwedRow, acknowledged: int) -> None:
        """Adds the row of the next number; the numbers up to `acknowledged` need no memory."""
        turn.put(OWED, row)
        if len(self._rows) >= self.most_in_memory:
            oldest = next(iter(self._rows))
            if oldest > acknowledged:
                self._on_disk += 1
                return
            self._forget(oldest)
            self._on_disk += 1
        self._keep(row)

    def recover(self, row: OwedRow, acknowledged: int) -> None:
        if row.number <= acknowledged or len(self._rows) >= self.most_in_memory:
            self._on_disk += 1
        else:
            self._keep(row)

    def get(self, number: int) -> OwedRow | None:
        row = self._rows.get(number)
        if row is None and self._on_disk:
            row = self._view.get(OWED, (self.consumer, number))
        return row

    def between(self, first: int, last: int) -> Iterator[OwedRow]:
        """Yields the rows of these numbers in order. A number that was dropped has no row."""
        number = first
        while number <= last:
            row = self._rows.get(number)
            if row is not None:
                yield row
            elif self._on_disk:
                break
            number += 1
        while number <= last:
            limit = min(last - number + 1, _ROWS_PER_READ)
            rows = self._view.scan(OWED, (self.consumer,), number - 1, limit)
            for row in rows:
                if row.number > last:
                    return
                yield row
            if len(rows) < limit:
                return
            number = rows[-1].number + 1

    def number_of(self, event: str) -> int | None:
        """Returns the number of an event of this producer, if it was sent and is kept."""
        number = self._numbers.get(event)
        if number is None and self._on_disk:
            for row in self._view.find(OWED, "event", event):
                if row.consumer == self.consumer:
                    return row.number
        return number

    def remove(self, turn: Turn, row: OwedRow) -> None:
        turn.delete(OWED, self.consumer, row.number)
        if not self._forget(row.number):
            self._on_disk -= 1

    def remove_event(self, turn: Turn, event: str) -> None:
        """Removes the row of an event, if it is in memory."""
        number = self._numbers.get(event)
        if number is not None:
            self._forget(number)
            turn.delete(OWED, self.consumer, number)

    def _keep(self, row: OwedRow) -> None:
        self._rows[row.number] = row
        self._numbers[row.event] = row.number

    def _forget(self, number: int) -> bool:
        """Removes a row from memory; returns False if it was not there."""
        row = self._rows.pop(number, None)
        if row is None:
            return False
        if self._numbers.get(row.event) == number:
            del self._numbers[row.event]
        return True

    @property
    def _view(self) -> RowView:
        assert self.view is not None, "a limit needs a view"
        return self.view
