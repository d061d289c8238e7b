"""Patience: how often, how long and with which pauses a request is repeated."""

from __future__ import annotations

from dataclasses import dataclass
from random import random
from typing import Final

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0


@dataclass(slots=True)
class Patience:
    """Ends at a point in time; pauses double, and differ by chance between clients."""

    until: float
    """By the monotonic clock."""
    pause_s: float = FIRST_PAUSE_S

    def next_pause_s(self, now: float) -> float | None:
        """How long to wait before trying again, or None if it is time to give up."""
        pause_s = self.pause_s * (0.5 + random() / 2)  # noqa: S311  # no secret
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        return pause_s if now + pause_s < self.until else None
