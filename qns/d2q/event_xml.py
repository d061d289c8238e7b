"""Events in XML: one vocabulary for every schema (`schemas/event.xsd`).

The data graph comes first, its nodes with an ID; one graph per quality dimension, and per
dimension of previous values, points at them by IDREF. A property whose quality is told without
its value is a node marked `absent`, which is not the empty string (semantics §2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf

from qns.cbr.domains import DATETIME, QUALITY, Key
from qns.cbr.event import Event
from qns.d2q.lexical import DECIMAL_FORM, checked_name, checked_organisation, write_number
from qns.d2q.schema import DIMENSIONS, Attribute, Schema
from qns.d2q.xml import (
    MAX_BYTES,
    WHITE_SPACE,
    Element,
    child,
    is_true,
    key_text,
    line_of,
    new_root,
    qualified,
    quality_key,
    read_root,
    to_bytes,
    value_key,
)
from qns.errors import DocumentError, DuplicateId, QnsError, ValueRefused, shorten, show

_SECONDS = re.compile(DECIMAL_FORM + r"\Z")
_MAX_DIGITS = 400
_QUALITY, _PREVIOUS = qualified("quality"), qualified("previous")


def write_event(event: Event, schema: Schema) -> bytes:
    """The event as XML; equal events give equal bytes."""
    root = new_root("event")
    path = schema.data_class(event.data_class)
    root.set("id", checked_name("an event's id", event.id))
    root.set("class", path)
    root.set("source", checked_organisation(event.source))
    if event.published_us is not None:
        root.set("published", key_text(DATETIME, event.published_us))
    if event.available_s:
        root.set("available", _write_seconds(event.available_s))
    ids = _write_data(child(root, qualified("data")), event, schema, path)
    for name, values in (("quality", event.values), ("previous", event.previous)):
        for dimension in DIMENSIONS:
            _write_graph(root, name, dimension, ids, values)
    return to_bytes(root)


def read_event(data: bytes | str, schema: Schema, *, max_bytes: int = MAX_BYTES) -> Event:
    """The event that the XML tells, checked against the schema; QnsError with the line."""
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
                    raise DocumentError(f"{attribute} is told twice", remedy="keep one value")
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
    """The nodes of the data graph, found again by the quality graphs."""

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
                remedy="tell it in a <quality> graph",
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
        """The qualified name of the dimension that a quality node is about."""
        identifier = node.get("of", "").strip(WHITE_SPACE)
        attribute = self.by_id.get(identifier)
        if attribute is None:
            raise DocumentError(
                f"no property has the id {shorten(identifier)}",
                remedy="give the property in <data>, with absent='true' if it has no value",
            )
        name = f"{attribute.name}.{dimension}"
        return self.schema.quality_attribute(self.path, name).name


def _write_data(data: Element, event: Event, schema: Schema, path: str) -> dict[str, str]:
    """Writes the data graph; qualified property names with the ids of their nodes."""
    known = {attribute.name: attribute for attribute in schema.attributes(path)}
    for name in (*event.values, *event.previous):
        if name not in known or (name in event.previous and known[name].dimension is None):
            raise _misnamed(name, schema, path)
    with_quality = {name.rpartition(".")[0] for name in event.previous}
    with_quality |= {name.rpartition(".")[0] for name in event.values if known[name].dimension}
    ids: dict[str, str] = {}
    for name, attribute in known.items():
        if attribute.dimension is None and (name in event.values or name in with_quality):
            ids[name] = f"p{len(ids) + 1}"
            node = child(data, qualified("property"), id=ids[name], name=name)
            if name in event.values:
                node.text = key_text(attribute.domain, event.values[name])
            else:
                node.set("absent", "true")
    return ids


def _misnamed(name: str, schema: Schema, path: str) -> QnsError:
    """What is wrong with a name that an event of this class cannot have where it stands."""
    try:
        found = schema.attribute(path, name)
        if found.name == name:
            schema.quality_attribute(path, name)
    except QnsError as problem:
        return problem
    return ValueRefused(f"{shorten(name)} is not qualified", remedy=f"write {found.name}")


def _write_graph(
    root: Element, name: str, dimension: str, ids: dict[str, str], values: Mapping[str, Key]
) -> None:
    told = {node: f"{prop}.{dimension}" for prop, node in ids.items()}
    told = {node: attribute for node, attribute in told.items() if attribute in values}
    if told:
        graph = child(root, qualified(name), dimension=dimension)
        for node, attribute in told.items():
            child(graph, qualified("value"), key_text(QUALITY, values[attribute]), of=node)


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


def _write_seconds(seconds: float) -> str:
    if not seconds >= 0:  # nor NaN
        raise ValueRefused(f"available for {show(seconds)} seconds", remedy="give a number from 0")
    return "INF" if seconds == inf else write_number(abs(float(seconds)))
