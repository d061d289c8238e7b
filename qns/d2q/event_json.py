"""Events as JSON lines: {"id", "class", "source", "data": {…}, "quality": {…}, "previous": {…}}.

Names can have any spelling that semantics §2 allows. Each spelling is looked up in the schema once
and cached. "published" (a dateTime) and "available" (seconds, or "INF") are optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf, nan
from types import MappingProxyType
from typing import Any

import orjson

from qns.cbr.domains import DATE, DATETIME, QUALITY, QUALITY_ONE, Domain, Key
from qns.cbr.event import Event
from qns.d2q.lexical import checked_name, checked_organisation, read_value, write_value
from qns.d2q.schema import Schema
from qns.errors import DocumentError, NameNotKnown, QnsError, ValueRefused, shorten, show

MAX_LINE_BYTES = 1 << 20
_FIELDS = frozenset(
    ("id", "class", "source", "data", "quality", "previous", "published", "available")
)
_MAX_SPELLINGS = 10_000
_MAX_ID_BITS = 128
_NOTHING: Mapping[str, Any] = MappingProxyType({})

Converter = Callable[[object], Key]


class EventReader:
    """Reads events of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._tables: dict[str, _ClassTables] = {}
        self._sources: set[str] = set()

    def read(self, line: bytes | str) -> Event:
        """Returns the event on one line. Raises QnsError if it is not a valid event."""
        if len(line) > MAX_LINE_BYTES:
            raise DocumentError(f"an event of {len(line):,} bytes", remedy="at most 1 MiB")
        try:
            fields = orjson.loads(line)
        except ValueError as problem:
            raise DocumentError(
                f"not JSON: {problem}", remedy="write one event on one line"
            ) from None
        return self.from_fields(fields)

    def from_fields(self, fields: object) -> Event:
        """Returns the event that a parsed JSON object describes."""
        if type(fields) is not dict:
            raise DocumentError("an event is a JSON object", remedy='such as {"id": …, "class": …}')
        id = fields.get("id")
        try:
            if not fields.keys() <= _FIELDS:
                raise NameNotKnown("field", min(fields.keys() - _FIELDS), _FIELDS)
            name, source = fields.get("class"), fields.get("source")
            tables = self._tables.get(name) if type(name) is str else None
            if tables is None:
                tables = self._new_tables(name)
            if type(source) is not str or source not in self._sources:
                source = self._new_source(source)
            if type(id) is not str or not (0 < len(id) < 200 and id.isprintable()):
                id = _checked_id(id)
            values = tables.data.keys_of(fields.get("data", _NOTHING))
            values.update(tables.quality.keys_of(fields.get("quality", _NOTHING)))
            previous: Any = _NOTHING
            if "previous" in fields:
                previous = tables.previous.keys_of(fields["previous"])
            return Event(
                id,
                tables.path,
                source,
                values,
                previous,
                _published(fields["published"]) if "published" in fields else None,
                _available(fields["available"]) if "available" in fields else 0,
            )
        except QnsError as problem:
            raise problem.at(_place(id)) from None

    def _new_tables(self, name: object) -> _ClassTables:
        if type(name) is not str:
            raise DocumentError(f"'class' {_shown(name)}", remedy="name a class of the schema")
        tables = _ClassTables(self.schema, self.schema.data_class(name))
        if len(self._tables) < _MAX_SPELLINGS:
            self._tables[name] = tables
        return tables

    def _new_source(self, source: object) -> str:
        if type(source) is not str:
            raise DocumentError(f"'source' {_shown(source)}", remedy="name an organisation")
        checked_organisation(source)
        if len(self._sources) < _MAX_SPELLINGS:
            self._sources.add(source)
        return source


class _ClassTables:
    """The tables by which the names in an event of one class are read."""

    def __init__(self, schema: Schema, path: str) -> None:
        self.path = path
        self.data = _FieldTable(schema, path, "data")
        self.quality = _FieldTable(schema, path, "quality")
        self.previous = _FieldTable(schema, path, "previous")


class _FieldTable:
    """Maps spellings to qualified names and converters, for one field of one class."""

    def __init__(self, schema: Schema, path: str, field: str) -> None:
        self._schema = schema
        self._path = path
        self._field = field
        self._known: dict[str, tuple[str, Converter]] = {}

    def keys_of(self, given: Any) -> dict[str, Any]:
        """Returns the qualified names and keys of the given names and values."""
        if type(given) is not dict and given is not _NOTHING:
            raise DocumentError(
                f"'{self._field}' is not a JSON object", remedy='such as {"Name": …}'
            )
        known = self._known
        result: dict[str, Key] = {}
        name = ""
        try:
            for name, value in given.items():
                entry = known.get(name)
                if entry is None:
                    entry = self._look_up(name)
                result[entry[0]] = entry[1](value)
        except QnsError as problem:
            raise problem.at(f"{self._field} {shorten(name)}") from None
        if len(result) != len(given):
            raise DocumentError(f"'{self._field}' gives one attribute twice, in two spellings")
        return result

    def _look_up(self, name: str) -> tuple[str, Converter]:
        if self._field == "data":
            attribute = self._schema.attribute(self._path, name)
            if attribute.dimension is not None:
                raise ValueRefused(
                    f"{attribute.name} is a quality dimension", remedy="put it under 'quality'"
                )
            entry = attribute.name, _converter(attribute.domain)
        else:
            attribute = self._schema.quality_attribute(self._path, name)
            entry = attribute.name, _quality_converter(self._schema)
        if len(self._known) < _MAX_SPELLINGS:
            self._known[name] = entry
        return entry


def write_event_json(event: Event, schema: Schema) -> dict[str, Any]:
    """Returns the JSON object of an event, with qualified names."""
    data: dict[str, Any] = {}
    quality: dict[str, Any] = {}
    for name, key in event.values.items():
        attribute = schema.attribute(event.data_class, name)
        if attribute.dimension:
            quality[name] = QUALITY.value(key)
        elif attribute.domain in (DATE, DATETIME):
            data[name] = write_value(attribute.domain, key)
        else:
            data[name] = attribute.domain.value(key)
    fields: dict[str, Any] = {"id": event.id, "class": event.data_class, "source": event.source}
    fields |= {"data": data, "quality": quality}
    if event.previous:
        fields["previous"] = {name: QUALITY.value(key) for name, key in event.previous.items()}
    if event.published_us is not None:
        fields["published"] = write_value(DATETIME, event.published_us)
    if event.available_s:
        fields["available"] = "INF" if event.available_s == inf else event.available_s
    return fields


def _converter(domain: Domain) -> Converter:
    if domain is DATE or domain is DATETIME:

        def from_text(value: object) -> Key:
            if type(value) is not str:
                return domain.key(value)
            return read_value(domain, value)

        return from_text
    return domain.key


def _quality_converter(schema: Schema) -> Converter:
    def from_number_or_label(value: object) -> Key:
        if type(value) is float and 0.0 <= value <= 1.0:
            return int(value * QUALITY_ONE + 0.5)
        return QUALITY.key(schema.label(value) if type(value) is str else value)

    return from_number_or_label


def _place(id: object) -> str:
    """Returns which event an error is about, with the id if it is readable."""
    if type(id) is str:
        return f"event {shorten(id)[1:-1]}"
    return f"event {show(id)}" if type(id) is int else "event"


def _checked_id(id: object) -> str:
    if type(id) is str:
        return checked_name("an event's id", id)
    if type(id) is int and id.bit_length() <= _MAX_ID_BITS:
        return str(id)
    raise DocumentError(f"'id' {_shown(id)}", remedy="give a string or a whole number")


def _published(published: object) -> int:
    if type(published) is not str:
        raise DocumentError("'published' is not a dateTime", remedy="as in 2024-01-31T12:00:00Z")
    key = read_value(DATETIME, published)
    assert isinstance(key, int)
    return key


def _available(available: object) -> float:
    if available == "INF":
        return inf
    seconds = nan
    if isinstance(available, int | float) and not isinstance(available, bool):
        with suppress(OverflowError):
            seconds = float(available)
    if not 0 <= seconds < inf:
        raise DocumentError(f"'available' is {show(available)}", remedy="seconds from 0 on, or INF")
    return seconds


def _shown(value: object) -> str:
    return "is missing" if value is None else f"is {show(value)}"
