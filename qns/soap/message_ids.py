"""Message ids: recognises signed requests that arrive again while they are valid."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from qns.errors import Busy

MOST_MESSAGE_IDS: Final = 100_000
"""The most signed requests of one organisation that are valid at the same time."""


@dataclass(slots=True, eq=False)
class MessageIds:
    """The ids of all requests that are still valid. Ids that have expired are forgotten."""

    most: int = MOST_MESSAGE_IDS
    _ends: list[tuple[float, int, str]] = field(default_factory=list)
    """A heap of (end, order of arrival, id)."""
    _known: set[str] = field(default_factory=set)
    _taken: int = 0

    def __len__(self) -> int:
        return len(self._known)

    def take(self, id: str, now: float, ends: float) -> bool:
        """Keeps an id until `ends`; returns False for a known one, raises Busy for one too many."""
        while self._ends and self._ends[0][0] < now:
            self._known.discard(heappop(self._ends)[2])
        if id in self._known:
            return False
        if len(self._known) >= self.most:
            raise Busy(
                f"{self.most:,} signed requests are still valid, and no more can be remembered",
                remedy="try again later; sign requests with a shorter validity",
            )
        self._taken += 1
        self._known.add(id)
        heappush(self._ends, (ends, self._taken, id))
        return True
