"""Delivered: an event as a subscription got it; as fields, as an object, as the exact bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qns.cbr.event import Event
from qns.d2q.event_json import write_event_json
from qns.d2q.event_xml import read_event
from qns.d2q.lexical import WHITE_SPACE
from qns.d2q.schema import Schema
from qns.d2q.xml import Element, is_true, qualified, read_root
from qns.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Delivered:
    number: int
    """The cursor: commit it with your own work, and start there the next time."""
    source: str
    id: str
    """Of the event; unique at its source."""
    xml: bytes
    """Exactly as the producer wrote it."""
    schema: Schema | None = None

    @property
    def event(self) -> Event:
        """The event, checked against the schema that the client was given."""
        if self.schema is None:
            raise SchemaError(
                f"event {self.id} cannot be read without its schema",
                remedy="give the client a schema, or use fields or xml",
            )
        return read_event(self.xml, self.schema)

    @property
    def fields(self) -> dict[str, Any]:
        """The event as the JSON object that `publish` takes: id, class, source, data, quality, …

        Values have the types of the schema. Without one, data values are texts.
        """
        if self.schema is None:
            return fields_of(self.xml)
        return write_event_json(self.event, self.schema)


def fields_of(xml: bytes) -> dict[str, Any]:
    """The fields of an event whose schema is not known: data values as the texts they are."""
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
    """A number, or in an event that somebody wrote by hand a label."""
    text = (node.text or "").strip(WHITE_SPACE)
    try:
        return float(text)
    except ValueError:
        return text
