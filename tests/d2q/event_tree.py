"""Writes an event's XML with a tree. Tests compare the direct writer with it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from qns.cbr.domains import DATETIME, QUALITY, Key
from qns.cbr.event import Event
from qns.d2q.lexical import key_text, write_number
from qns.d2q.schema import DIMENSIONS, Schema
from qns.d2q.xml import Element, child, new_root, qualified, to_bytes


def write_tree(event: Event, schema: Schema) -> bytes:
    """Returns the event as XML. Equal events give equal bytes."""
    root = new_root("event")
    path = schema.data_class(event.data_class)
    root.set("id", event.id)
    root.set("class", path)
    root.set("source", event.source)
    if event.published_us is not None:
        root.set("published", key_text(DATETIME, event.published_us))
    if event.available_s:
        seconds = float(event.available_s)
        root.set("available", "INF" if seconds == inf else write_number(seconds))
    ids = _write_data(child(root, qualified("data")), event, schema, path)
    for name, values in (("quality", event.values), ("previous", event.previous)):
        for dimension in DIMENSIONS:
            _write_graph(root, name, dimension, ids, values)
    return to_bytes(root)


def _write_data(data: Element, event: Event, schema: Schema, path: str) -> dict[str, str]:
    """Writes the data graph. Returns the qualified property names with the ids of their nodes."""
    known = {attribute.name: attribute for attribute in schema.attributes(path)}
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


def _write_graph(
    root: Element, name: str, dimension: str, ids: dict[str, str], values: Mapping[str, Key]
) -> None:
    attributes = {node: f"{prop}.{dimension}" for prop, node in ids.items()}
    attributes = {node: attribute for node, attribute in attributes.items() if attribute in values}
    if attributes:
        graph = child(root, qualified(name), dimension=dimension)
        for node, attribute in attributes.items():
            child(graph, qualified("value"), key_text(QUALITY, values[attribute]), of=node)
