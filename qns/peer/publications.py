"""Publications: accepts the events of this organisation's Quality Factory.

Publishing is idempotent: the same event published twice changes nothing. A different event with an
id that was used before is rejected.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256

from qns.cbr.event import Event
from qns.d2q.event_xml import MAX_EVENT_BYTES, write_event
from qns.errors import Busy, DuplicateId, LimitExceeded, NotAllowed
from qns.federation.document import Federation
from qns.federation.schema_mapper import SchemaMapper
from qns.peer.event_log import EventLog, LoggedEvent
from qns.peer.identity import Identity
from qns.peer.ports import Store
from qns.peer.tables import PUBLICATIONS, PublicationRow
from qns.peer.tuning import Tuning
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class Publications:
    identity: Identity
    log: EventLog
    tuning: Tuning
    _rows: OrderedDict[str, PublicationRow] = field(default_factory=OrderedDict)
    """Ordered, because a dict is slow to find its first key after many deletions."""

    def recover_from(self, store: Store) -> None:
        for row in sorted(store.rows(PUBLICATIONS), key=lambda row: row.sequence):
            self._rows[row.id] = row

    def accept(self, turn: Turn, event: Event, federation: Federation) -> LoggedEvent | None:
        """Gives the event its place in publication order and adds it to the log.

        Returns None if it was published before.
        """
        self._check_source(event, federation)
        digest = digest_of(event)
        if self._is_known(event, digest):
            return None
        me = self.identity.organisation
        if self.log.in_memory >= self.tuning.most_events:
            raise Busy(f"{me} holds {self.log.in_memory} events", remedy="publish it again later")
        if event.published_us is None:
            event = event._replace(published_us=int(turn.now * 1_000_000))
        xml = write_event(event, federation.schema)
        if len(xml) > MAX_EVENT_BYTES:
            raise LimitExceeded(
                f"event {event.id} has {len(xml):,} bytes of XML",
                remedy=f"at most {MAX_EVENT_BYTES:,}",
            )
        position = self.identity.next_position(turn)
        incarnation, epoch, sequence = position
        self._remember(turn, PublicationRow(event.id, sequence, digest))
        logged = LoggedEvent(event, xml, position, turn.now + event.available_s, taken=True)
        self.log.add(turn, logged)
        turn.record("pub", event=event, joined=incarnation, epoch=epoch, sequence=sequence)
        return logged

    def _check_source(self, event: Event, federation: Federation) -> None:
        me = self.identity.organisation
        if event.source != me:
            raise NotAllowed(
                f"{me} cannot publish for {event.source}",
                remedy=f"publish it at the peer of {event.source}",
            )
        if not SchemaMapper(federation).hosts(me, event.data_class):
            raise NotAllowed(
                f"{me} does not host {event.data_class}",
                remedy="the federation document says who hosts what",
            )

    def _is_known(self, event: Event, digest: bytes) -> bool:
        """True if exactly this event was published before; raises if another one has its id."""
        before = self._rows.get(event.id)
        kept = self.log.get((event.source, event.id))
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

    def _remember(self, turn: Turn, row: PublicationRow) -> None:
        self._rows[row.id] = row
        turn.put(PUBLICATIONS, row)
        if len(self._rows) > self.tuning.publications_remembered:
            oldest = next(iter(self._rows))
            del self._rows[oldest]
            turn.delete(PUBLICATIONS, oldest)


def digest_of(event: Event) -> bytes:
    """Returns a digest that is equal for equal events."""
    return sha256(repr(_canonical(event)).encode()).digest()


def _canonical(event: Event) -> tuple[object, ...]:
    """Returns a value that is equal for equal events, whatever the order of their values."""
    return (
        event.data_class,
        event.source,
        sorted(event.values.items()),
        sorted(event.previous.items()),
        event.published_us,
        float(event.available_s),
    )
