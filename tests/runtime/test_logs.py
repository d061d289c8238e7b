"""Log lines: the two formats, and the lines for incidents."""

from __future__ import annotations

import json
import logging
import re
from io import StringIO

import pytest

from qns.peer.outcomes import Incident, IncidentKind, Outcomes, Rejection
from qns.runtime.incidents import Incidents
from qns.runtime.logs import LOG, JsonFormatter, TextFormatter, log_event, log_exception


def logged_line(formatter: logging.Formatter, message: str, *, trace: bool = False) -> str:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    LOG.addHandler(handler)
    try:
        if not trace:
            log_event(logging.WARNING, message, to="CoC", reason="two words", number=3)
        else:
            try:
                raise ZeroDivisionError("why")
            except ZeroDivisionError:
                log_exception(message, to="CoC")
    finally:
        LOG.removeHandler(handler)
    return stream.getvalue()


def test_json_line_is_one_object_with_all_fields() -> None:
    line = logged_line(JsonFormatter(), "a line\nbreak")
    assert line.count("\n") == 1
    record = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("time"))
    assert record == {
        "level": "warning",
        "message": "a line\nbreak",
        "to": "CoC",
        "reason": "two words",
        "number": 3,
    }
    assert (
        "ZeroDivisionError: why"
        in json.loads(logged_line(JsonFormatter(), "x", trace=True))["trace"]
    )


def test_text_line_quotes_fields_and_replaces_control_characters() -> None:
    line = logged_line(TextFormatter(), "a line\x1b")
    assert line.endswith(' warning a line� to=CoC reason="two words" number=3\n')
    assert "ZeroDivisionError: why" in logged_line(TextFormatter(), "x", trace=True)


def test_long_text_of_a_field_is_shortened(caplog: pytest.LogCaptureFixture) -> None:
    log_event(logging.WARNING, "a request was refused", reason="x" * 100_000, number=3)
    (record,) = caplog.records
    assert record.__dict__["fields"] == {"reason": "x" * 1_000 + "…", "number": 3}


def test_each_incident_and_each_dead_letter_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    incidents = Incidents()
    fields = {"source": "CoC", "first": 1, "last": 3, "why": "lost"}
    incidents.observe(Outcomes(incidents=[Incident(IncidentKind.SKIP, fields)]), 0.0)
    rejections = [Rejection(number, "CoC", "INPS", "e1", "never") for number in (4, 7)]
    incidents.observe(Outcomes(rejections=rejections), 0.0)
    incidents.observe(Outcomes(rejections=rejections), 0.0)
    logged = [
        (record.getMessage(), record.__dict__["fields"].get("number")) for record in caplog.records
    ]
    assert logged == [
        ("a producer cannot send events any more", None),
        ("a receiver will never take a notification: a dead letter", 4),
        ("a receiver will never take a notification: a dead letter", 7),
    ]
