"""Outbound stream: the numbered events that this producer owes one consumer.

A number is given out once and its event is owed until the consumer acknowledges it (semantics §8).
Rows of acknowledged events stay while the event is available: they tell that it was sent, and a
consumer restored from an old backup gets them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from qns.edl.messages import Entry, Fence, Standing
from qns.event_log import EventKey, EventLog
from qns.tables import CONSUMERS, FENCES, OWED, ConsumerRow, FenceRow, OwedRow
from qns.turn import Turn


@dataclass(slots=True, eq=False)
class OutboundStream:
    producer: str
    consumer: str
    joined: int
    """The consumer's incarnation."""
    number: int = 0
    acknowledged: int = 0
    confirmed: int = 0
    consumer_epoch: int = 0
    """The newest life of the consumer that was heard of."""
    view_epoch: int = 0
    version: int = 0
    """Of the consumer's view, kept in the same row."""
    fences: list[Fence] = field(default_factory=list)
    rows: dict[int, OwedRow] = field(default_factory=dict)
    numbers: dict[EventKey, int] = field(default_factory=dict)
    """What was sent to this consumer and is still known here."""
    oldest: int = 1
    """No number before this one can be dropped any more."""
    resend_at: float | None = None
    resends: int = 0

    def put(self, turn: Turn) -> None:
        turn.put(
            CONSUMERS,
            ConsumerRow(
                self.consumer,
                self.joined,
                self.view_epoch,
                self.version,
                self.number,
                self.acknowledged,
                self.confirmed,
                self.consumer_epoch,
            ),
        )

    def recover(self, row: OwedRow, log: EventLog) -> None:
        key = (self.producer, row.event)
        self.rows[row.number] = row
        self.numbers[key] = row.number
        if row.number > self.acknowledged:
            log.hold(key)

    def raise_fence(self, turn: Turn, epoch: int, first: int | None = None) -> None:
        """This producer was restored: what it gave out after the backup, it does not know."""
        self._adopt(turn, Fence(epoch, self.number + 1 if first is None else first))

    def _adopt(self, turn: Turn, fence: Fence) -> None:
        self.fences.append(fence)
        turn.put(FENCES, FenceRow(self.consumer, *fence))

    def give(self, turn: Turn, epoch: int, key: EventKey, log: EventLog) -> int:
        """The event's number in this stream."""
        self.number += 1
        row = OwedRow(self.consumer, self.number, epoch, key[1])
        self.rows[self.number] = row
        self.numbers[key] = self.number
        log.hold(key)
        turn.put(OWED, row)
        self.put(turn)
        turn.record(
            "cross",
            to=self.consumer,
            joined=self.joined,
            epoch=epoch,
            number=self.number,
            event=key[1],
        )
        return self.number

    def entry(self, number: int, epoch: int, children: tuple[Entry, ...] = ()) -> Entry:
        fences = tuple(fence for fence in self.fences if fence.epoch > self.confirmed)
        return Entry(self.consumer, self.joined, epoch, number, self.confirmed, fences, children)

    def unacknowledged(self) -> Iterator[int]:
        """Numbers the consumer has not confirmed, whether their events are still here or not."""
        return iter(range(self.acknowledged + 1, self.number + 1))

    def lost_life(self, turn: Turn, standing: Standing, epoch: int) -> Fence | None:
        """Whether the consumer speaks of a life that this producer has no memory of.

        Then: the newest epoch that it knows, and the number from which on it has to step back.
        """
        known = {fence.epoch for fence in self.fences}
        steps_back = []
        for fence in standing.fences:
            if fence.epoch in known:
                continue
            if not any(f.epoch > fence.epoch and f.first <= fence.first for f in self.fences):
                steps_back.append(fence.first)
            self._adopt(turn, fence)
        last = standing.last
        for fence in self.fences:
            if fence.epoch > standing.epoch:
                last = min(last, fence.first - 1)
        if standing.epoch > epoch or last > self.number:
            steps_back.append(self.acknowledged + 1)
        if not steps_back:
            return None
        newest = max(epoch, standing.epoch, *(fence.epoch for fence in self.fences), 0)
        return Fence(newest, min(steps_back))

    def stands(self, turn: Turn, standing: Standing, log: EventLog, *, afresh: bool) -> bool:
        """Takes in where the consumer says it is; whether that is news.

        `afresh` (from a hello): it may have fallen back behind what it acknowledged once.
        """
        last = min(standing.last, self.number)
        for fence in self.fences:
            if fence.epoch > standing.epoch:
                last = min(last, fence.first - 1)
        before = (self.acknowledged, self.confirmed)
        if standing.last < 0:
            return False
        if afresh or standing.epoch > self.confirmed:
            self.confirmed = standing.epoch
        if last > self.acknowledged:
            self._acknowledge(last, log)
        elif afresh and last < self.acknowledged:
            self._fall_back(last, log)
        if (self.acknowledged, self.confirmed) == before:
            return False
        self.put(turn)
        return True

    def _acknowledge(self, last: int, log: EventLog) -> None:
        for number in range(self.acknowledged + 1, last + 1):
            row = self.rows.get(number)
            if row is not None:
                log.release((self.producer, row.event))
        self.acknowledged = last
        self.resends = 0

    def _fall_back(self, last: int, log: EventLog) -> None:
        for number in range(last + 1, self.acknowledged + 1):
            row = self.rows.get(number)
            if row is not None:
                log.hold((self.producer, row.event))
        self.acknowledged = last

    def drop_oldest(self, turn: Turn, log: EventLog) -> None:
        self.oldest = max(self.oldest, self.acknowledged + 1)
        while self.oldest not in self.rows and self.oldest < self.number:
            self.oldest += 1
        if self.oldest in self.rows:
            self.drop(turn, self.oldest, log)

    def drop(self, turn: Turn, number: int, log: EventLog) -> EventKey:
        """The operator's limit gives up an owed event; the consumer will get a skip."""
        row = self.rows.pop(number)
        key = (self.producer, row.event)
        self.numbers.pop(key, None)
        turn.delete(OWED, self.consumer, number)
        if number > self.acknowledged:
            log.release(key)
        turn.record("drop", to=self.consumer, joined=self.joined, number=number, event=row.event)
        return key

    def forget(self, turn: Turn, key: EventKey) -> None:
        """The event is gone from the log: acknowledged and expired."""
        number = self.numbers.pop(key, None)
        if number is not None:
            self.rows.pop(number, None)
            turn.delete(OWED, self.consumer, number)

    def end(self, turn: Turn, log: EventLog) -> None:
        """The consumer left: nothing is owed to it any more."""
        for number, row in self.rows.items():
            if number > self.acknowledged:
                log.release((self.producer, row.event))
            turn.delete(OWED, self.consumer, number)
        for fence in self.fences:
            turn.delete(FENCES, self.consumer, fence.epoch)
        turn.delete(CONSUMERS, self.consumer)
