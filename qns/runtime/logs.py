"""Logs: writes one line for each event to standard error. Contents of events are never logged."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from qns.runtime.log_limit import LimitedHandler
from qns.runtime.log_ring import RING

FORMATS: Final = ("json", "text")

_LONGEST_TEXT: Final = 1_000
"""Characters of a field in a log line."""

LOG: Final = logging.getLogger("qns.runtime")


def configure_logs(level: int, format: str) -> None:
    """Sets the format and the limit for log lines of `qns` and for warnings of libraries."""
    handler = LimitedHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format == FORMATS[0] else TextFormatter())
    root = logging.getLogger()
    for former in root.handlers:
        if isinstance(former, LimitedHandler):
            former.close()  # which reports the lines that it has left out
    root.handlers = [handler, RING]
    root.setLevel(logging.WARNING)
    logging.getLogger("qns").setLevel(level)


def log_event(level: int, message: str, /, **fields: Any) -> None:
    """Logs one line with fields: `log_event(logging.INFO, "listening", url=…)`."""
    if LOG.isEnabledFor(level):
        LOG.log(level, "%s", message, extra={"fields": _bounded(fields)})


def log_exception(message: str, /, **fields: Any) -> None:
    """Logs an unexpected exception with its trace."""
    LOG.error("%s", message, exc_info=True, extra={"fields": _bounded(fields)})


def _bounded(fields: dict[str, Any]) -> dict[str, Any]:
    """Shortens long texts: a caller must not be able to fill the log with one request."""
    return {
        name: f"{value[:_LONGEST_TEXT]}…"
        if isinstance(value, str) and len(value) > _LONGEST_TEXT
        else value
        for name, value in fields.items()
    }


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.name != LOG.name:
            line["logger"] = record.name
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        pairs = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        message = record.getMessage()
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return f"{_time(record)} {record.levelname.lower()} {_on_one_line(message)}{pairs}{trace}"


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(value: object) -> str:
    text = str(value)
    return _on_one_line(text) if text and " " not in text else json.dumps(text, ensure_ascii=False)


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)
