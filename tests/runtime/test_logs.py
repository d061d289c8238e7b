"""Log lines: their two formats, and the incidents that are told in them."""

from __future__ import annotations

import json
import logging
import re
from io import StringIO
from pathlib import Path

import pytest

from qns.runtime.incidents import Incidents
from qns.runtime.logs import LOG, JsonFormatter, TextFormatter, tell, tell_exception
from qns.tables import DeadLetterRow
from tests.runtime.test_driver import run, staged


def told(formatter: logging.Formatter, message: str, *, trace: bool = False) -> str:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    LOG.addHandler(handler)
    try:
        if not trace:
            tell(logging.WARNING, message, to="CoC", reason="two words", number=3)
        else:
            try:
                raise ZeroDivisionError("why")
            except ZeroDivisionError:
                tell_exception(message, to="CoC")
    finally:
        LOG.removeHandler(handler)
    return stream.getvalue()


def test_a_line_is_one_json_object() -> None:
    line = told(JsonFormatter(), "a line\nbreak")
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
    assert "ZeroDivisionError: why" in json.loads(told(JsonFormatter(), "x", trace=True))["trace"]


def test_a_line_as_text() -> None:
    line = told(TextFormatter(), "a line\x1b")
    assert line.endswith(' warning a line� to=CoC reason="two words" number=3\n')
    assert "ZeroDivisionError: why" in told(TextFormatter(), "x", trace=True)


def test_incidents_are_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with staged(tmp_path) as stage:
            peer, incidents = stage.driver.peer, Incidents()
            caplog.clear()
            skip = {"do": "skip", "source": "CoC", "first": 1, "last": 3, "why": "lost"}
            incidents.watch(peer, [{"do": "take"}, skip], 0.0)
            letters = peer.edl.forwarder.custody.dead_letters
            for number in (4, 7):
                letters[number] = DeadLetterRow(number, 0.0, "CoC", "INPS", "e1", "", "never")
            incidents.watch(peer, [], 0.0)
            incidents.watch(peer, [], 0.0)

    run(story())
    told = [
        (record.getMessage(), record.__dict__["fields"].get("number")) for record in caplog.records
    ]
    assert told == [
        ("a producer cannot send events any more", None),
        ("a receiver will never take a notification: a dead letter", 4),
        ("a receiver will never take a notification: a dead letter", 7),
    ]
