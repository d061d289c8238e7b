"""Resending: sends again what consumers have not acknowledged, directly or through relays.

Whatever it sends, `Readers` has checked: a consumer may have lost the right to read an event, and a
relay may never have had it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from qns.cbr.event import Event
from qns.edl.messages import Item, Skip
from qns.edl.outbound_stream import OutboundStream
from qns.edl.stream_items import stream_items
from qns.peer.turn import Turn

if TYPE_CHECKING:
    from qns.edl.producer import Producer

_MOST_RESEND_PAUSES = 4
"""The pause before the next resending grows up to this many times the first one."""


@dataclass(slots=True, eq=False)
class Resending:
    producer: Producer

    def handle_due(self, turn: Turn) -> None:
        """Starts to resend what has not been acknowledged for too long."""
        for stream in self.producer.streams.values():
            if stream.resend_at is not None and stream.resend_at <= turn.now:
                self.resend(turn, stream)
        if self.producer.relays.ways or self.producer.forwarder.reachability.unreachable():
            interested = self.producer.table.matcher.interested
            self.producer.relays.choose(
                turn.now, self.producer.streams, self._next_event, interested
            )

    def next_due(self) -> float:
        due = (
            each.resend_at for each in self.producer.streams.values() if each.resend_at is not None
        )
        return min(self.producer.relays.next_due(), min(due, default=inf))

    def resend_unanswered(self, consumer: str) -> None:
        """A Notify was not answered: sends again what the consumer has not acknowledged."""
        stream = self.producer.streams.get(consumer)
        if stream is not None and stream.owes:
            stream.resend()

    def next_resent(self, turn: Turn, other: str) -> list[Item]:
        """Returns the next items that are sent again to a consumer, or relayed by another peer."""
        stream = self.producer.streams.get(other)
        if stream is not None and stream.is_resending and self.producer.relays.hop(other) is None:
            return self._next_owed(turn, stream, self.producer.tuning.notifications_per_call)
        for consumer, way in self.producer.relays.ways.items():
            if way.hop == other and self.producer.streams[consumer].is_resending:
                room = self.producer.relays.room(consumer, turn.now)
                if room:
                    return self._next_owed(turn, self.producer.streams[consumer], room, other)
        return []

    def _next_owed(
        self, turn: Turn, stream: OutboundStream, limit: int, hop: str = ""
    ) -> list[Item]:
        """Returns the next items; through a relay only up to what it may not read."""
        first = max(stream.resend_next, stream.acknowledged + 1)
        last = min(stream.number, first + limit - 1)
        items = self.items(turn, stream, first, last, hop)
        if not items and first <= last:
            return []  # another relay is chosen when this is due to be sent again
        if items:
            end = items[-1]
            last = end.last if isinstance(end, Skip) else end.entry.number
        stream.resent(last)
        return items

    def _next_event(self, stream: OutboundStream) -> Event | None:
        """Returns the first event that is owed to a consumer, if it may still read it."""
        producer = self.producer
        for row in stream.owed.between(stream.acknowledged + 1, stream.number):
            event = producer.log[producer.me, row.event].event
            if producer.readers.may_read(stream.consumer, event.data_class):
                return event
        return None

    def relay_refused(self, consumer: str) -> None:
        """Makes another relay due: the present one rejected an event for the consumer."""
        self.producer.relays.change(consumer)
        self.resend_unanswered(consumer)

    def resend(self, turn: Turn, stream: OutboundStream) -> None:
        stream.resends += 1
        pause_s = self.producer.relays.pause_s(stream.consumer)
        if pause_s is None:
            pause_s = self.producer.tuning.resend_after_s * min(stream.resends, _MOST_RESEND_PAUSES)
        self.producer.relays.change(stream.consumer)
        stream.resend_at = turn.now + pause_s
        stream.resend()
        self.producer.forwarder.bypass(turn, stream.consumer)

    def resend_all(self, turn: Turn) -> None:
        for stream in self.producer.streams.values():
            if stream.owes:
                self.resend(turn, stream)

    def items(
        self, turn: Turn, stream: OutboundStream, first: int, last: int, hop: str = ""
    ) -> list[Item]:
        """Returns these numbers as they are sent to their consumer, or to the `hop` that relays."""
        producer, log = self.producer, self.producer.log
        most_bytes = producer.tuning.bytes_per_call
        last = producer.readers.withhold(turn, stream, first, last, log, hop)
        position = producer.incarnation, producer.epoch
        return stream_items(stream, first, last, log, turn.now, *position, most_bytes)
