"""Publication: a request to publish, from a mapping or an `Event`.

The names and values of a mapping are sent as they are. The peer resolves and checks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from math import inf, isnan
from typing import Any

from qns.cbr.event import Event
from qns.d2q.lexical import write_number
from qns.d2q.schema import Schema
from qns.errors import DocumentError, NameNotKnown, QnsError, SchemaError, shorten, show
from qns.soap.typed_event import TypedEvent, TypedPublish, TypedQuality, TypedValue, from_event

_FIELDS = ("id", "class", "source", "data", "quality", "previous", "published", "available")


def publication(
    event: Mapping[str, Any] | Event, owner: str, schema: Schema | None
) -> TypedPublish:
    """Returns the request that publishes an event."""
    if isinstance(event, Event):
        if schema is None:
            raise SchemaError(
                f"event {event.id} cannot be written without its schema",
                remedy="give the client a schema, or publish a mapping",
            )
        return TypedPublish(owner, from_event(event, schema))
    try:
        return TypedPublish(owner, _typed(event))
    except QnsError as problem:
        id = event.get("id") if isinstance(event, Mapping) else None
        raise problem.at(f"event {shorten(id)[1:-1]}" if isinstance(id, str) else "event") from None


def _typed(fields: Mapping[str, Any]) -> TypedEvent:
    if not isinstance(fields, Mapping):
        raise DocumentError("an event is a mapping", remedy='such as {"id": …, "class": …}')
    for name in fields:
        if name not in _FIELDS:
            raise NameNotKnown("field", str(name), _FIELDS)
    new, old = _mapping(fields, "quality"), _mapping(fields, "previous")
    return TypedEvent(
        _required(fields, "id"),
        _required(fields, "class"),
        _required(fields, "source"),
        _text("published", fields["published"]) if "published" in fields else "",
        _seconds(fields.get("available", 0)),
        tuple(
            TypedValue(name, _text(f"data {shorten(name)}", value))
            for name, value in _mapping(fields, "data").items()
        ),
        tuple(_qualities(new, old)),
    )


def _qualities(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[TypedQuality]:
    """Pairs new and previous values by name, without regard to case."""
    before = {name.casefold(): name for name in old}
    for name, value in new.items():
        same = before.pop(name.casefold(), None)
        yield _quality(name, value, None if same is None else old[same])
    for name in before.values():
        yield _quality(name, None, old[name])


def _quality(name: str, value: object, previous: object) -> TypedQuality:
    prop, dot, dimension = name.rpartition(".")
    if not dot:
        raise DocumentError(
            f"{shorten(name)} names no quality dimension", remedy="write it as Name.accuracy"
        )
    texts = (None if each is None else _text(shorten(name), each) for each in (value, previous))
    return TypedQuality(prop, dimension, *texts)


def _mapping(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = fields.get(name, {})
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise DocumentError(f"'{name}' is not a JSON object", remedy='such as {"Name": …}')
    return found


def _required(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if isinstance(value, str) and value:
        return value
    if name == "id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    state = "is missing" if value is None else f"is {show(value)}"
    raise DocumentError(f"'{name}' {state}", remedy=f"give the event's {name} as a string")


def _text(place: str, value: object) -> str:
    """Returns a value as it is written in XML. The peer checks it against the property's type."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float) and abs(value) < inf:
        return write_number(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    raise DocumentError(
        f"{show(value)} is no value", place=place, remedy="give a string, a number, true or false"
    )


def _seconds(value: object) -> float:
    if value == "INF":
        return inf
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
        if seconds >= 0 and not isnan(seconds):
            return seconds
    raise DocumentError(f"'available' is {show(value)}", remedy="give seconds from 0, or INF")
