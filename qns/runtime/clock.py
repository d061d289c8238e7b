"""Clock: the time of day, which never goes back and does not follow a passing error."""

from __future__ import annotations

import time as clocks
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, time
from typing import Final

from qns.peer.steady_time import SteadyTime

_RUNNING: Final = getattr(clocks, "CLOCK_BOOTTIME", clocks.CLOCK_MONOTONIC)
"""A clock that nobody sets. On Linux it also counts the time in which the machine is suspended."""


def monotonic() -> float:
    return clocks.clock_gettime(_RUNNING)


@dataclass(slots=True)
class SteadyClock:
    _time: SteadyTime = field(default_factory=SteadyTime)

    def now(self) -> float:
        """Returns the time of day."""
        clock = time()  # before the other clock, so that a pause between counts once
        return self._time.at(clock, monotonic())


def timed(do: Callable[[], None], started: float) -> float:
    """Calls the function; returns the seconds since `started`, a value of `perf_counter`."""
    do()
    return perf_counter() - started
