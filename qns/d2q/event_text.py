"""The text of an event, written and read without a tree.

`write_text` makes the bytes that every peer sends. `read_text` accepts only these bytes. It returns
None for any other text, even a valid one; `event_xml.read_event` then reads it with the XML parser.

Most events of a class differ only in their values. The text around the values, the frame, is
therefore analysed once, and the resulting plan is cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from math import inf
from typing import Any, Final

from qns.cbr.domains import DATETIME, DECIMAL, QUALITY, STRING, Domain, Key, decimal_key
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
# Characters that need no escape and are not control characters.
_PLAIN = r"[ -%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*"
_WORD = r"[ !#-%'-;=?-~\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+"
_TIME = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z"
_ROOT = re.compile(
    rf"{re.escape(_FIRST)}\n"
    rf'<event xmlns="urn:qns:d2q:1" id="({_WORD})" class="({_WORD})" source="({_WORD})"'
    rf'(?: published="({_TIME})")?(?: available="([0-9]{{1,15}}(?:\.[0-9]{{1,15}})?|INF)")?>\n'
)
_VALUE_TEXT = re.compile(rf">({_PLAIN}+)(?=</(?:property|value)>)")
# In a frame, 0 stands for every value.
_PROPERTY = re.compile(
    rf'    <property id="(p[0-9]+)" name="({_WORD})"(?:>(0)</property>| absent="true"/>)'
)
_GRAPH = re.compile(r'  <(quality|previous) dimension="([a-z]+)">')
_VALUE = re.compile(r'    <value of="(p[0-9]+)">0</value>')
_PLAIN_QUALITY = re.compile(r"[01](?:\.[0-9]{1,20})?")
_SHORT = re.compile(r"(?=.{1,15}\Z)-?[0-9]+(?:\.[0-9]+)?")
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
MOST_PLANS: Final = 256
"""The most cached plans of one class. When there are more, the cache is cleared."""
_LONGEST_FRAME = 16_384
OFTEN: Final = 16
_LONGEST_PATTERN = 4_096
"""Limits for compiling a pattern, which takes a thousand times as long as using it."""
_ORDER = {
    (kind, dimension): nth
    for nth, (kind, dimension) in enumerate(
        (kind, dimension) for kind in ("quality", "previous") for dimension in DIMENSIONS
    )
}


Read = Callable[[str], Key]


@dataclass(slots=True, eq=False)
class Plan:
    """The attributes of the values in one frame, in their order, and how to read them."""

    values: tuple[str, ...]
    previous: tuple[str, ...]
    readers: tuple[Read, ...]
    met: int = 0
    """How often the frame occurred. If it is frequent, one pattern finds all values at once."""
    find: Callable[[str, int], re.Match[str] | None] | None = None


@dataclass(slots=True, eq=False)
class Form:
    """The attributes that an event of one class can have, in the order of writing."""

    data: dict[str, Domain]
    quality: dict[str, dict[str, str]]
    """Maps a dimension and a property to the qualified name of that quality."""
    plans: dict[tuple[str, ...], Plan] = field(default_factory=dict)
    """Maps the frames that occurred to their plans."""
    latest: Plan | None = None
    """The last used plan with a pattern. It usually fits the next event as well."""

    def read(self, text: str, at: int) -> tuple[Plan, Sequence[str]] | None:
        """Returns the plan of the text after the root element, and the values."""
        latest = self.latest
        if latest is not None and latest.find is not None:
            found = latest.find(text, at)
            if found is not None:
                return latest, found.groups()
        parts = _VALUE_TEXT.split(text[at:])
        frame = tuple(parts[::2])
        plan = self.plan_of(frame)
        if plan is None:
            return None
        plan.met += 1
        if plan.met == OFTEN and sum(map(len, frame)) <= _LONGEST_PATTERN:
            plan.find = re.compile(f">({_PLAIN}+)".join(map(re.escape, frame))).fullmatch
        if plan.find is not None:
            self.latest = plan
        return plan, parts[1::2]

    def plan_of(self, frame: tuple[str, ...]) -> Plan | None:
        """Returns the plan of a frame, or None if `write_text` writes no such frame."""
        plan = self.plans.get(frame)
        if plan is None:
            plan = _Planning(self).plan(">0".join(frame).split("\n"))
            if plan is not None and sum(map(len, frame)) <= _LONGEST_FRAME:
                if len(self.plans) >= MOST_PLANS:
                    self.plans.clear()
                self.plans[frame] = plan
        return plan

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
    """Returns the event as XML. Equal events give equal bytes."""
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
    """Writes the data graph. Returns the qualified property names with the ids of their nodes."""
    values, data = event.values, form.data
    quality = [name for name in values if name not in data]
    if quality or event.previous:
        qualities = form.qualities
        for name in (*quality, *event.previous):
            if name not in qualities:
                raise _misnamed(name, schema, path)
    with_quality = {name.rpartition(".")[0] for name in (*quality, *event.previous)}
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
    nodes = [
        f'    <value of="{id}">{key_text(QUALITY, values[names[property]])}</value>'
        for property, id in ids.items()
        if names.get(property) in values
    ]
    if nodes:
        lines += [f'  <{kind} dimension="{dimension}">', *nodes, f"  </{kind}>"]


def _misnamed(name: str, schema: Schema, path: str) -> QnsError:
    """Returns the error for a name that an event of this class cannot have at this place."""
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
    if not seconds >= 0:  # rejects NaN as well
        raise ValueRefused(f"available for {show(seconds)} seconds", remedy="give a number from 0")
    return "INF" if seconds == inf else write_number(abs(float(seconds)))


# --- reading --------------------------------------------------------------------------------------


def read_text(data: bytes, schema: Schema) -> Event | None:
    """Returns the event if the bytes have the form that `write_text` writes, else None."""
    try:
        text = data.decode()
        root = _ROOT.match(text)
        if root is None or root[2] not in schema.properties:
            return None
        id, path, source, published, available = root.groups()
        found = Form.of(schema, path).read(text, root.end())
        if found is None:
            return None
        plan, texts = found
        keys: list[Any] = [read(text) for read, text in zip(plan.readers, texts, strict=True)]
        return Event(
            checked_name("an event's id", id),
            path,
            checked_organisation(source),
            dict(zip(plan.values, keys, strict=False)),
            dict(zip(plan.previous, keys[len(plan.values) :], strict=True)),
            None if published is None else _datetime(published),
            float(available or 0),
        )
    except (QnsError, ValueError):
        return None  # the XML parser gives a better error


class _Planning:
    """Reads a frame line by line and makes its plan."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.ids: dict[str, str] = {}
        """Maps the id of a node to the property."""
        self.values: dict[str, Read] = {}
        self.previous: dict[str, Read] = {}

    def plan(self, lines: list[str]) -> Plan | None:
        if lines[-2:] != ["</event>", ""]:
            return None
        at = self._data(lines)
        last = -1
        while at is not None and at < len(lines) - 2:
            graph = _GRAPH.fullmatch(lines[at])
            nth = -1 if graph is None else _ORDER.get((graph[1], graph[2]), -1)
            if graph is None or nth <= last:
                return None
            last = nth
            known = self.values if graph[1] == "quality" else self.previous
            at = self._graph(lines, at + 1, graph[2], f"  </{graph[1]}>", known)
        if at is None:
            return None
        readers = (*self.values.values(), *self.previous.values())
        return Plan(tuple(self.values), tuple(self.previous), readers)

    def _data(self, lines: list[str]) -> int | None:
        """Reads the data graph. Returns the number of the line after it, or None."""
        data, ids = self.form.data, self.ids
        if lines[0] == "  <data/>":
            return 1
        if lines[0] != "  <data>":
            return None
        at = 1
        while lines[at] != "  </data>":
            node = _PROPERTY.fullmatch(lines[at])
            if node is None:
                return None
            id, name, text = node.groups()
            if name not in data or name in self.values or id != f"p{len(ids) + 1}":
                return None
            ids[id] = name
            if text is not None:
                self.values[name] = _reader(data[name])
            at += 1
        return at + 1 if len(set(ids.values())) == len(ids) > 0 else None

    def _graph(
        self, lines: list[str], at: int, dimension: str, end: str, known: dict[str, Read]
    ) -> int | None:
        names = self.form.quality[dimension]
        while lines[at] != end:
            node = _VALUE.fullmatch(lines[at])
            name = None if node is None else names.get(self.ids.get(node[1], ""))
            if name is None or name in known:
                return None
            known[name] = _quality
            at += 1
        return at + 1


# --- values ---------------------------------------------------------------------------------------


def _reader(domain: Domain) -> Read:
    if domain is STRING:
        return STRING.key
    return _decimal if domain is DECIMAL else partial(value_key, domain)


def _decimal(text: str) -> Key:
    # A double keeps 15 digits, so a short text needs no exact decimal.
    return decimal_key(float(text)) if _SHORT.fullmatch(text) else value_key(DECIMAL, text)


def _datetime(text: str) -> int:
    """Returns the key of a dateTime. Raises ValueError if there is no such day or hour."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


@lru_cache(maxsize=4096)
def _quality(text: str) -> Key:
    if not _PLAIN_QUALITY.fullmatch(text):
        raise ValueError("not as we write it")
    return read_value(QUALITY, text)
