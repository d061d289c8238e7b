"""Events in XML: one vocabulary for every schema (`schemas/event.xsd`).

The data graph comes first; its nodes have IDs. One graph for each quality dimension, and one for
each dimension of previous values, points at them by IDREF. A property that has quality without a
value is a node marked `absent`, which differs from the empty string (semantics §2).
"""

from __future__ import annotations

import re
from math import inf
from typing import Final

from qns.cbr.domains import DATETIME, Key
from qns.cbr.event import Event
from qns.d2q.event_text import read_text, write_text
from qns.d2q.lexical import DECIMAL_FORM, WHITE_SPACE, checked_name, checked_organisation, value_key
from qns.d2q.schema import Attribute, Schema
from qns.d2q.xml import Element, is_true, line_of, qualified, quality_key, read_root
from qns.errors import DocumentError, DuplicateId, QnsError, ValueRefused, shorten

_SECONDS = re.compile(DECIMAL_FORM + r"\Z")
_MAX_DIGITS = 400
_QUALITY, _PREVIOUS = qualified("quality"), qualified("previous")


MAX_EVENT_BYTES: Final = 524_288
"""Limits an event, so that it fits into a message in base64."""


def write_event(event: Event, schema: Schema) -> bytes:
    """Returns the event as XML. Equal events give equal bytes."""
    return write_text(event, schema)


def read_event(data: bytes | str, schema: Schema, *, max_bytes: int = MAX_EVENT_BYTES) -> Event:
    """Reads an event and checks it against the schema. Raises QnsError with the line."""
    if isinstance(data, bytes) and len(data) <= max_bytes:
        event = read_text(data, schema)
        if event is not None:
            return event
    return read_tree(data, schema, max_bytes=max_bytes)


def read_tree(data: bytes | str, schema: Schema, *, max_bytes: int = MAX_EVENT_BYTES) -> Event:
    """Variant of `read_event` that always uses the XML parser."""
    root = read_root(data, "event", "event", max_bytes=max_bytes)
    node = root
    values: dict[str, Key] = {}
    previous: dict[str, int] = {}
    try:
        path = schema.data_class(root.get("class", ""))
        published = root.get("published")
        head = {
            "id": checked_name("an event's id", root.get("id", "")),
            "source": checked_organisation(root.get("source", "")),
        }
        published_us = None if published is None else _read_time(published)
        available_s = _read_seconds(root.get("available", "0").strip(WHITE_SPACE))
        properties = _Properties(schema, path)
        for node in root[0]:
            properties.add(node, values)
        for graph in root.iterchildren(_QUALITY, _PREVIOUS):
            known: dict[str, Key] | dict[str, int]
            known = values if graph.tag == _QUALITY else previous
            dimension = graph.get("dimension", "")
            for node in graph:
                attribute = properties.quality(node, dimension)
                if attribute in known:
                    raise DocumentError(f"{attribute} is given twice", remedy="keep one value")
                known[attribute] = quality_key(node.text or "", schema)
    except QnsError as problem:
        raise problem.at_mark(line_of(node), None) from None
    return Event(
        **head,
        data_class=path,
        values=values,
        previous=previous,
        published_us=published_us,
        available_s=available_s,
    )


class _Properties:
    """The nodes of the data graph, by id, for the quality graphs."""

    def __init__(self, schema: Schema, path: str) -> None:
        self.schema = schema
        self.path = path
        self.by_id: dict[str, Attribute] = {}
        self.seen: set[str] = set()

    def add(self, node: Element, values: dict[str, Key]) -> None:
        attribute = self.schema.attribute(self.path, node.get("name", ""))
        if attribute.dimension is not None:
            raise DocumentError(
                f"{attribute.name} is a quality dimension among the data",
                remedy="give it in a <quality> graph",
            )
        if attribute.name in self.seen:
            raise DocumentError(f"{attribute.name} is given twice", remedy="keep one of them")
        self.seen.add(attribute.name)
        if (identifier := node.get("id")) is not None:
            self._name(identifier.strip(WHITE_SPACE), attribute)
        text = node.text or ""
        if not is_true(node, "absent"):
            values[attribute.name] = value_key(attribute.domain, text)
        elif text:
            raise DocumentError(
                f"{attribute.name} is absent and has a value", remedy="remove one of the two"
            )

    def _name(self, identifier: str, attribute: Attribute) -> None:
        if identifier in self.by_id:
            raise DuplicateId(f"the id {shorten(identifier)} is given twice")
        self.by_id[identifier] = attribute

    def quality(self, node: Element, dimension: str) -> str:
        """Returns the qualified name of the dimension that a quality node is about."""
        identifier = node.get("of", "").strip(WHITE_SPACE)
        attribute = self.by_id.get(identifier)
        if attribute is None:
            raise DocumentError(
                f"no property has the id {shorten(identifier)}",
                remedy="give the property in <data>, with absent='true' if it has no value",
            )
        name = f"{attribute.name}.{dimension}"
        return self.schema.quality_attribute(self.path, name).name


def _read_time(text: str) -> int:
    key = value_key(DATETIME, text)
    assert isinstance(key, int)
    return key


def _read_seconds(text: str) -> float:
    if text == "INF":
        return inf
    if len(text) <= _MAX_DIGITS and _SECONDS.match(text) and 0 <= float(text) < inf:
        return float(text)
    raise ValueRefused(
        f"available for {shorten(text)} seconds", remedy="give a number from 0, or INF for ever"
    )
