"""Patience: until when and with which pauses a request is repeated."""

from __future__ import annotations

from dataclasses import dataclass
from random import random
from typing import Final

from qns.peer.backoff import Backoff

LONGEST_PAUSE_S: Final = 5.0

_BACKOFF: Final = Backoff(first_s=0.1, longest_s=LONGEST_PAUSE_S)


@dataclass(slots=True)
class Patience:
    """A deadline and the attempts so far. Pauses are random, so that clients spread out."""

    until: float
    """The deadline on the monotonic clock."""
    failures: int = 0

    def next_pause_s(self, now: float, least_s: float = 0.0) -> float | None:
        """Returns the pause before the next attempt, or None if the deadline would pass.

        `least_s` is the pause for which the peer has asked.
        """
        self.failures += 1
        pause_s = _BACKOFF.pause_s(self.failures, jitter=random())  # noqa: S311  # no secret
        pause_s = max(pause_s, least_s)
        return pause_s if now + pause_s < self.until else None
