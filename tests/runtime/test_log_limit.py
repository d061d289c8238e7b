"""Repeated log lines: a few are written, and the number of the others."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

from qns.runtime import log_limit
from qns.runtime.log_limit import MOST_OF_CALLER, MOST_OF_MESSAGE, OTHERS, LimitedHandler
from qns.runtime.logs import LOG, JsonFormatter, log_event


@contextmanager
def limited(period_s: float = 3_600.0) -> Iterator[tuple[LimitedHandler, StringIO]]:
    stream = StringIO()
    handler = LimitedHandler(stream, period_s)
    handler.setFormatter(JsonFormatter())
    LOG.addHandler(handler)
    try:
        yield handler, stream
    finally:
        LOG.removeHandler(handler)


def lines(stream: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_of_one_caller_beyond_the_limit_are_counted() -> None:
    with limited() as (handler, stream):
        for nth in range(50):
            log_event(logging.WARNING, "refused", caller="anna", address=f"127.0.0.1:{nth}")
        log_event(logging.WARNING, "refused", caller="bruno")
        log_event(logging.WARNING, "another message", caller="anna")
        handler.close()
    written = lines(stream)
    assert [each["message"] for each in written] == [
        *["refused"] * (MOST_OF_CALLER + 1),
        "another message",
        "further lines were left out",
    ]
    summary = written[-1]
    assert summary["of"] == "refused"
    assert summary["caller"] == "anna"
    assert summary["left_out"] == 50 - MOST_OF_CALLER
    assert summary["level"] == "warning"


def test_connections_of_one_computer_are_one_caller() -> None:
    with limited() as (_, stream):
        for port in range(40_000, 40_050):
            log_event(logging.WARNING, "refused", address=f"127.0.0.1:{port}")
    assert len(lines(stream)) == MOST_OF_CALLER


def test_callers_with_many_names_cannot_write_more_than_the_limit_of_a_message() -> None:
    with limited() as (handler, stream):
        for nth in range(5_000):
            log_event(logging.WARNING, "refused", caller=f"name {nth}")
        handler.close()
    written = lines(stream)
    assert len(written) == MOST_OF_MESSAGE + 1
    assert (written[-1]["caller"], written[-1]["left_out"]) == (OTHERS, 5_000 - MOST_OF_MESSAGE)


def test_next_period_writes_lines_again() -> None:
    with limited(period_s=0.0) as (_, stream):
        for _ in range(50):
            log_event(logging.WARNING, "refused", caller="anna")
    assert [each["message"] for each in lines(stream)] == ["refused"] * 50


def test_end_of_a_period_is_reported_although_no_further_line_is_logged() -> None:
    async def story(stream: StringIO) -> None:
        for _ in range(MOST_OF_CALLER + 1):
            log_event(logging.WARNING, "refused", caller="anna")
        while "left_out" not in stream.getvalue():
            await asyncio.sleep(0.001)

    with limited(period_s=0.05) as (_, stream):
        asyncio.run(asyncio.wait_for(story(stream), 60.0))
    assert lines(stream)[-1]["left_out"] == 1


def test_debug_lines_are_not_limited() -> None:
    before = LOG.level
    LOG.setLevel(logging.DEBUG)
    try:
        with limited() as (_, stream):
            for _ in range(200):
                log_event(logging.DEBUG, "answered", caller="anna")
    finally:
        LOG.setLevel(before)
    assert len(lines(stream)) == 200


def test_limits_are_small_enough_for_a_disk() -> None:
    """A line has at most some hundred bytes, and there are about 30 different messages."""
    per_day = 30 * (MOST_OF_MESSAGE + 1) * 86_400 / log_limit.PERIOD_S
    assert per_day * 500 < 3 * 2**30
