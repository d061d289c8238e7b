"""A schema as XML (`schemas/schema.xsd`): labels, classes, typed properties.

It is a file of its own, or an element inside another document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from qns.d2q.document import checked_schema_name
from qns.d2q.lexical import DECIMAL_FORM, WHITE_SPACE, write_number
from qns.d2q.schema import Schema
from qns.d2q.xml import Element, child, line_of, new_root, qualified, read_root, to_bytes
from qns.errors import QnsError, SchemaError, shorten

MAX_SCHEMA_BYTES: Final = 16 * 1_048_576

_NUMBER = re.compile(DECIMAL_FORM + r"\Z")
_MAX_DIGITS = 400


def write_schema(schema: Schema) -> bytes:
    """Returns the schema as XML, in its own order."""
    root = new_root("schema")
    write_schema_into(root, schema)
    return to_bytes(root)


def read_schema(data: bytes | str, *, max_bytes: int = MAX_SCHEMA_BYTES) -> Schema:
    """Reads a schema. Raises QnsError with the line."""
    return schema_in(read_root(data, "schema", "schema", max_bytes=max_bytes))


def write_schema_into(element: Element, schema: Schema) -> None:
    """Fills a `schema` element."""
    element.set("name", checked_schema_name(schema.name))
    for label, number in schema.labels.items():
        child(element, qualified("label"), name=label, value=write_number(number))
    for path, properties in schema.properties.items():
        declared = child(element, qualified("class"), path=path)
        for prop in properties:
            child(declared, qualified("property"), name=prop.name, type=prop.domain.name)


def schema_in(root: Element) -> Schema:
    """Reads the schema in a valid `schema` element. Raises QnsError with the line."""
    node = root
    classes: dict[str, dict[str, str]] = {}
    labels: dict[str, float] = {}
    try:
        name = checked_schema_name(root.get("name", ""))
        for node in root.iterchildren(qualified("label")):
            label = _fresh("label", node.get("name", ""), labels)
            labels[label] = read_label_value(label, node.get("value", ""))
        for declared in root.iterchildren(qualified("class")):
            node = declared
            properties = classes[_fresh("class", declared.get("path", ""), classes)] = {}
            for node in declared:
                prop = _fresh("property", node.get("name", ""), properties)
                properties[prop] = node.get("type", "")
    except QnsError as problem:
        raise problem.at_mark(line_of(node), None) from None
    try:
        return Schema(name, classes, labels)
    except SchemaError as problem:
        paths, words = list(classes.items()), list(labels.items())

        def first(count: int) -> Schema:
            return Schema(name, dict(paths[:count]), dict(words[: max(0, count - len(paths))]))

        elements = [*root.iterchildren(qualified("class")), *root.iterchildren(qualified("label"))]
        raise problem.at_mark(line_of(_first_refused(elements, first)), None) from None


def read_label_value(label: str, text: str) -> float:
    """Returns the number of a label. The schema checks that it lies in [0, 1]."""
    text = text.strip(WHITE_SPACE)
    if len(text) > _MAX_DIGITS or not _NUMBER.match(text):
        raise SchemaError(
            f"label {shorten(label)}: {shorten(text)} is not a number from 0 to 1",
            remedy="give a number from 0 to 1",
        )
    return float(text)


def _fresh(kind: str, name: str, known: Mapping[str, object]) -> str:
    if name in known:
        raise SchemaError(f"{kind} {shorten(name)} is declared twice", remedy="remove one")
    return name


def _first_refused(elements: list[Element], build: Callable[[int], Schema]) -> Element:
    """Finds, by bisection, the first element with which building fails."""
    low, high = 0, len(elements) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            build(middle + 1)
        except SchemaError:
            high = middle
        else:
            low = middle + 1
    return elements[low]
