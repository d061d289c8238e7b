"""Publications: which events this organisation's Quality Factory has published before.

Publishing the same event twice changes nothing; another event with an id that was used is refused.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256

from qns.cbr.event import Event
from qns.errors import DuplicateId
from qns.event_log import KnownEvent
from qns.tables import PUBLICATIONS, PublicationRow
from qns.turn import Turn


@dataclass(slots=True, eq=False)
class Publications:
    most: int
    """How many are remembered after their events are gone."""
    _rows: OrderedDict[str, PublicationRow] = field(default_factory=OrderedDict)
    """Of a plain dict the oldest is hard to find once many older ones have gone."""

    def recover(self, row: PublicationRow) -> None:
        self._rows[row.id] = row

    def has(self, event: Event, digest: bytes, kept: KnownEvent | None) -> bool:
        """Whether this very event was published; `kept` is what the log has under its id."""
        before = self._rows.get(event.id)
        if before is not None:
            is_same = before.digest == digest
        elif kept is not None:
            twin = kept.event._replace(published_us=event.published_us)
            is_same = _canonical(twin) == _canonical(event)
        else:
            return False
        if not is_same:
            raise DuplicateId(f"another event was published with id {event.id}")
        return True

    def remember(self, turn: Turn, row: PublicationRow) -> None:
        self._rows[row.id] = row
        turn.put(PUBLICATIONS, row)
        if len(self._rows) > self.most:
            oldest = next(iter(self._rows))
            del self._rows[oldest]
            turn.delete(PUBLICATIONS, oldest)


def digest_of(event: Event) -> bytes:
    return sha256(repr(_canonical(event)).encode()).digest()


def _canonical(event: Event) -> tuple[object, ...]:
    """Equal for equal events, in whatever order and form their values were given."""
    return (
        event.data_class,
        event.source,
        sorted(event.values.items()),
        sorted(event.previous.items()),
        event.published_us,
        float(event.available_s),
    )
