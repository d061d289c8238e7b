"""Logs: what happened, one line each, on standard error; never what was in a notification."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

FORMATS: Final = ("json", "text")

LOG: Final = logging.getLogger("qns.runtime")


def configure_logs(level: int, format: str, stream: TextIO | None = None) -> None:
    """All that `qns` logs, and the warnings of libraries, in one format."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format == FORMATS[0] else TextFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("qns").setLevel(level)


def tell(level: int, message: str, /, **fields: Any) -> None:
    """One line with its fields: `tell(logging.INFO, "listening", url=…)`."""
    if LOG.isEnabledFor(level):
        LOG.log(level, "%s", message, extra={"fields": fields})


def tell_exception(message: str, /, **fields: Any) -> None:
    """The same for an exception that nobody expected, with where it came from."""
    LOG.error("%s", message, exc_info=True, extra={"fields": fields})


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
        told = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        message = record.getMessage()
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return f"{_time(record)} {record.levelname.lower()} {_on_one_line(message)}{told}{trace}"


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _quoted(value: object) -> str:
    text = str(value)
    return _on_one_line(text) if text and " " not in text else json.dumps(text, ensure_ascii=False)


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)
