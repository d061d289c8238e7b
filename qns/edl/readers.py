"""Readers: which consumers may read the events of this producer, by its document in force.

Everything that leaves the producer passes here first: the matches of an event, the backlog of a
view, what is sent again, and what a relay carries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from qns.edl.outbound_stream import OutboundStream
from qns.federation.document import Federation
from qns.federation.schema_mapper import SchemaMapper
from qns.federation.source_warnings import denial
from qns.peer.event_log import EventLog
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class Readers:
    me: str
    mapper: SchemaMapper
    gained: dict[str, frozenset[str]] = field(default_factory=dict)
    """Consumer -> the classes that the newest document lets it read, and the one before did not."""

    @property
    def are_restricted(self) -> bool:
        return self.mapper.federation.rights is not None

    def may_read(self, consumer: str, data_class: str) -> bool:
        return self.mapper.may_read(consumer, self.me, data_class)

    def among(self, consumers: Collection[str], data_class: str) -> list[str]:
        """Returns those of the consumers that may read the class, in the same order."""
        if not self.are_restricted:
            return list(consumers)
        return [name for name in consumers if self.may_read(name, data_class)]

    def apply_document(
        self, turn: Turn, old: Federation, new: Federation, streams: Mapping[str, OutboundStream]
    ) -> bool:
        """Follows a document, and finds out who has `gained` what.

        Returns True if a consumer may read less than before. At the start of the peer, when both
        documents are the same, only the record of what the consumers may read is made.
        """
        before, self.mapper = SchemaMapper(old), SchemaMapper(new)
        self.gained.clear()
        if old.rights is None and new.rights is None:
            return False
        is_start, everything, has_less = old is new, frozenset(new.schema.classes), False
        for name, stream in streams.items():
            was, now = before.readable(name, self.me), self.mapper.readable(name, self.me)
            if now - was:
                self.gained[name] = now - was
            has_less |= bool(was - now)
            if was != now or (is_start and now != everything):
                turn.record(
                    "rights", to=name, joined=stream.consumer_incarnation, classes=sorted(now)
                )
        return has_less

    def withhold(
        self, turn: Turn, stream: OutboundStream, first: int, last: int, log: EventLog, hop: str
    ) -> int:
        """Gives up the events among these numbers that the consumer may not read any more.

        Returns the number up to which `hop`, if it is not empty, may carry what is left.
        """
        if not self.are_restricted:
            return last
        for row in list(stream.owed.between(first, last)):
            data_class = log[self.me, row.event].event.data_class
            if not self.may_read(stream.consumer, data_class):
                version = self.mapper.federation.version
                reason = denial(stream.consumer, data_class, self.me, version)
                stream.withhold(turn, row, log, reason)
            elif hop and not self.may_read(hop, data_class):
                return row.number - 1
        return last

    def who_gained(self, data_class: str, consumers: Iterable[str]) -> list[str]:
        """Returns those of the consumers that may read the class only since the newest document."""
        return [name for name in consumers if data_class in self.gained.get(name, ())]
