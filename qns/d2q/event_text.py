"""The text of an event, written and read without a tree.

`write_text` makes the bytes that every peer sends. `read_text` knows just these bytes and gives up
on anything else, however right: `event_xml.read_event` then reads it with the XML parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from qns.cbr.domains import DATETIME, QUALITY, Domain, Key
from qns.cbr.event import Event
from qns.d2q.lexical import (
    checked_name,
    checked_organisation,
    key_text,
    read_value,
    value_key,
    write_number,
)
from qns.d2q.schema import DIMENSIONS, Schema
from qns.errors import QnsError, ValueRefused, shorten, show

_FIRST = "<?xml version='1.0' encoding='UTF-8'?>"
# Nothing that is escaped, and no control characters.
_PLAIN = r"[ -%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*"
_WORD = r"[ !#-%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+"
_ROOT = re.compile(
    rf'<event xmlns="urn:qns:d2q:1" id="({_WORD})" class="({_WORD})" source="({_WORD})"'
    r'(?: published="([1-9][0-9]{3}-[0-9T:.-]{14,21}Z)")?'
    r'(?: available="([0-9]{1,15}(?:\.[0-9]{1,15})?|INF)")?>'
)
_PROPERTY = re.compile(
    rf'    <property id="(p[0-9]+)" name="({_WORD})"(?:>({_PLAIN})</property>| absent="true"/>)'
)
_GRAPH = re.compile(r'  <(quality|previous) dimension="([a-z]+)">')
_VALUE = re.compile(r'    <value of="(p[0-9]+)">([01](?:\.[0-9]{1,20})?)</value>')
_ORDER = {
    (kind, dimension): nth
    for nth, (kind, dimension) in enumerate(
        (kind, dimension) for kind in ("quality", "previous") for dimension in DIMENSIONS
    )
}


@dataclass(frozen=True, slots=True)
class Form:
    """What an event of one class may carry, in the order in which it is written."""

    data: dict[str, Domain]
    quality: dict[str, dict[str, str]]
    """Dimension -> property -> the qualified name of that quality."""

    @property
    def names(self) -> set[str]:
        return {*self.data, *self.qualities}

    @property
    def qualities(self) -> set[str]:
        return {name for names in self.quality.values() for name in names.values()}

    @classmethod
    def of(cls, schema: Schema, path: str) -> Form:
        known = schema.forms.get(path)
        if not isinstance(known, Form):
            attributes = schema.attributes(path)
            known = schema.forms[path] = cls(
                {each.name: each.domain for each in attributes if each.dimension is None},
                {
                    dimension: {
                        each.prop.qualified: each.name
                        for each in attributes
                        if each.dimension == dimension
                    }
                    for dimension in DIMENSIONS
                },
            )
        return known


# --- writing --------------------------------------------------------------------------------------


def write_text(event: Event, schema: Schema) -> bytes:
    """The event as XML; equal events give equal bytes."""
    path = schema.data_class(event.data_class)
    form = Form.of(schema, path)
    lines = [_FIRST, _written_root(event, path)]
    ids = _write_data(lines, event, schema, path, form)
    for kind, values in (("quality", event.values), ("previous", event.previous)):
        for dimension in DIMENSIONS if values else ():
            _write_graph(lines, kind, dimension, form.quality[dimension], ids, values)
    lines.append("</event>\n")
    return "\n".join(lines).encode()


def _written_root(event: Event, path: str) -> str:
    id = _attribute(checked_name("an event's id", event.id))
    source = _attribute(checked_organisation(event.source))
    root = f'<event xmlns="urn:qns:d2q:1" id="{id}" class="{path}" source="{source}"'
    if event.published_us is not None:
        root += f' published="{key_text(DATETIME, event.published_us)}"'
    if event.available_s:
        root += f' available="{_written_seconds(event.available_s)}"'
    return root + ">"


def _write_data(
    lines: list[str], event: Event, schema: Schema, path: str, form: Form
) -> dict[str, str]:
    """The data graph; qualified property names with the ids of their nodes."""
    values, data = event.values, form.data
    told = [name for name in values if name not in data]
    if told or event.previous:
        qualities = form.qualities
        for name in (*told, *event.previous):
            if name not in qualities:
                raise _misnamed(name, schema, path)
    with_quality = {name.rpartition(".")[0] for name in (*told, *event.previous)}
    ids: dict[str, str] = {}
    nodes = []
    for name, domain in data.items():
        if name in values:
            ids[name] = id = f"p{len(ids) + 1}"
            text = _escaped(key_text(domain, values[name]))
            nodes.append(f'    <property id="{id}" name="{name}">{text}</property>')
        elif name in with_quality:
            ids[name] = id = f"p{len(ids) + 1}"
            nodes.append(f'    <property id="{id}" name="{name}" absent="true"/>')
    lines += ["  <data>", *nodes, "  </data>"] if nodes else ["  <data/>"]
    return ids


def _write_graph(
    lines: list[str],
    kind: str,
    dimension: str,
    names: dict[str, str],
    ids: dict[str, str],
    values: Mapping[str, Key],
) -> None:
    told = [
        f'    <value of="{id}">{key_text(QUALITY, values[names[property]])}</value>'
        for property, id in ids.items()
        if names.get(property) in values
    ]
    if told:
        lines += [f'  <{kind} dimension="{dimension}">', *told, f"  </{kind}>"]


def _misnamed(name: str, schema: Schema, path: str) -> QnsError:
    """What is wrong with a name that an event of this class cannot have where it stands."""
    try:
        found = schema.attribute(path, name)
        if found.name == name:
            schema.quality_attribute(path, name)
    except QnsError as problem:
        return problem
    return ValueRefused(f"{shorten(name)} is not qualified", remedy=f"write {found.name}")


def _escaped(text: str) -> str:
    if text.isalnum():
        return text
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")


def _attribute(text: str) -> str:
    if text.isalnum():
        return text
    text = _escaped(text).replace('"', "&quot;")
    return text.replace("\n", "&#10;").replace("\t", "&#9;")


def _written_seconds(seconds: float) -> str:
    if not seconds >= 0:  # nor NaN
        raise ValueRefused(f"available for {show(seconds)} seconds", remedy="give a number from 0")
    return "INF" if seconds == inf else write_number(abs(float(seconds)))


# --- reading --------------------------------------------------------------------------------------


def read_text(data: bytes, schema: Schema) -> Event | None:
    """The event, if these are the very bytes that `write_text` gives, or much like them."""
    try:
        lines = data.decode().split("\n")
        root = _ROOT.fullmatch(lines[1]) if lines[0] == _FIRST else None
        if root is None or lines[-2:] != ["</event>", ""]:
            return None
        id, path, source, published, available = root.groups()
        form = Form.of(schema, path) if path in schema.properties else None
        return (
            None
            if form is None
            else _Reading(lines, form).event(
                checked_name("an event's id", id),
                path,
                checked_organisation(source),
                None if published is None else _read_time(published),
                float(available or 0),
            )
        )
    except (QnsError, UnicodeDecodeError, IndexError):
        return None  # told better by who reads it with a parser


class _Reading:
    def __init__(self, lines: list[str], form: Form) -> None:
        self.lines = lines
        self.form = form
        self.ids: dict[str, str] = {}
        """Id of a node -> the property."""

    def event(
        self, id: str, path: str, source: str, published: int | None, available: float
    ) -> Event | None:
        values: dict[str, Key] = {}
        previous: dict[str, int] = {}
        at = self._read_data(values)
        last = -1
        while at is not None and at < len(self.lines) - 2:
            graph = _GRAPH.fullmatch(self.lines[at])
            nth = -1 if graph is None else _ORDER.get((graph[1], graph[2]), -1)
            if graph is None or nth <= last:
                return None
            last = nth
            known = values if graph[1] == "quality" else previous
            at = self._read_graph(at + 1, graph[2], f"  </{graph[1]}>", known)
        if at is None:
            return None
        return Event(id, path, source, values, previous, published, available)

    def _read_data(self, values: dict[str, Key]) -> int | None:
        """The line after the data graph."""
        lines, data, ids = self.lines, self.form.data, self.ids
        if lines[2] == "  <data/>":
            return 3
        if lines[2] != "  <data>":
            return None
        at = 3
        while lines[at] != "  </data>":
            node = _PROPERTY.fullmatch(lines[at])
            if node is None:
                return None
            id, name, text = node.groups()
            domain = data.get(name)
            if domain is None or name in values or id != f"p{len(ids) + 1}":
                return None
            ids[id] = name
            if text is not None:
                values[name] = value_key(domain, text)
            at += 1
        return at + 1 if len(set(ids.values())) == len(ids) > 0 else None

    def _read_graph(
        self, at: int, dimension: str, end: str, known: dict[str, Key] | dict[str, int]
    ) -> int | None:
        names = self.form.quality[dimension]
        while self.lines[at] != end:
            node = _VALUE.fullmatch(self.lines[at])
            name = None if node is None else names.get(self.ids.get(node[1], ""))
            if node is None or name is None or name in known:
                return None
            known[name] = _quality(node[2])
            at += 1
        return at + 1


@lru_cache(maxsize=4096)
def _quality(text: str) -> int:
    key = read_value(QUALITY, text)
    assert isinstance(key, int)
    return key


def _read_time(text: str) -> int:
    key = value_key(DATETIME, text)
    assert isinstance(key, int)
    return key
