"""Workload files: subscriptions and events as Parquet, written and read back.

SUBS has a row for each subscription and for each unsubscription (`ends`), EVENTS one for each
publication, as D2Q XML. `at` is a timestamp, or a whole number that gives the order. A file may
also be a folder of Parquet files. Errors name the file and the row, counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.errors import DocumentError, NameNotKnown, QnsError, ValueRefused, shorten, show
from qns.iil.interpreter import interpret

SUBSCRIPTIONS: Final = pa.schema(
    [
        pa.field("organisation", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("subscription", pa.string()),
        pa.field("ends", pa.bool_(), nullable=False),
    ]
)
"""`at` may also be a timestamp; `subscription` is in any spelling; `ends` may be left out."""
EVENTS: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("class", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
    ]
)
"""Only `event` and `at` are required. Other columns repeat parts of the event and must agree."""

_ROWS: Final = 8_192


class Change(NamedTuple):
    """A subscription or unsubscription of one organisation."""

    at: int
    organisation: str
    id: str
    subscription: Subscription | None
    """None for an unsubscription."""
    place: str = ""
    """The file and row, for errors."""


class Publication(NamedTuple):
    at: int
    event: Event
    place: str = ""


class Read(NamedTuple):
    """The rows of a file, and whether their times are timestamps (in microseconds)."""

    rows: list[Any]
    has_clock: bool


# -- reading --------------------------------------------------------------------------------------


def is_parquet(path: Path) -> bool:
    """True for a Parquet file or a folder. Reading it reports errors, this function does not."""
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return path.suffix == ".parquet"


def columns_of(path: Path) -> pa.Schema:
    """The columns of the file, or of the first file in the folder."""
    return opened(parts_of(path)[0]).schema_arrow


def parts_of(path: Path) -> list[Path]:
    """The file itself, or the Parquet files of the folder in the order of their names."""
    if not path.is_dir():
        return [path]
    parts = sorted(path.rglob("*.parquet"))
    if not parts:
        raise DocumentError("a folder without .parquet files", place=str(path))
    return parts


def read_changes(path: Path, schema: Schema) -> Read:
    """Reads the rows of SUBS in their order, each as a Change."""
    known: dict[str, Subscription] = {}

    def change(row: Mapping[str, Any], place: str) -> Change:
        organisation, id = text_in(row, "organisation"), text_in(row, "id")
        subscription = None
        if not row.get("ends"):
            text = text_in(row, "subscription")
            if text not in known:
                known[text] = interpret(text, schema)
            subscription = known[text]
        return Change(_time(row["at"]), organisation, id, subscription, place)

    wanted = ("organisation", "id", "at", "subscription")
    has_clock = _has_clock(path, wanted)
    return Read(list(rows_of(path, wanted, ("ends",), change)), has_clock)


def read_publications(path: Path, schema: Schema) -> Read:
    """Reads the rows of EVENTS in their order, each as a Publication."""

    def publication(row: Mapping[str, Any], place: str) -> Publication:
        return Publication(_time(row["at"]), checked_event(row, schema), place)

    wanted = ("event", "at")
    has_clock = _has_clock(path, wanted)
    return Read(list(rows_of(path, wanted, ("id", "class", "source"), publication)), has_clock)


def checked_event(row: Mapping[str, Any], schema: Schema) -> Event:
    """Reads the event of a row; raises DocumentError if other columns contradict it."""
    text = row["event"]
    if not isinstance(text, str | bytes) or not text:
        raise DocumentError(f"'event' is {show(text)}", remedy="give an event as D2Q XML")
    event = read_event(text.encode() if isinstance(text, str) else text, schema)
    for name, value in (("id", event.id), ("source", event.source), ("class", event.data_class)):
        given = row.get(name)
        if given is not None and given != value:
            raise DocumentError(
                f"'{name}' is {show(given)}, and the event itself says {shorten(value)}",
                remedy="give both the same value, or leave the column out",
            )
    return event


def row_place(file: str | Path, number: int) -> str:
    """The place of a row in an error text; `number` counts from 0."""
    return f"{file}: row {number + 1:,}"


def missing_column(path: Path, name: str, columns: Iterable[str]) -> NameNotKnown:
    return NameNotKnown(
        "column", name, columns, place=str(path), problem=f"there is no column '{name}'"
    )


def rows_of(
    path: Path,
    required: tuple[str, ...],
    optional: tuple[str, ...],
    read: Callable[[Mapping[str, Any], str], Any],
) -> Iterator[Any]:
    """Calls `read` with each row and its place; errors name the place."""
    for part in parts_of(path):
        file = opened(part)
        there = file.schema_arrow.names
        for name in required:
            if name not in there:
                raise missing_column(part, name, there)
        columns = [name for name in (*required, *optional) if name in there]
        number = 0
        try:
            for batch in file.iter_batches(_ROWS, columns=columns):
                for row in _plain(batch):
                    place = row_place(part, number)
                    try:
                        yield read(row, place)
                    except QnsError as problem:
                        raise problem.at(place) from None
                    number += 1
        except (pa.ArrowException, OSError) as problem:
            raise unreadable(part, problem) from None


def _plain(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, with timestamps of any unit and zone as microseconds."""
    columns = [
        column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in batch.columns
    ]
    return iter(pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist())


def _has_clock(path: Path, wanted: tuple[str, ...]) -> bool:
    columns = columns_of(path)
    for name in wanted:
        if name not in columns.names:
            raise missing_column(parts_of(path)[0], name, columns.names)
    kind = columns.field("at").type
    if not (pa.types.is_timestamp(kind) or pa.types.is_integer(kind)):
        raise ValueRefused(
            f"the column 'at' has values of type {kind}",
            place=str(path),
            remedy="give timestamps, or ascending whole numbers",
        )
    return bool(pa.types.is_timestamp(kind))


def opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as problem:
        raise unreadable(path, problem) from None


def unreadable(path: Path, problem: Exception) -> DocumentError:
    reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    return DocumentError(
        f"cannot be read: {reason.splitlines()[0] if reason else type(problem).__name__}",
        place=str(path),
        remedy="give a Parquet file",
    )


def text_in(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if not isinstance(value, str) or not value:
        raise DocumentError(f"'{name}' is {show(value)}", remedy="give a text that is not empty")
    return value


def _time(value: object) -> int:
    if not isinstance(value, int):
        raise DocumentError(f"'at' is {show(value)}", remedy="give a timestamp or a whole number")
    return value


# -- writing --------------------------------------------------------------------------------------


def write_changes(path: Path, changes: Iterable[Change], schema: Schema) -> None:
    """Writes a SUBS file with `at` as a number."""

    def row(change: Change) -> dict[str, object]:
        wanted = change.subscription
        return {
            "organisation": change.organisation,
            "id": change.id,
            "at": change.at,
            "subscription": None if wanted is None else write_readable(wanted, schema),
            "ends": wanted is None,
        }

    _write(path, SUBSCRIPTIONS, map(row, changes))


def write_publications(path: Path, publications: Iterable[Publication], schema: Schema) -> None:
    """Writes an EVENTS file with `at` as a number."""

    def row(publication: Publication) -> dict[str, object]:
        event = publication.event
        return {
            "id": event.id,
            "class": event.data_class,
            "source": event.source,
            "at": publication.at,
            "event": write_event(event, schema).decode(),
        }

    _write(path, EVENTS, map(row, publications))


def _write(path: Path, columns: pa.Schema, rows: Iterator[dict[str, object]]) -> None:
    """Writes under a temporary name first, so that a file with the right name is complete."""
    partial = path.with_name(path.name + ".partial")
    try:
        with pq.ParquetWriter(partial, columns, compression="zstd") as writer:
            while some := list(islice(rows, _ROWS)):
                writer.write_table(pa.Table.from_pylist(some, columns))
        partial.replace(path)
    except (pa.ArrowException, OSError) as problem:
        partial.unlink(missing_ok=True)
        raise unwritable(path, problem) from None
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def unwritable(path: Path, problem: Exception) -> QnsError:
    reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    return QnsError(
        f"cannot be written: {reason}", place=str(path), remedy="free some space, or choose another"
    )
