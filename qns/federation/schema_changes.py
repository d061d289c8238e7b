"""Schema changes: the differences between two schemas, and which of them a federation may make.

Peers keep subscriptions and events of the old schema. A schema may therefore only grow: a new class
or a new property gives no stored name another meaning. Labels may also change, because a label
becomes a number when a subscription or an event is read (semantics §1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qns.d2q.lexical import write_number
from qns.d2q.schema import Attribute, Schema
from qns.errors import FederationError

_REMEDY = (
    "a schema can only grow: keep every class and property as it is, and add new ones; a different "
    "schema needs a federation of another name"
)


class SchemaChange(NamedTuple):
    text: str
    """The whole change in words."""
    classes: tuple[str, ...] = ()
    """The class that is new or gone, or in which an order or a name changes."""
    is_allowed: bool = True
    """False if something that peers have stored would be lost or mean something else."""


def check_grows(before: Schema, after: Schema) -> None:
    """Raises FederationError for the first difference that a federation may not make."""
    for change in schema_changes(before, after):
        if not change.is_allowed:
            raise FederationError(change.text, remedy=_REMEDY)


def schema_changes(before: Schema, after: Schema) -> Iterator[SchemaChange]:
    """Yields one change for each class, property and label that differs."""
    if before.name != after.name:
        text = f"the schema's name {changed_words(before.name, after.name)}"
        yield SchemaChange(text, is_allowed=False)
    for path in sorted({*before.classes, *after.classes}):
        if path not in before.properties:
            yield SchemaChange(f"the class {path} is new", (path,))
        elif path not in after.properties:
            yield SchemaChange(f"the class {path} is gone", (path,), is_allowed=False)
        else:
            yield from _of_properties(before, after, path)
    for path in before.classes:
        if path in after.properties:
            yield from _of_names(before, after, path)
    for label in dict.fromkeys([*before.labels, *after.labels]):
        numbers = (schema.labels.get(label) for schema in (before, after))
        was, now = ("" if number is None else write_number(number) for number in numbers)
        if was != now:
            yield SchemaChange(f"the label {label} {changed_words(was, now)}")


def changed_words(before: str, after: str) -> str:
    """Returns how a value changes, in words; an empty text stands for no value."""
    if not before:
        return f"is new: {after}"
    return f"was {before} and becomes {after}" if after else f"is gone: it was {before}"


def _of_properties(before: Schema, after: Schema, path: str) -> Iterator[SchemaChange]:
    types, types_now = (
        {prop.name: prop.domain.name for prop in schema.properties[path]}
        for schema in (before, after)
    )
    for prop in dict.fromkeys([*types, *types_now]):
        was, now = types.get(prop, ""), types_now.get(prop, "")
        if was != now:
            text = f"the property {path}.{prop} {changed_words(was, now)}"
            yield SchemaChange(text, is_allowed=not was)
    if types.keys() <= types_now.keys() and [*types] != [p for p in types_now if p in types]:
        text = f"the properties of {path} stand in another order"
        yield SchemaChange(text, (path,), is_allowed=False)


def _of_names(before: Schema, after: Schema, path: str) -> Iterator[SchemaChange]:
    """Yields the names that new properties make ambiguous in events of an existing class."""
    kept = {prop for owner in after.lineage(path) for prop in after.properties[owner]}
    for owner in before.lineage(path):
        for prop in before.properties[owner]:
            spellings = (prop.name, f"{owner.rsplit('/', 1)[-1]}.{prop.name}")
            for name in spellings if prop in kept else ():
                attribute = Attribute(prop)
                was_clear = before.means(path, name, attribute)
                if was_clear and not after.means(path, name, attribute):
                    text = f"a new property makes the name {name} ambiguous in {path}"
                    yield SchemaChange(text, (path,), is_allowed=False)
