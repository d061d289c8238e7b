"""Timing: process CPU time, repeats of all competitors interleaved, medians.

The caller switches the garbage collector off for the whole run (`python -m benchmarks` does), so
that no competitor pays for the objects of another.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median

Work = Callable[[], object]


def cpu_seconds(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def interleaved(works: Mapping[str, Work], repeats: int) -> dict[str, list[float]]:
    """CPU seconds of every repeat: each work once a round, and each round starts with another."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for nth in range(repeats):
        turn = nth % max(1, len(names))
        for name in names[turn:] + names[:turn]:
            seconds[name].append(cpu_seconds(works[name]))
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: median(each) for name, each in seconds.items()}


def tidy() -> None:
    """Collects what the last subject left behind; what lives on is not looked at again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
