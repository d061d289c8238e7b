"""Log ring: the newest log lines in memory, for the report of `qns peer report`.

The lines contain less than the log on standard error: no text that another program has sent, and of
an unexpected exception only its type and place, because its message can quote an event.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections import deque
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

from qns.runtime.log_reason import without_numbers, without_quotes

MOST_LINES: Final = 2_000
MOST_CHARACTERS: Final = 2_000
_OURS: Final = "qns"
_MOST_FRAMES: Final = 20


class LogRing(logging.Handler):
    def __init__(self, most_lines: int = MOST_LINES) -> None:
        super().__init__()
        self._lines: deque[str] = deque(maxlen=most_lines)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = json.dumps(_fields(record), ensure_ascii=False, default=str)
        except Exception:  # a line that cannot be written must not stop the peer
            self.handleError(record)
        else:
            self._lines.append(text[:MOST_CHARACTERS])

    def lines(self) -> list[str]:
        """Returns the lines, oldest first."""
        return list(self._lines)


RING: Final = LogRing()
"""The lines of this process."""


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    is_ours = record.name.partition(".")[0] == _OURS
    at = datetime.fromtimestamp(record.created, UTC)
    fields: dict[str, Any] = {
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        # Libraries write values into their messages.
        "message": record.getMessage() if is_ours else f"a message of {record.name}",
    }
    given = getattr(record, "fields", {})
    for name, value in given.items():
        fields[name] = without_quotes(value) if isinstance(value, str) else value
    if "event" in given and "reason" in given:  # another peer's words about this event
        fields["reason"] = without_numbers(fields["reason"])
    if record.exc_info and record.exc_info[0] is not None:
        fields["exception"] = record.exc_info[0].__name__
        fields["frames"] = _frames(record.exc_info[2])
    return fields


def _frames(trace: TracebackType | None) -> list[str]:
    found = traceback.extract_tb(trace)[-_MOST_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in found]
