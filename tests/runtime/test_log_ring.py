"""Tests of the log lines that a report contains."""

from __future__ import annotations

import json
import logging
from typing import Any

from qns.runtime.log_ring import MOST_CHARACTERS, LogRing

PLANTED = "MCLMSM73H17H501F"


def lines_of(*records: logging.LogRecord) -> list[dict[str, Any]]:
    ring = LogRing()
    for record in records:
        ring.handle(record)
    return [json.loads(line) for line in ring.lines()]


def record(message: str, name: str = "qns.runtime", **fields: Any) -> logging.LogRecord:
    values = {"name": name, "msg": message, "levelname": "WARNING", "fields": fields}
    return logging.makeLogRecord(values)


def test_ring_keeps_the_newest_lines_and_cuts_long_ones() -> None:
    ring = LogRing(most_lines=3)
    for number in range(5):
        ring.handle(record(f"line {number}", text="x" * 3 * MOST_CHARACTERS))
    assert len(ring.lines()) == 3
    assert '"message": "line 2"' in ring.lines()[0]
    assert all(len(line) == MOST_CHARACTERS for line in ring.lines())


def test_line_has_the_time_the_level_and_the_fields() -> None:
    (line,) = lines_of(record("a peer does not answer", to="CoC", failures=3))
    assert line["message"] == "a peer does not answer"
    assert line["level"] == "warning"
    assert (line["to"], line["failures"]) == ("CoC", 3)
    assert line["time"].endswith("Z")


def test_quoted_text_in_a_field_is_left_out() -> None:
    (line,) = lines_of(record("refused", reason=f"'{PLANTED}' is not a date"))
    assert line["reason"] == "'…' is not a date"


def test_numbers_in_the_reason_of_a_dead_letter_are_left_out() -> None:
    (line,) = lines_of(record("a dead letter", event="e1", reason="7350017 is too large"))
    assert line["reason"] == "… is too large"


def test_exception_is_kept_without_its_message() -> None:
    try:
        raise ValueError(PLANTED)
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    failed = record("a turn failed")
    failed.exc_info = info
    (line,) = lines_of(failed)
    assert line["exception"] == "ValueError"
    assert "test_log_ring.py" in line["frames"][0]
    assert PLANTED not in json.dumps(line)


def test_message_of_a_library_is_left_out() -> None:
    (line,) = lines_of(record(f"got {PLANTED}", name="asyncio"))
    assert line["message"] == "a message of asyncio"
