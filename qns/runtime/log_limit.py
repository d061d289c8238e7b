"""Log limit: leaves out repeated log lines, so that a caller in a loop cannot fill the disk.

In each period, a few lines of one message and one caller are written, and some more of one message
for all callers. At the end of the period, one line says how many others were left out. Lines of the
level debug are not limited.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Final, TextIO

PERIOD_S: Final = 60.0
MOST_OF_CALLER: Final = 10
MOST_OF_MESSAGE: Final = 100
OTHERS: Final = "others"
"""The caller in the summary of lines that were left out because of the limit of their message."""

_CALLERS: Final = ("caller", "to", "source", "address")
"""The fields that tell for whom a line is; the first that a line has counts."""


class LimitedHandler(logging.StreamHandler[TextIO]):
    def __init__(self, stream: TextIO, period_s: float = PERIOD_S) -> None:
        super().__init__(stream)
        self._limit = LogLimit(self._summarise, period_s)

    def handle(self, record: logging.LogRecord) -> bool:
        if not self._limit.allows(record):
            return False
        return bool(super().handle(record))

    def close(self) -> None:
        self._limit.end_period()
        super().close()

    def _summarise(self, like: logging.LogRecord, caller: str, number: int) -> None:
        summary = logging.makeLogRecord(
            {
                "name": like.name,
                "levelno": like.levelno,
                "levelname": like.levelname,
                "msg": "further lines were left out",
                "fields": {"of": like.getMessage(), "caller": caller, "left_out": number},
            }
        )
        super().handle(summary)


Summarise = Callable[[logging.LogRecord, str, int], None]
"""Callback that receives a record, a caller, and how many records like it were left out."""


class LogLimit:
    def __init__(self, summarise: Summarise, period_s: float = PERIOD_S) -> None:
        self._summarise = summarise
        self._period_s = period_s
        self._begun = monotonic()
        self._of_message: Counter[str] = Counter()
        self._of_caller: Counter[tuple[str, str]] = Counter()
        self._left_out: dict[tuple[str, str], tuple[logging.LogRecord, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def allows(self, record: logging.LogRecord) -> bool:
        """Counts the record; returns False if it is to be left out."""
        if record.levelno < logging.INFO:
            return True
        if monotonic() - self._begun >= self._period_s:
            self.end_period()
        message, caller = record.getMessage(), _caller(record)
        if self._of_message[message] >= MOST_OF_MESSAGE:
            caller = caller if (message, caller) in self._of_caller else OTHERS
        elif self._of_caller[message, caller] < MOST_OF_CALLER:
            self._of_caller[message, caller] += 1
            self._of_message[message] += 1
            return True
        first, number = self._left_out.get((message, caller), (record, 0))
        self._left_out[message, caller] = first, number + 1
        self._end_period_later()
        return False

    def end_period(self) -> None:
        """Reports what was left out, and begins the next period."""
        left_out, self._left_out = self._left_out, {}
        self._of_message.clear()
        self._of_caller.clear()
        self._begun = monotonic()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for (_, caller), (record, number) in left_out.items():
            self._summarise(record, caller, number)

    def _end_period_later(self) -> None:
        """Sets a timer, because there may be no further line that would end the period."""
        if self._timer is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return
            left_s = self._begun + self._period_s - monotonic()
            self._timer = loop.call_later(max(0.0, left_s), self.end_period)


def _caller(record: logging.LogRecord) -> str:
    fields = getattr(record, "fields", {})
    for name in _CALLERS:
        if fields.get(name):
            text = str(fields[name])
            return text.rpartition(":")[0] if name == "address" else text
    return ""
