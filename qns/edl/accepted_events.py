"""Accepted events: how far a consumer has accepted the publications of one producer, by epoch.

A producer publishes the events of one epoch in the order of their sequence, and each consumer
accepts its part of them in that order. So the highest accepted sequence of an epoch tells which
events were accepted before, also after a start of the consumer. It does not tell of an event that
the producer sends to a late subscriber, out of this order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from qns.peer.tables import ACCEPTED, AcceptedRow
from qns.peer.turn import Turn

_MOST_EPOCHS: Final = 100
"""The limit of earlier epochs; the oldest is forgotten, and its events may be delivered again."""


@dataclass(slots=True, eq=False)
class AcceptedEvents:
    producer: str
    producer_incarnation: int
    epoch: int = 0
    """The epoch in which the last accepted event was published."""
    sequence: int = 0
    """The highest accepted sequence of that epoch. Both are in the row of the stream."""
    _earlier: dict[int, int] = field(default_factory=dict)
    """The other epochs -> the highest accepted sequence."""

    def recover(self, epoch: int, sequence: int) -> None:
        """Adds an earlier epoch; the row of the stream, which is read first, counts if both have
        the same epoch."""
        if epoch != self.epoch:
            self._earlier[epoch] = sequence

    def has(self, position: tuple[int, int, int]) -> bool:
        """True if the event at this position, or a later one of its epoch, was accepted."""
        _, epoch, sequence = position
        if epoch == self.epoch:
            return sequence <= self.sequence
        return sequence <= self._earlier.get(epoch, 0)

    def add(self, turn: Turn, position: tuple[int, int, int]) -> None:
        """Notes an accepted event; the caller writes the row of the stream."""
        _, epoch, sequence = position
        if epoch != self.epoch:
            self._change_epoch(turn, epoch)
        if sequence > self.sequence:
            self.sequence = sequence

    def end(self, turn: Turn) -> None:
        """Removes every row."""
        for epoch in self._earlier:
            turn.delete(ACCEPTED, self.producer, self.producer_incarnation, epoch)
        self._earlier.clear()

    def _change_epoch(self, turn: Turn, epoch: int) -> None:
        if self.sequence:
            self._earlier[self.epoch] = self.sequence
            turn.put(
                ACCEPTED,
                AcceptedRow(self.producer, self.producer_incarnation, self.epoch, self.sequence),
            )
        self.epoch, self.sequence = epoch, self._earlier.pop(epoch, 0)
        turn.delete(ACCEPTED, self.producer, self.producer_incarnation, epoch)
        if len(self._earlier) > _MOST_EPOCHS:
            oldest = min(self._earlier)
            del self._earlier[oldest]
            turn.delete(ACCEPTED, self.producer, self.producer_incarnation, oldest)
