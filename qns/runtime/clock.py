"""Clock: the time of day, which never goes back and does not follow a passing error."""

from __future__ import annotations

import time as clocks
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import perf_counter, time
from typing import Final

_RUNNING: Final = getattr(clocks, "CLOCK_BOOTTIME", clocks.CLOCK_MONOTONIC)
"""A clock that cannot be set. On Linux it also counts while the machine is suspended."""

LARGEST_STEP_S: Final = 60.0
"""A larger step forward is accepted only if it lasts for `LASTS_S`."""
LASTS_S: Final = 600.0
"""How long a larger step has to last."""


def monotonic() -> float:
    return clocks.clock_gettime(_RUNNING)


@dataclass(slots=True)
class SteadyClock:
    _now: float = 0.0
    _passed: float = inf
    """The monotonic clock at the time `_now`."""
    _ahead_since: float = inf
    """The monotonic clock when the time of day made a large step forward."""

    def now(self) -> float:
        """Returns the time of day.

        If the clock is set back, the time passes half as fast until the clock has caught up. A
        large step forward counts only if it lasts: what it would end cannot be brought back.
        """
        clock, passed = time(), monotonic()  # in this order, so that a pause between counts once
        elapsed = max(0.0, passed - self._passed)
        is_ahead = clock > self._now + elapsed + LARGEST_STEP_S and self._passed < inf
        self._ahead_since = min(self._ahead_since, passed) if is_ahead else inf
        self._passed = passed
        if is_ahead and passed - self._ahead_since < LASTS_S:
            self._now += elapsed
        else:
            self._now = max(self._now + elapsed / 2, clock)
        return self._now


def timed(do: Callable[[], None], started: float) -> float:
    """Calls the function; returns the seconds since `started`, a value of `perf_counter`."""
    do()
    return perf_counter() - started
