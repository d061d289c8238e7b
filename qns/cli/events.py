"""Events from a file: one JSON object per line, read in batches, each with its id as given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from qns.cbr.event import Event
from qns.cli.inputs import Input, decoded, too_long
from qns.cli.problems import Problem
from qns.d2q.event_json import MAX_LINE_BYTES, EventReader
from qns.d2q.schema import Schema
from qns.errors import DocumentError, QnsError

Ids = list[Any]
"""Strings and whole numbers, as the file has them."""

_EXCERPT_BYTES: Final = 1 << 16


def event_batches(
    source: Input,
    schema: Schema,
    report: Callable[[Problem], None],
    seen: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[Ids, list[Event]]]:
    """The good events in order, some hundred at a time; a bad line is reported and left out."""
    reader = EventReader(schema)
    for first, lines in source.batches(MAX_LINE_BYTES, seen):
        ids: Ids = []
        events: list[Event] = []
        for number, line in enumerate(lines, start=first):
            if line is not None and not line.strip():
                continue
            try:
                fields = _fields(line)
                events.append(reader.from_fields(fields))
                ids.append(fields["id"])
            except QnsError as problem:
                text = "" if line is None else line[:_EXCERPT_BYTES].decode("utf-8", "replace")
                report(Problem.of(problem, source.name, line=number, text=text))
        if events:
            yield ids, events


def _fields(line: bytes | None) -> Any:
    if line is None:
        raise too_long(MAX_LINE_BYTES)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        decoded(line)
        reason = problem.msg[:1].lower() + problem.msg[1:]
        raise DocumentError(f"not JSON: {reason}").at_mark(1, problem.colno) from None
