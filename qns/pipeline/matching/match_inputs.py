"""Match inputs: the subscriptions to match, and stored events divided into units of work.

A unit is a row group of a Parquet file of events. The units depend on the files alone and not on
the number of workers, so the results are the same files everywhere. Files with large row groups,
and lines of text, are copied into small row groups first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader
from qns.d2q.schema import Schema
from qns.errors import DuplicateId, QnsError
from qns.iil.interpreter import interpret
from qns.pipeline.replay.workload_files import (
    checked_event,
    missing_column,
    opened,
    parts_of,
    rows_of,
    text_in,
    unreadable,
    unwritable,
)

UNIT: Final = 8_192
"""The number of events in a unit of copied events."""
LARGEST: Final = 65_536
"""Files with larger row groups are copied."""
_STAGED: Final = pa.schema([pa.field("number", pa.int64()), pa.field("event", pa.string())])


class Unit(NamedTuple):
    number: int
    path: str
    row_group: int
    events: int
    first: int
    """The number of its first row in the file that the user named. Copied rows have their own."""
    place: str
    """The file that the user named, for errors."""


class Wanted(NamedTuple):
    organisation: str
    """Empty if the file has no such column."""
    id: str
    subscription: Subscription


class Line(NamedTuple):
    """An event of a text file, as JSON."""

    number: int
    text: str


def read_wanted(path: Path, schema: Schema) -> list[Wanted]:
    """Reads every subscription of a SUBS file, whenever it begins or ends."""
    known: dict[str, Subscription] = {}
    places: dict[tuple[str, str], str] = {}

    def wanted(row: Mapping[str, Any], place: str) -> Wanted | None:
        if row.get("ends"):
            return None
        text = text_in(row, "subscription")
        organisation = text_in(row, "organisation") if "organisation" in row else ""
        key = organisation, text_in(row, "id")
        if places.setdefault(key, place) != place:
            raise DuplicateId(
                f"the id {key[1]} is given twice, first in {places[key]}",
                remedy="choose another id",
            )
        if text not in known:
            known[text] = interpret(text, schema)
        return Wanted(*key, known[text])

    found = rows_of(path, ("id", "subscription"), ("organisation", "ends"), wanted)
    return [each for each in found if each is not None]


# -- units ----------------------------------------------------------------------------------------


def units_of(path: Path, folder: Path) -> list[Unit]:
    """The units of a Parquet file, or of a folder of them; copies are written into `folder`."""
    units: list[Unit] = []
    for nth, part in enumerate(parts_of(path)):
        file = opened(part)
        if "event" not in file.schema_arrow.names:
            raise missing_column(part, "event", file.schema_arrow.names)
        groups = [file.metadata.row_group(each).num_rows for each in range(file.num_row_groups)]
        if max(groups, default=0) <= LARGEST:
            units += _units(part, groups, str(part), len(units))
        else:
            copy = folder / f"events-{nth}.parquet"
            units += _staged(copy, _copied(part, file), str(part), len(units))
    return units


def units_of_lines(lines: Iterable[Line], name: str, folder: Path) -> list[Unit]:
    """The units of a file of JSON lines, which are copied into `folder`."""
    rows = ({"number": number, "event": text} for number, text in lines)
    return _staged(folder / "events.parquet", rows, name, 0)


def events_of(unit: Unit, schema: Schema, batch: int) -> Iterator[list[Event]]:
    """Yields the events of a unit in batches; raises QnsError with file and row."""
    reader = EventReader(schema)
    file = opened(Path(unit.path))
    wanted = ("number", "event", "id", "class", "source")
    columns = [name for name in wanted if name in file.schema_arrow.names]
    is_staged = file.schema_arrow.names == _STAGED.names
    number = unit.first
    try:
        for rows in file.iter_batches(batch, row_groups=[unit.row_group], columns=columns):
            events = []
            for row in rows.to_pylist():
                if is_staged:
                    number = row["number"]
                try:
                    events.append(_event(row, reader))
                except QnsError as problem:
                    raise problem.at(_place(unit, number)) from None
                number += 1
            yield events
    except (pa.ArrowException, OSError) as problem:
        raise unreadable(Path(unit.path), problem) from None


def _event(row: Mapping[str, Any], reader: EventReader) -> Event:
    text = row["event"]
    if isinstance(text, str) and text.startswith("{"):
        return reader.read(text)
    return checked_event(row, reader.schema)


def _place(unit: Unit, number: int) -> str:
    kind = "row" if unit.place.endswith(".parquet") else "line"
    return f"{unit.place}: {kind} {number + 1:,}"


def _units(path: Path, groups: list[int], place: str, first_number: int) -> list[Unit]:
    units, first = [], 0
    for group, events in enumerate(groups):
        units.append(Unit(first_number + group, str(path), group, events, first, place))
        first += events
    return units


def _copied(part: Path, file: pq.ParquetFile) -> Iterator[dict[str, object]]:
    """Yields only the events, with the numbers of their rows."""
    number = 0
    try:
        for batch in file.iter_batches(UNIT, columns=["event"]):
            for event in batch.column(0).to_pylist():
                text = event.decode("utf-8", "replace") if isinstance(event, bytes) else event
                yield {"number": number, "event": None if text is None else str(text)}
                number += 1
    except (pa.ArrowException, OSError) as problem:
        raise unreadable(part, problem) from None


def _staged(
    copy: Path, rows: Iterator[dict[str, object]], place: str, first_number: int
) -> list[Unit]:
    groups = []
    try:
        with pq.ParquetWriter(copy, _STAGED, compression="zstd") as writer:
            while some := list(islice(rows, UNIT)):
                writer.write_table(pa.Table.from_pylist(some, _STAGED))
                groups.append(len(some))
    except (pa.ArrowException, OSError) as problem:
        raise unwritable(copy, problem) from None
    return _units(copy, groups, place, first_number)
