"""Processes: workers for a long computation, which leave Ctrl-C to the command."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context


@contextmanager
def processes(number: int) -> Iterator[Executor | None]:
    """So many fresh processes; None if this one is enough."""
    if number <= 1:
        yield None
        return
    pool = ProcessPoolExecutor(number, mp_context=get_context("spawn"))
    try:
        _start(pool, number)
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _start(pool: ProcessPoolExecutor, number: int) -> None:
    """Each idle request starts a process, and a process ignores what its parent ignores."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for _ in range(number):
            pool.submit(os.getpid)
    finally:
        signal.signal(signal.SIGINT, before)
