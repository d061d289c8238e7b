"""Leases: when unacknowledged deliveries of delivery groups may pass to other members.

A delivery whose row is in memory has an entry of its own. Deliveries whose rows are only on the
disk share entries: a run is a range of numbers of one subscription, with the earliest end of their
leases. So a long queue costs little memory here too.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from qns.peer.tables import DeliveryRow

LONGEST_RUN: Final = 256


class Run(NamedTuple):
    """Deliveries of one subscription, in a range of numbers."""

    end: float
    """The earliest end of their leases."""
    subscription: str
    first: int
    last: int


@dataclass(slots=True, eq=False)
class Leases:
    _heap: list[tuple[float, str, int]] = field(default_factory=list)
    """(end, subscription, first number): exactly one entry for each run."""
    _last: dict[tuple[str, int], int] = field(default_factory=dict)
    """(subscription, first number) -> the last number, of runs that have several numbers."""
    _growing: dict[str, Run] = field(default_factory=dict)
    """Subscription -> the run that its next delivery may join."""

    def __len__(self) -> int:
        """Returns the number of runs."""
        return len(self._heap)

    def next_end(self) -> float:
        return self._heap[0][0] if self._heap else inf

    def add(self, row: DeliveryRow, *, is_in_memory: bool) -> None:
        """Adds the lease of a delivery that has the highest number of its subscription so far."""
        end, id, number = row.lease_until, row.subscription, row.number
        if is_in_memory:
            heapq.heappush(self._heap, (end, id, number))
            self._growing.pop(id, None)  # so that runs do not overlap, and numbers keep their order
            return
        run = self._growing.get(id)
        if run is not None and number < run.first + LONGEST_RUN and end >= run.end:
            self._last[id, run.first] = number
        else:
            self._growing[id] = Run(end, id, number, number)
            heapq.heappush(self._heap, (end, id, number))

    def add_again(self, run: Run, end: float) -> None:
        """Adds a run that was taken, with the earliest end that its leases have now."""
        heapq.heappush(self._heap, (end, run.subscription, run.first))
        if run.last > run.first:
            self._last[run.subscription, run.first] = run.last

    def take(self, now: float) -> Run | None:
        """Removes and returns the run with the earliest end, if that has come."""
        if not self._heap or self._heap[0][0] > now:
            return None
        end, id, first = heapq.heappop(self._heap)
        growing = self._growing.get(id)
        if growing is not None and growing.first == first:
            del self._growing[id]
        return Run(end, id, first, self._last.pop((id, first), first))
