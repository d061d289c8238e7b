"""Dropped numbers: the deliveries that the operator's limit dropped from the users' queues.

A queue drops its oldest delivery first, so the dropped numbers of a subscription precede all that
can still be read. They are declared to the reader with every pull until it acknowledges a number
beyond them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qns.iil.deliveries_dropped import Dropped
from qns.peer.ports import Store
from qns.peer.tables import DROPPED, DroppedRow
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class DroppedNumbers:
    _ranges: dict[str, list[DroppedRow]] = field(default_factory=dict)
    """Subscription -> its ranges of dropped numbers, in order. Only a member of a delivery group
    can have several: numbers between them were passed on to other members."""

    def add(self, turn: Turn, id: str, number: int) -> bool:
        """Adds a number; returns True if the subscription had no dropped numbers before."""
        ranges = self._ranges.setdefault(id, [])
        is_first = not ranges
        if ranges and ranges[-1].last == number - 1:
            row = ranges.pop()._replace(last=number)
        else:
            row = DroppedRow(id, number, number)
        ranges.append(row)
        turn.put(DROPPED, row)
        return is_first

    def after(self, id: str, number: int) -> tuple[Dropped, ...]:
        """Returns the ranges of a subscription after a number."""
        return tuple(
            Dropped(max(row.first, number + 1), row.last)
            for row in self._ranges.get(id, ())
            if row.last > number
        )

    def acknowledge(self, turn: Turn, id: str, upto: int) -> None:
        """Removes the numbers that the reader knows to be dropped."""
        left = [
            DroppedRow(id, max(row.first, upto + 1), row.last)
            for row in self._ranges.get(id, ())
            if row.last > upto
        ]
        self.remove(turn, id)
        for row in left:
            turn.put(DROPPED, row)
        if left:
            self._ranges[id] = left

    def remove(self, turn: Turn, id: str) -> None:
        """Removes all numbers of a subscription."""
        for row in self._ranges.pop(id, ()):
            turn.delete(DROPPED, id, row.first)

    def counts(self) -> dict[str, int]:
        """Returns how many numbers of each subscription are dropped and not acknowledged."""
        return {
            id: sum(row.last - row.first + 1 for row in ranges)
            for id, ranges in self._ranges.items()
        }

    def recover_from(self, store: Store) -> None:
        for row in sorted(store.rows(DROPPED)):
            self._ranges.setdefault(row.subscription, []).append(row)
