"""Number series: in which start of the peer each delivery was numbered, for readers' cursors.

The numbers that a subscription's deliveries get in one start of the peer are a series. Its id is
drawn with the start. If the files of the peer are put back to an older state, the peer gives some
numbers again, but in another series. So it recognises a cursor that names a delivery of the state
that was lost.

A series costs one row, which is written with its first delivery. A series that ends before the
last acknowledged number is forgotten, because a cursor in it cannot skip anything; so are those of
a reader that does not acknowledge, beyond the newest `MOST_SERIES`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from typing import Final

from qns.iil.cursor import Cursor
from qns.peer.ports import Mark, Store
from qns.peer.tables import NUMBER_SERIES, NumberSeriesRow
from qns.peer.turn import Turn

MOST_SERIES: Final = 100
"""The most series that are kept of one subscription."""

_first_of = attrgetter("first")


@dataclass(slots=True, eq=False)
class NumberSeries:
    start: Mark
    """The mark that this start of the peer began with."""
    _rows: dict[str, list[NumberSeriesRow]] = field(default_factory=dict)
    """Subscription -> its series, in the order of their numbers."""

    def begin(self, turn: Turn, id: str, first: int) -> None:
        """Begins the series of this start with the number `first`."""
        row = NumberSeriesRow(id, first, _series_id(self.start, id))
        rows = self._rows.setdefault(id, [])
        rows.append(row)
        turn.put(NUMBER_SERIES, row)
        self._keep_newest(turn, rows, MOST_SERIES)

    def at(self, id: str, number: int) -> str:
        """Returns the series of a number; empty if it is forgotten or older than all series."""
        rows = self._rows.get(id, ())
        if rows and number >= rows[-1].first:  # the series of most numbers that are asked for
            return rows[-1].series
        place = bisect_right(rows, number, key=_first_of)
        return rows[place - 1].series if place else ""

    def may_have(self, id: str, cursor: Cursor) -> bool:
        """True unless the number of the cursor is known to be of another series."""
        return self.at(id, cursor.number) in ("", cursor.series)

    def acknowledge(self, turn: Turn, id: str, upto: int) -> None:
        """Forgets the series that end before a number that the reader acknowledges."""
        rows = self._rows.get(id, [])
        if len(rows) > 1:
            ended = bisect_right(rows, upto, key=_first_of) - 1
            self._keep_newest(turn, rows, len(rows) - max(ended, 0))

    def remove(self, turn: Turn, id: str) -> None:
        """Removes all series of a subscription that has ended."""
        self._keep_newest(turn, self._rows.pop(id, []), 0)

    def recover_from(self, store: Store) -> None:
        for row in sorted(store.rows(NUMBER_SERIES)):
            self._rows.setdefault(row.subscription, []).append(row)

    def _keep_newest(self, turn: Turn, rows: list[NumberSeriesRow], most: int) -> None:
        forgotten = rows[: max(len(rows) - most, 0)]
        for row in forgotten:
            turn.delete(NUMBER_SERIES, row.subscription, row.first)
        del rows[: len(forgotten)]


def _series_id(start: Mark, subscription: str) -> str:
    """Returns an id that no other start and no other subscription has, and that tells no secret."""
    return sha256(f"{start.epoch} {start.nonce} {subscription}".encode()).hexdigest()[:16]
