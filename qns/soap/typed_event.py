"""An event as programs write it in the operation publish: names with texts, not D2Q XML.

The peer resolves the names and reads the texts with its schema, as it does for an event in XML.
"""

from __future__ import annotations

from typing import NamedTuple

from qns.cbr.domains import DATETIME, QUALITY, Key
from qns.cbr.event import Event
from qns.d2q.lexical import checked_name, checked_organisation, key_text, value_key
from qns.d2q.schema import Schema
from qns.d2q.xml import quality_key
from qns.errors import DocumentError, QnsError, shorten


class TypedValue(NamedTuple):
    property: str
    value: str


class TypedQuality(NamedTuple):
    property: str
    dimension: str
    value: str | None = None
    """A number from 0 to 1 or a label of the schema. None if only the previous value is known."""
    previous: str | None = None


class TypedEvent(NamedTuple):
    id: str
    data_class: str
    source: str
    published: str = ""
    """A dateTime; if it is empty, the peer uses the current time."""
    available_s: float = 0.0
    data: tuple[TypedValue, ...] = ()
    quality: tuple[TypedQuality, ...] = ()


class TypedPublish(NamedTuple):
    """A request to publish an event, from a program that does not have the schema."""

    owner: str
    event: TypedEvent


def to_event(typed: TypedEvent, schema: Schema) -> Event:
    """Returns the event, checked against the schema; raises QnsError with the place."""
    path = schema.data_class(typed.data_class)
    values: dict[str, Key] = {}
    previous: dict[str, int] = {}
    for item in typed.data:
        _add_value(values, item, schema, path)
    for row in typed.quality:
        try:
            _add_quality(row, schema, path, values, previous)
        except QnsError as problem:
            raise problem.at(f"quality {shorten(f'{row.property}.{row.dimension}')}") from None
    published = value_key(DATETIME, typed.published) if typed.published else None
    assert not isinstance(published, str)
    return Event(
        id=checked_name("an event's id", typed.id),
        data_class=path,
        source=checked_organisation(typed.source),
        values=values,
        previous=previous,
        published_us=published,
        available_s=typed.available_s,
    )


def from_event(event: Event, schema: Schema) -> TypedEvent:
    """Returns the event with qualified names and values as texts; the inverse of `to_event`."""
    path = schema.data_class(event.data_class)
    data: list[TypedValue] = []
    qualities: dict[str, None] = {}
    for name, key in event.values.items():
        attribute = schema.attribute(path, name)
        if attribute.dimension is None:
            data.append(TypedValue(attribute.name, key_text(attribute.domain, key)))
        else:
            qualities[name] = None
    qualities |= dict.fromkeys(event.previous)
    quality = []
    for name in qualities:
        attribute = schema.quality_attribute(path, name)
        owner, _, dimension = attribute.name.rpartition(".")
        new, old = event.values.get(name), event.previous.get(name)
        quality.append(TypedQuality(owner, dimension, _quality_text(new), _quality_text(old)))
    published = event.published_us
    return TypedEvent(
        event.id,
        path,
        event.source,
        "" if published is None else key_text(DATETIME, published),
        event.available_s,
        tuple(data),
        tuple(quality),
    )


def _add_value(values: dict[str, Key], item: TypedValue, schema: Schema, path: str) -> None:
    try:
        attribute = schema.attribute(path, item.property)
        if attribute.dimension is not None:
            raise DocumentError(
                f"{attribute.name} is a quality dimension among the data",
                remedy="send it as quality",
            )
        if attribute.name in values:
            raise DocumentError(f"{attribute.name} is given twice", remedy="keep one of them")
        values[attribute.name] = value_key(attribute.domain, item.value)
    except QnsError as problem:
        raise problem.at(f"data {shorten(item.property)}") from None


def _add_quality(
    row: TypedQuality,
    schema: Schema,
    path: str,
    values: dict[str, Key],
    previous: dict[str, int],
) -> None:
    prop = schema.attribute(path, row.property)
    if prop.dimension is not None:
        raise DocumentError(
            f"{prop.name} is a quality dimension already", remedy="give only the property's name"
        )
    name = schema.quality_attribute(path, f"{prop.name}.{row.dimension}").name
    if name in values or name in previous:
        raise DocumentError(f"{name} is given twice", remedy="keep one of them")
    if row.value is None and row.previous is None:
        raise DocumentError(f"{name} has no value", remedy="give a value, or leave it out")
    if row.value is not None:
        values[name] = quality_key(row.value, schema)
    if row.previous is not None:
        previous[name] = quality_key(row.previous, schema)


def _quality_text(key: Key | None) -> str | None:
    return None if key is None else key_text(QUALITY, key)
