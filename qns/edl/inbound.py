"""Inbound stream: how far this consumer has come in one producer's numbered stream.

The producer numbers the events of each consumer densely, so a hole is visible. A number at or
below `last` is a duplicate; one beyond the next is early and held back. Fences tell which numbers
of older epochs still count (docs/decisions.md, Delivery).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from qns.edl.messages import Entry, Fence, Standing
from qns.tables import EARLY, INBOUND, INBOUND_FENCES, EarlyRow, InboundFenceRow, InboundRow
from qns.turn import Turn


class Place(Enum):
    """Where an entry stands in its stream."""

    NEXT = "next"
    EARLY = "early"
    DUPLICATE = "duplicate"
    OBSOLETE = "obsolete"
    """Of a life of the producer that its restored self does not remember."""
    UNKNOWN = "unknown"
    """Of an epoch whose fences are not all known here: the producer must be asked."""


@dataclass(slots=True, eq=False)
class InboundStream:
    producer: str
    joined: int
    own: int
    """The consumer's incarnation."""
    consumer_epoch: int
    epoch: int = 0
    last: int = 0
    fences: dict[int, int] = field(default_factory=dict)
    """Epoch -> its first number."""
    early: dict[int, EarlyRow] = field(default_factory=dict)

    @property
    def standing(self) -> Standing:
        fences = tuple(Fence(*each) for each in self.fences.items())
        return Standing(self.joined, self.own, self.consumer_epoch, self.epoch, self.last, fences)

    @property
    def gap(self) -> int | None:
        """The last of the numbers that are missing before an early one."""
        return min(self.early) - 1 if self.early else None

    def place(self, epoch: int, number: int) -> Place:
        if epoch > self.epoch:
            return Place.UNKNOWN
        if any(later > epoch and number >= first for later, first in self.fences.items()):
            return Place.OBSOLETE
        if number <= self.last:
            return Place.DUPLICATE
        return Place.NEXT if number == self.last + 1 else Place.EARLY

    def learn_from(self, turn: Turn, entry: Entry) -> list[EarlyRow] | None:
        """As `learn`; None too if the entry does not tell all that is missing here."""
        if entry.confirmed > self.epoch:
            return None
        return self.learn(turn, entry.epoch, entry.fences)

    def learn(self, turn: Turn, epoch: int, fences: Iterable[Fence]) -> list[EarlyRow] | None:
        """Takes in the producer's epoch and fences; what a new fence cuts off, or None."""
        if epoch <= self.epoch:
            return None
        fresh = [fence for fence in fences if fence.epoch > self.epoch]
        self.epoch = epoch
        cut: list[EarlyRow] | None = None
        for fence in fresh:
            cut = (cut or []) + self._raise(turn, fence)
        self._put(turn)
        return cut

    def _raise(self, turn: Turn, fence: Fence) -> list[EarlyRow]:
        self.fences[fence.epoch] = fence.first
        turn.put(INBOUND_FENCES, InboundFenceRow(self.producer, self.joined, *fence))
        turn.record(
            "rewind",
            source=self.producer,
            joined=self.joined,
            own=self.own,
            epoch=fence.epoch,
            first=fence.first,
        )
        self.last = min(self.last, fence.first - 1)
        cut = [
            row
            for row in self.early.values()
            if row.epoch < fence.epoch and row.number >= fence.first
        ]
        for row in cut:
            self._drop_early(turn, row.number)
        return cut

    def hold_back(self, turn: Turn, row: EarlyRow) -> None:
        self.early[row.number] = row
        turn.put(EARLY, row)

    def keep(self, turn: Turn) -> None:
        """As it stands now; so that it is known even if nothing has come in it yet."""
        self._put(turn)

    def advance(self, turn: Turn, number: int) -> None:
        self.last = number
        self._put(turn)

    def record_taken(self, turn: Turn, epoch: int, number: int, event: str) -> None:
        turn.records.append(  # made for every notification, and a call would take twice as long
            {
                "do": "take",
                "source": self.producer,
                "joined": self.joined,
                "epoch": epoch,
                "number": number,
                "event": event,
                "own": self.own,
            }
        )

    def pop_next(self, turn: Turn) -> EarlyRow | None:
        """The early entry whose turn has come."""
        row = self.early.get(self.last + 1)
        if row is not None:
            self._drop_early(turn, row.number)
        return row

    def pop_passed(self, turn: Turn) -> list[EarlyRow]:
        """Early entries that a skip went past."""
        passed = [row for number, row in self.early.items() if number <= self.last]
        for row in passed:
            self._drop_early(turn, row.number)
        return passed

    def end(self, turn: Turn) -> list[EarlyRow]:
        """Forgets everything; the early entries that were held back."""
        for epoch in self.fences:
            turn.delete(INBOUND_FENCES, self.producer, self.joined, epoch)
        turn.delete(INBOUND, self.producer, self.joined)
        return self.pop_all(turn)

    def pop_all(self, turn: Turn) -> list[EarlyRow]:
        rows = list(self.early.values())
        for row in rows:
            self._drop_early(turn, row.number)
        return rows

    def _drop_early(self, turn: Turn, number: int) -> None:
        del self.early[number]
        turn.delete(EARLY, self.producer, self.joined, number)

    def _put(self, turn: Turn) -> None:
        turn.put(INBOUND, InboundRow(self.producer, self.joined, self.epoch, self.last))
