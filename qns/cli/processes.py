"""Processes: worker processes, which leave Ctrl-C to the command and end with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread


@contextmanager
def processes(number: int) -> Iterator[Executor | None]:
    """Starts worker processes. Yields None if `number` is 1: then the command does the work."""
    if number <= 1:
        yield None
        return
    context = get_context("spawn")
    pool = ProcessPoolExecutor(number, mp_context=context, initializer=_follow_the_command)
    try:
        _start(pool, number)
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _follow_the_command() -> None:
    """Ends this worker when the command ends, because a killed command cannot stop its workers."""
    command = parent_process()
    if command is not None:
        Thread(target=_leave_with, args=(command.sentinel,), daemon=True).start()


def _leave_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def _start(pool: ProcessPoolExecutor, number: int) -> None:
    """Starts all processes while SIGINT is ignored: they inherit that. Each submit starts one."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for _ in range(number):
            pool.submit(os.getpid)
    finally:
        signal.signal(signal.SIGINT, before)
