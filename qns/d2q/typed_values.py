"""TypedValues: the values of an event as Python objects, by the names of the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal

from qns.cbr.domains import DECIMAL, Domain, Key
from qns.cbr.event import Event
from qns.d2q.lexical import write_value
from qns.d2q.schema import Schema
from qns.errors import QnsError

PropertyValue = str | int | float | bool | Decimal | date | datetime


class TypedValues(Mapping[str, PropertyValue]):
    """Values of one event. Iteration gives qualified names; a look-up takes any spelling.

    A value is a str, int, Decimal, bool, date, datetime (in UTC) or, for a quality, a float.
    """

    def __init__(
        self, schema: Schema, data_class: str, values: Mapping[str, PropertyValue]
    ) -> None:
        self._schema = schema
        self._data_class = data_class
        self._values = values

    def __getitem__(self, name: str) -> PropertyValue:
        """Returns a value. Raises KeyError if the event has none, or the schema no such name."""
        if name in self._values:
            return self._values[name]
        try:
            qualified = self._schema.attribute(self._data_class, name).name
        except QnsError as problem:
            raise KeyError(str(problem)) from None
        return self._values[qualified]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


def data_of(event: Event, schema: Schema) -> TypedValues:
    """Returns the values of the event's properties."""
    return _typed(event, schema, event.values, is_quality=False)


def quality_of(event: Event, schema: Schema) -> TypedValues:
    """Returns the new quality values, by names such as `Name.accuracy`."""
    return _typed(event, schema, event.values, is_quality=True)


def previous_of(event: Event, schema: Schema) -> TypedValues:
    """Returns the quality values before the change, as far as the event has them."""
    return _typed(event, schema, event.previous, is_quality=True)


def _typed(
    event: Event, schema: Schema, keys: Mapping[str, Key], *, is_quality: bool
) -> TypedValues:
    values = {}
    for name, key in keys.items():
        attribute = schema.attribute(event.data_class, name)
        if (attribute.dimension is not None) is is_quality:
            values[name] = _value(attribute.domain, key)
    return TypedValues(schema, event.data_class, values)


def _value(domain: Domain, key: Key) -> PropertyValue:
    """Returns the value of a key; a decimal is exact."""
    return Decimal(write_value(DECIMAL, key)) if domain is DECIMAL else domain.value(key)
