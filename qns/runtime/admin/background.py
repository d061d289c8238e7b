"""Background: runs long work of an operation in a thread, with reports of its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from qns.runtime.admin.operation import Report

REPORT_EVERY_S: Final = 0.5

Answer = TypeVar("Answer")


class WorkCancelled(BaseException):
    """Ends work that nobody waits for any more."""


@dataclass(slots=True, eq=False)
class WorkProgress:
    """What the thread has done. The thread writes it, the event loop reads it."""

    stage: str = ""
    done: int = 0
    total: int = 0
    is_cancelled: bool = False

    def begin(self, stage: str) -> None:
        self.stage, self.done, self.total = stage, 0, 0

    def __call__(self, done: int, total: int) -> None:
        """Sets the bytes that are done; raises WorkCancelled if the work is to end."""
        self.done, self.total = done, total
        if self.is_cancelled:
            raise WorkCancelled


async def in_background(work: Callable[[WorkProgress], Answer], report: Report) -> Answer:
    """Returns the result of the work. If this is cancelled, it waits until the thread has ended."""
    progress = WorkProgress()
    running = asyncio.ensure_future(asyncio.to_thread(work, progress))
    try:
        while not running.done():
            await asyncio.wait((running,), timeout=REPORT_EVERY_S)
            if not running.done():
                await report(
                    {"stage": progress.stage, "done": progress.done, "total": progress.total}
                )
    except BaseException:
        progress.is_cancelled = True
        await asyncio.wait((running,))
        running.cancelled() or running.exception()  # it was ended on purpose
        raise
    return running.result()
