"""Steady time: follows a time of day that may be set, without going back or a passing error.

The caller reads both clocks, so that a simulated host uses this as a real process does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

LARGEST_STEP_S: Final = 60.0
"""A larger step forward is believed only if it lasts."""
LASTS_S: Final = 600.0
"""For as long a larger step has to last."""


@dataclass(slots=True)
class SteadyTime:
    _now: float = -inf
    _passed: float = inf
    """The monotonic clock at the time `_now`."""
    _ahead_since: float = inf
    """The monotonic clock when the time of day made a large step forward."""

    def at(self, clock: float, passed: float) -> float:
        """Returns the time if the time of day and the monotonic clock show these values.

        If the clock is set back, the time passes half as fast until the clock has caught up. A
        large step forward counts only if it lasts: what it would end cannot be brought back.
        """
        elapsed = max(0.0, passed - self._passed)
        is_ahead = clock > self._now + elapsed + LARGEST_STEP_S and self._passed < inf
        self._ahead_since = min(self._ahead_since, passed) if is_ahead else inf
        self._passed = passed
        if is_ahead and passed - self._ahead_since < LASTS_S:
            self._now += elapsed
        else:
            self._now = max(self._now + elapsed / 2, clock)
        return self._now
