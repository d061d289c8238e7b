"""Events as JSON lines: {"id", "class", "source", "data": {…}, "quality": {…}, "previous": {…}}.

Names may be written in any way that semantics §2 allows; every spelling is looked up in the schema
once and remembered. Optional besides: "published" (a dateTime) and "available" (seconds, or "INF").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import Any

import orjson

from qns.cbr.domains import DATE, DATETIME, QUALITY, Domain, Key
from qns.cbr.event import Event
from qns.d2q.lexical import read_value, write_value
from qns.d2q.schema import Schema
from qns.errors import DocumentError, NameNotKnown, QnsError, ValueRefused, shorten

MAX_LINE_BYTES = 1 << 20
_FIELDS = ("id", "class", "source", "data", "quality", "previous", "published", "available")
_NO_FIELDS: Mapping[str, Any] = {}

Converter = Callable[[object], Key]


class EventReader:
    """Reads events of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._classes: dict[str, str] = {}
        self._data: dict[str, dict[str, tuple[str, Converter]]] = {}
        self._quality: dict[str, dict[str, tuple[str, Converter]]] = {}

    def read(self, line: bytes | str) -> Event:
        """The event on one line; QnsError if there is none."""
        if len(line) > MAX_LINE_BYTES:
            raise DocumentError(f"an event of {len(line):,} bytes", remedy="at most 1 MiB")
        try:
            fields = orjson.loads(line)
        except ValueError as problem:
            raise DocumentError(f"not JSON: {problem}") from None
        return self.from_fields(fields)

    def from_fields(self, fields: object) -> Event:
        """The event that a parsed JSON object describes."""
        if type(fields) is not dict:
            raise DocumentError("an event is a JSON object", remedy='such as {"id": …, "class": …}')
        id = fields.get("id")
        try:
            if type(id) is not str:
                id = _id(id)
            name, source = fields.get("class"), fields.get("source")
            path = self._classes.get(name) if type(name) is str else None
            if path is None:
                path = self._data_class(name)
            if type(source) is not str or not source:
                raise DocumentError(f"'source' is {source!r:.60}", remedy="name an organisation")
            values = _converted(fields.get("data", _NO_FIELDS), "data", path, self._data, self)
            quality = _converted(
                fields.get("quality", _NO_FIELDS), "quality", path, self._quality, self
            )
            values.update(quality)
            previous: Any = _NO_FIELDS
            if "previous" in fields:
                previous = _converted(fields["previous"], "previous", path, self._quality, self)
            if len(fields) > 4 and (strange := fields.keys() - set(_FIELDS)):
                raise NameNotKnown("field", sorted(strange)[0], _FIELDS)
            published = fields.get("published")
            available = fields.get("available", 0)
            return Event(
                id,
                path,
                source,
                values,
                previous,
                None if published is None else _published(published),
                0 if available == 0 and type(available) is int else _available(available),
            )
        except QnsError as problem:
            raise problem.at(f"event {id!s:.60}" if id is not None else "event") from None

    def _data_class(self, name: object) -> str:
        if type(name) is not str:
            raise DocumentError(f"'class' is {name!r:.60}", remedy="name a class of the schema")
        path = self.schema.data_class(name)
        if len(self._classes) < 10_000:
            self._classes[name] = path
        self._data.setdefault(path, {})
        self._quality.setdefault(path, {})
        return path

    def look_up(self, field: str, path: str, name: str) -> tuple[str, Converter]:
        if field == "data":
            attribute = self.schema.attribute(path, name)
            if attribute.dimension is not None:
                raise ValueRefused(
                    f"{attribute.name} is a quality dimension", remedy="put it under 'quality'"
                )
            return attribute.name, _converter(attribute.domain)
        attribute = self.schema.quality_attribute(path, name)
        return attribute.name, self._quality_key

    def _quality_key(self, value: object) -> Key:
        if type(value) is str:
            return QUALITY.key(self.schema.label(value))
        return QUALITY.key(value)


def write_event_json(event: Event, schema: Schema) -> dict[str, Any]:
    """The JSON object of an event, with qualified names."""
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


def _converted(
    given: object,
    field: str,
    path: str,
    tables: dict[str, dict[str, tuple[str, Converter]]],
    reader: EventReader,
) -> dict[str, Any]:
    """Qualified names and keys for the names and values of one field."""
    if type(given) is not dict and given is not _NO_FIELDS:
        raise DocumentError(f"'{field}' is not a JSON object", remedy='such as {"Name": …}')
    assert isinstance(given, Mapping)
    known = tables[path]
    result: dict[str, Key] = {}
    name = ""
    try:
        for name, value in given.items():
            entry = known.get(name)
            if entry is None:
                entry = reader.look_up(field, path, name)
                if len(known) < 100_000:
                    known[name] = entry
            result[entry[0]] = entry[1](value)
    except QnsError as problem:
        raise problem.at(f"{field} {shorten(name)}") from None
    if len(result) != len(given):
        raise DocumentError(f"'{field}' gives one attribute twice, in two spellings")
    return result


def _converter(domain: Domain) -> Converter:
    if domain is DATE or domain is DATETIME:

        def from_text(value: object) -> Key:
            if type(value) is not str:
                return domain.key(value)
            return read_value(domain, value)

        return from_text
    return domain.key


def _id(id: object) -> str:
    if type(id) is int:
        return str(id)
    raise DocumentError(f"'id' is {id!r:.60}", remedy="give a string or a whole number")


def _published(published: object) -> int:
    if type(published) is not str:
        raise DocumentError("'published' is not a dateTime", remedy="as in 2024-01-31T12:00:00Z")
    key = read_value(DATETIME, published)
    assert isinstance(key, int)
    return key


def _available(available: object) -> float:
    if available == "INF":
        return inf
    if type(available) not in (int, float) or not isfinite(available) or available < 0:  # type: ignore[arg-type,operator]
        raise DocumentError(f"'available' is {available!r:.60}", remedy="seconds from 0 on, or INF")
    return float(available)  # type: ignore[arg-type]
