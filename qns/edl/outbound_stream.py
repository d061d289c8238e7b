"""Outbound stream: the numbered events that this producer owes one consumer.

A number is assigned once, and its event is owed until the consumer acknowledges it (semantics §8).
Rows of acknowledged events stay while the event is available: they show that it was sent, and a
consumer that was restored from an old backup gets it again. `STREAM` is the state machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final

from qns.edl.fences import Fences
from qns.edl.messages import Entry, Fence, Standing
from qns.edl.owed_rows import OwedRows
from qns.peer.event_log import EventKey, EventLog
from qns.peer.outcomes import IncidentKind
from qns.peer.row_view import RowView
from qns.peer.state_machine import TableKey
from qns.peer.tables import CONSUMERS, FENCES, ConsumerRow, FenceRow, OwedRow
from qns.peer.turn import Turn

_MOST_UNCONFIRMED: Final = 100
"""The limit of unconfirmed starts whose fences are each sent to a consumer."""

VIEW_LOST: Final = -1
"""Stands for the epoch of a view that may be older than the one that the consumer has sent."""


class StreamState(TableKey):
    CAUGHT_UP = "caught up"
    """The consumer has acknowledged every number."""
    AWAITING = "awaiting"
    """Numbers are not acknowledged yet."""
    RESENDING = "resending"
    """Unacknowledged numbers are being sent to the consumer directly."""


class StreamEvent(TableKey):
    OWED = "owed"
    """A number was assigned, or the consumer has fallen back behind its acknowledgement."""
    OVERDUE = "overdue"
    """What is owed must be sent again."""
    RESENT = "resent"
    """Everything that is owed was sent again."""
    ACKNOWLEDGED = "acknowledged"
    """Nothing is owed any more."""


STREAM: dict[tuple[StreamState, StreamEvent], StreamState] = {
    (StreamState.CAUGHT_UP, StreamEvent.OWED): StreamState.AWAITING,
    (StreamState.CAUGHT_UP, StreamEvent.ACKNOWLEDGED): StreamState.CAUGHT_UP,
    (StreamState.AWAITING, StreamEvent.OWED): StreamState.AWAITING,
    (StreamState.AWAITING, StreamEvent.OVERDUE): StreamState.RESENDING,
    (StreamState.AWAITING, StreamEvent.ACKNOWLEDGED): StreamState.CAUGHT_UP,
    (StreamState.RESENDING, StreamEvent.OWED): StreamState.RESENDING,
    (StreamState.RESENDING, StreamEvent.OVERDUE): StreamState.RESENDING,
    (StreamState.RESENDING, StreamEvent.RESENT): StreamState.AWAITING,
    (StreamState.RESENDING, StreamEvent.ACKNOWLEDGED): StreamState.CAUGHT_UP,
}


@dataclass(slots=True, eq=False)
class OutboundStream:
    producer: str
    consumer: str
    consumer_incarnation: int
    view: RowView | None = None
    most_in_memory: float = inf
    """The limit of owed rows in memory."""
    number: int = 0
    """The last number that was assigned."""
    acknowledged: int = 0
    confirmed: int = 0
    """The newest epoch of this peer whose fences the consumer knows."""
    consumer_epoch: int = 0
    """The newest epoch of the consumer that this peer knows."""
    view_epoch: int = 0
    """The epoch of the consumer that sent its view; 0 if none did, `VIEW_LOST` after a restore."""
    version: int = 0
    """The version of the consumer's view, kept in the same row."""
    state: StreamState = StreamState.CAUGHT_UP
    fences: Fences = field(default_factory=Fences)
    """Where epochs begin: each from the start of this peer on until the consumer knows a later one,
    those that have set the consumer back for ever."""
    owed: OwedRows = field(init=False)
    """The rows of events that are owed, or acknowledged and still available."""
    owed_events: int = 0
    """How many events are owed: not acknowledged and not dropped."""
    owed_bytes: int = 0
    oldest: int = 1
    """No number before this one can be dropped any more."""
    resend_next: int = 1
    """While resending: the next number to send."""
    resend_at: float | None = None
    """When unacknowledged numbers are sent again; None if nothing is owed."""
    resends: int = 0
    withheld: dict[int, str] = field(default_factory=dict)
    """Number of an event that the consumer may not read any more -> why, for its skip."""

    def __post_init__(self) -> None:
        self.owed = OwedRows(self.consumer, self.view, self.most_in_memory)

    @classmethod
    def from_row(
        cls,
        producer: str,
        row: ConsumerRow,
        view: RowView | None = None,
        most_in_memory: float = inf,
    ) -> OutboundStream:
        owes = row.acknowledged < row.number
        return cls(
            producer,
            row.consumer,
            row.joined,
            view,
            most_in_memory,
            number=row.number,
            acknowledged=row.acknowledged,
            confirmed=row.confirmed,
            consumer_epoch=row.consumer_epoch,
            view_epoch=row.view_epoch,
            version=row.version,
            state=StreamState.AWAITING if owes else StreamState.CAUGHT_UP,
        )

    def recover(self, row: OwedRow, log: EventLog) -> None:
        self.owed.recover(row, self.acknowledged)
        if row.number > self.acknowledged:
            self._owe(row, log)

    def _owe(self, row: OwedRow, log: EventLog) -> None:
        log.owe((self.producer, row.event))
        self.owed_events += 1
        self.owed_bytes += row.size

    def _settle(self, row: OwedRow, log: EventLog) -> None:
        log.settle((self.producer, row.event))
        self.owed_events -= 1
        self.owed_bytes -= row.size

    def put(self, turn: Turn) -> None:
        turn.put(
            CONSUMERS,
            ConsumerRow(
                self.consumer,
                self.consumer_incarnation,
                self.view_epoch,
                self.version,
                self.number,
                self.acknowledged,
                self.confirmed,
                self.consumer_epoch,
            ),
        )

    @property
    def is_view_lost(self) -> bool:
        """True if the view that the consumer has sent may be another one than this peer has."""
        return self.view_epoch == VIEW_LOST

    # --- numbers ----------------------------------------------------------------------------------

    def assign_number(self, turn: Turn, epoch: int, key: EventKey, log: EventLog) -> int:
        """Assigns the next number to the event and returns it."""
        self.number += 1
        row = OwedRow(self.consumer, self.number, epoch, key[1], len(log[key].xml))
        self.owed.add(turn, row, self.acknowledged)
        self._owe(row, log)
        self.put(turn)
        turn.record(
            "cross",
            to=self.consumer,
            joined=self.consumer_incarnation,
            epoch=epoch,
            number=self.number,
            event=key[1],
        )
        if self.state is StreamState.CAUGHT_UP:  # otherwise the event changes nothing
            self._change(StreamEvent.OWED)
        return self.number

    def entry(self, number: int, epoch: int, children: tuple[Entry, ...] = ()) -> Entry:
        fences = tuple(self.fences.after(self.confirmed))
        incarnation = self.consumer_incarnation
        return Entry(self.consumer, incarnation, epoch, number, self.confirmed, fences, children)

    # --- epochs -----------------------------------------------------------------------------------

    def restore(self, turn: Turn, epoch: int, first: int | None = None) -> None:
        """Starts an epoch after a restore, from the first number that may have two meanings on.

        The consumer may have other events under numbers whose epochs it has not confirmed.
        """
        firsts = [self.number + 1] if first is None else [first]
        firsts += [fence.first for fence in self.fences.after(self.confirmed)]
        fence = Fence(epoch, min(firsts))
        for each in self.fences.add(fence) or ():
            turn.delete(FENCES, self.consumer, each.epoch)
        turn.put(FENCES, FenceRow(self.consumer, *fence))

    def lose_view(self, turn: Turn) -> None:
        """Notes that the consumer may have sent a later view, which this peer has forgotten."""
        self.view_epoch = VIEW_LOST
        self.put(turn)

    def raise_fence(self, turn: Turn, epoch: int) -> None:
        """Starts an epoch after the last number that is known."""
        fence = Fence(epoch, self.number + 1)
        self.fences.append(fence)
        turn.put(FENCES, FenceRow(self.consumer, *fence))
        unconfirmed = self.fences.after(self.confirmed)
        if len(unconfirmed) > _MOST_UNCONFIRMED:  # the consumer will step back if it knows this one
            self.fences.remove_all({unconfirmed[1]})
            turn.delete(FENCES, self.consumer, unconfirmed[1].epoch)

    def find_lost_epoch(self, standing: Standing, epoch: int) -> Fence | None:
        """Returns a fence if the consumer knows an epoch that this producer has forgotten.

        The fence has the newest epoch that either side knows, and the number from which on the
        consumer has to step back: where the forgotten epoch began, or where an earlier one began
        that the consumer has not confirmed, because numbers may have been used again from there
        on. The epoch that begins then starts there, so it decides alone.
        """
        known = set(self.fences)
        newest, step_back_to = max(epoch, standing.epoch), []
        for fence in standing.fences:
            # The consumer had those up to `confirmed` when it confirmed them.
            if fence in known or fence.epoch <= self.confirmed:
                continue
            unseen = (each.first for each in self.fences.after(self.confirmed) if each < fence)
            begun = min([fence.first, *unseen])
            first = self.fences.first_after(fence.epoch)
            if first is None or first > begun:
                step_back_to.append(begun)
                newest = max(newest, fence.epoch)
        if standing.epoch > epoch or self._valid_part(standing.last, standing) > self.number:
            step_back_to.append(self.acknowledged + 1)
        if not step_back_to:
            return None
        return Fence(newest, min(*step_back_to, self.number + 1))

    def has_forgotten(self, standing: Standing) -> bool:
        """True if the consumer has accepted numbers that this producer had not given when it
        began a later epoch: its store went back in time in between."""
        return self._valid_part(standing.last, standing) < standing.last

    def _valid_part(self, last: int, standing: Standing) -> int:
        """Returns `last`, or less if a fence that the consumer does not know cuts it off."""
        first = self.fences.first_after(standing.epoch)
        return last if first is None else min(last, first - 1)

    # --- acknowledgements -------------------------------------------------------------------------

    def update_standing(
        self, turn: Turn, standing: Standing, log: EventLog, *, may_fall_back: bool
    ) -> bool:
        """Takes over the standing that the consumer reports; returns True if that is a change.

        In a new epoch the consumer may have fallen back behind what it acknowledged earlier.
        """
        last = self._valid_part(min(standing.last, self.number), standing)
        before = (self.acknowledged, self.confirmed)
        if standing.last < 0:
            return False
        if may_fall_back or standing.epoch > self.confirmed:
            self.confirmed = standing.epoch
            self._drop_fences(turn, standing)
        if last > self.acknowledged:
            self._acknowledge(last, log)
        elif may_fall_back and last < self.acknowledged:
            self._fall_back(last, log)
        if (self.acknowledged, self.confirmed) == before:
            return False
        self.put(turn)
        return True

    def _drop_fences(self, turn: Turn, standing: Standing) -> None:
        """Drops the fences that the consumer knew and does not need any more."""
        known = set(standing.fences)
        past = {each for each in self.fences if each.epoch < standing.epoch and each not in known}
        for fence in self.fences.remove_all(past):
            turn.delete(FENCES, self.consumer, fence.epoch)

    def _acknowledge(self, last: int, log: EventLog) -> None:
        for row in self.owed.between(self.acknowledged + 1, last):
            self._settle(row, log)
        self.acknowledged = last
        self.resends = 0
        for number in [each for each in self.withheld if each <= last]:
            del self.withheld[number]

    def _fall_back(self, last: int, log: EventLog) -> None:
        for row in self.owed.between(last + 1, self.acknowledged):
            self._owe(row, log)
        self.acknowledged = last
        self._change(StreamEvent.OWED)

    # --- resending --------------------------------------------------------------------------------

    @property
    def owes(self) -> bool:
        return self.acknowledged < self.number

    @property
    def is_resending(self) -> bool:
        return self.state is StreamState.RESENDING

    def resend(self) -> None:
        """Starts to send everything that is owed, from the first unacknowledged number."""
        self._change(StreamEvent.OVERDUE)
        self.resend_next = self.acknowledged + 1

    def resend_from(self, number: int) -> None:
        """Starts to send the numbers from this one on, unless earlier ones are being sent."""
        if not self.is_resending:
            self._change(StreamEvent.OVERDUE)
            self.resend_next = number

    def resent(self, last: int) -> None:
        """Notes that the numbers up to `last` were sent again."""
        if last < self.number:
            self.resend_next = last + 1
        else:
            self._change(StreamEvent.RESENT)

    def catch_up(self) -> None:
        """Notes that nothing is owed any more."""
        self.resend_at = None
        self._change(StreamEvent.ACKNOWLEDGED)

    def _change(self, event: StreamEvent) -> None:
        self.state = STREAM[self.state, event]

    # --- dropping ---------------------------------------------------------------------------------

    def keep_within(self, turn: Turn, log: EventLog, most: float, most_bytes: float) -> None:
        """Drops the oldest of what is owed beyond the limits, but never the newest event."""
        if self.number - self.acknowledged > most:
            self.drop_oldest(turn, log)
        while self.owed_bytes > most_bytes and self.owed_events > 1:
            self.drop_oldest(turn, log)

    def drop_oldest(self, turn: Turn, log: EventLog) -> None:
        self.oldest = max(self.oldest, self.acknowledged + 1)
        row = self.owed.get(self.oldest)
        while row is None and self.oldest < self.number:
            self.oldest += 1
            row = self.owed.get(self.oldest)
        if row is not None:
            self.drop(turn, row, log)

    def withhold(self, turn: Turn, row: OwedRow, log: EventLog, reason: str) -> None:
        """Gives up an owed event that the consumer may not read any more."""
        if row.number > self.acknowledged:
            self.withheld[row.number] = reason
        self.drop(turn, row, log, IncidentKind.WITHHOLD)

    def drop(
        self, turn: Turn, row: OwedRow, log: EventLog, kind: IncidentKind = IncidentKind.DROP
    ) -> None:
        """Gives up an owed event; the consumer will get a skip in its place."""
        self.owed.remove(turn, row)
        if row.number > self.acknowledged:
            self._settle(row, log)
        turn.report(
            kind,
            to=self.consumer,
            joined=self.consumer_incarnation,
            number=row.number,
            event=row.event,
        )

    def abandon(self, turn: Turn, log: EventLog) -> None:
        """Gives up everything that is owed, as declared skips."""
        for row in list(self.owed.between(self.acknowledged + 1, self.number)):
            self.drop(turn, row, log)
        self.acknowledged = self.number
        self.put(turn)
        self.catch_up()

    def end(self, turn: Turn, log: EventLog) -> None:
        """Removes every row: the consumer has left, and nothing is owed to it."""
        for row in list(self.owed.between(1, self.number)):
            if row.number > self.acknowledged:
                log.settle((self.producer, row.event))
            self.owed.remove(turn, row)
        for fence in self.fences:
            turn.delete(FENCES, self.consumer, fence.epoch)
        turn.delete(CONSUMERS, self.consumer)
