"""Event file: events from a file with one JSON object per line, read in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from qns.cbr.event import Event
from qns.cli.inputs import Input, decoded, too_long
from qns.cli.problems import Problem
from qns.d2q.event_json import MAX_LINE_BYTES, EventReader
from qns.d2q.schema import Schema
from qns.errors import DocumentError, DuplicateId, QnsError, shorten

_EXCERPT_BYTES: Final = 1 << 16


class EventBatch(NamedTuple):
    """Events and their ids."""

    ids: list[Any]
    """Strings and integers, as the file has them."""
    events: list[Event]


def event_batches(
    source: Input,
    schema: Schema,
    report: Callable[[Problem], None],
    seen: Callable[[int], None] = lambda _: None,
    *,
    unique: bool = False,
) -> Iterator[EventBatch]:
    """Yields the valid events in order, some hundred at a time. Reports and skips invalid lines.

    With `unique`, a repeated id is an error.
    """
    reader = EventReader(schema)
    first_lines: dict[str, int] = {}
    for first, lines in source.batches(MAX_LINE_BYTES, seen):
        batch = EventBatch([], [])
        for number, line in enumerate(lines, start=first):
            if line is not None and not line.strip():
                continue
            try:
                fields = json_fields(line)
                event = reader.from_fields(fields)
                if unique and (first := first_lines.setdefault(event.id, number)) != number:
                    raise _given_twice(event.id, first)
                batch.events.append(event)
                batch.ids.append(fields["id"])
            except QnsError as problem:
                report(Problem.of(problem, source.name, line=number, text=excerpt(line)))
        if batch.events:
            yield batch


def excerpt(line: bytes | None) -> str:
    """Returns the beginning of a line for an error message; nothing of a line that is too long."""
    return "" if line is None else line[:_EXCERPT_BYTES].decode("utf-8", "replace")


def json_fields(line: bytes | None) -> Any:
    """Returns the JSON value of a line. Raises LimitExceeded for None: the line is too long."""
    if line is None:
        raise too_long(MAX_LINE_BYTES)
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        decoded(line)
        reason = problem.msg[:1].lower() + problem.msg[1:]
        raise DocumentError(f"not JSON: {reason}").at_mark(1, problem.colno) from None


def _given_twice(id: str, first: int) -> DuplicateId:
    return DuplicateId(
        f"the event id {shorten(id)} is given twice, first on line {first}",
        remedy="choose another id",
    )
