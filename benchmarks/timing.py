"""Timing: measures process CPU time in interleaved repeats and takes medians.

The caller switches the garbage collector off for the whole run (`python -m benchmarks` does), so
that no competitor pays for the objects of another.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median

Work = Callable[[], object]
OnProgress = Callable[[str], None]
"""Progress callback: receives what is measured next."""


def cpu_seconds(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def interleaved(works: Mapping[str, Work], repeats: int) -> dict[str, list[float]]:
    """Returns the CPU seconds of every repeat. Each round runs every work once and starts with
    another one."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for nth in range(repeats):
        first = nth % max(1, len(names))
        for name in names[first:] + names[:first]:
            seconds[name].append(cpu_seconds(works[name]))
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: median(each) for name, each in seconds.items()}


def tidy() -> None:
    """Collects garbage; the collector then ignores the objects that are left."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
