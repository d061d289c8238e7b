"""Delivered: a delivered event, as typed values, as fields, as an `Event` or as exact bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qns.cbr.event import Event
from qns.d2q.event_json import write_event_json
from qns.d2q.event_xml import read_event
from qns.d2q.lexical import WHITE_SPACE
from qns.d2q.schema import Schema
from qns.d2q.typed_values import TypedValues, data_of, previous_of, quality_of
from qns.d2q.xml import Element, is_true, qualified, read_root
from qns.errors import SchemaError
from qns.iil.cursor import Cursor


@dataclass(frozen=True, slots=True)
class Delivered:
    """One delivery of a subscription."""

    number: int
    """The number of the delivery in its subscription: 1, 2, 3, …"""
    source: str
    """The producer of the event."""
    id: str
    """The id of the event, unique at its source."""
    xml: bytes
    """The event exactly as the producer wrote it."""
    schema: Schema | None = None
    """The schema of the client, if it has one."""
    series: str = ""
    """The number series; a part of the cursor. Empty if the peer is of QNS 0.2.0."""

    @property
    def cursor(self) -> str:
        """The place of this delivery. Commit it with your work; pass it as `after` at a restart."""
        return str(Cursor(self.number, self.series))

    @property
    def data_class(self) -> str:
        """The path of the object's class, as the producer wrote it."""
        return read_root(self.xml, "event", "event").get("class", "")

    @property
    def data(self) -> TypedValues:
        """The values of the object's properties. Raises SchemaError without a schema."""
        return data_of(self.event, self._schema)

    @property
    def quality(self) -> TypedValues:
        """The new quality values, from 0 to 1. Raises SchemaError without a schema."""
        return quality_of(self.event, self._schema)

    @property
    def previous(self) -> TypedValues:
        """The quality values before the change. Raises SchemaError without a schema."""
        return previous_of(self.event, self._schema)

    @property
    def event(self) -> Event:
        """The event, for `MatchingIndex` or `publish`. Raises SchemaError without a schema.

        Its `values` are keys of the matching index; read `data`, `quality` and `previous` instead.
        """
        return read_event(self.xml, self._schema)

    @property
    def fields(self) -> dict[str, Any]:
        """The event as the JSON object that `publish` takes: id, class, source, data, quality, …

        Values have the types of the schema. Without a schema, data values are strings.
        """
        if self.schema is None:
            return fields_of(self.xml)
        return write_event_json(self.event, self.schema)

    @property
    def _schema(self) -> Schema:
        if self.schema is None:
            raise SchemaError(
                f"event {self.id} cannot be read without its schema",
                remedy="give the client a schema, or use fields or xml",
            )
        return self.schema


def fields_of(xml: bytes) -> dict[str, Any]:
    """Returns the fields of an event without its schema: data values are strings."""
    root = read_root(xml, "event", "event")
    data: dict[str, str] = {}
    graphs: dict[str, dict[str, float | str]] = {"quality": {}, "previous": {}}
    names: dict[str, str] = {}
    for node in root[0]:
        name = node.get("name", "")
        names[node.get("id", "").strip(WHITE_SPACE)] = name
        if not is_true(node, "absent"):
            data[name] = node.text or ""
    for graph, values in graphs.items():
        for element in root.iterchildren(qualified(graph)):
            for node in element:
                of = names.get(node.get("of", "").strip(WHITE_SPACE), "")
                values[f"{of}.{element.get('dimension', '')}"] = _quality(node)
    fields: dict[str, Any] = {name: root.get(name, "") for name in ("id", "class", "source")}
    fields |= {"data": data, "quality": graphs["quality"]}
    if graphs["previous"]:
        fields["previous"] = graphs["previous"]
    if (published := root.get("published")) is not None:
        fields["published"] = published
    if (available := root.get("available")) is not None:
        text = available.strip(WHITE_SPACE)
        fields["available"] = text if text == "INF" else float(text)
    return fields


def _quality(node: Element) -> float | str:
    """Returns a number, or the label that an event written by hand may have."""
    text = (node.text or "").strip(WHITE_SPACE)
    try:
        return float(text)
    except ValueError:
        return text
