"""DTD: exports a local schema as a D2Q DTD, and reads it back (thesis 5.2.1, semantics §1).

The DTD accepts what `document_xml.py` writes. The path of a class, the type of a property and the
labels are in #FIXED attributes, because a DTD has no other place for them; so a DTD is a complete
schema. Reading is strict: a DTD must declare exactly what its schema exports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

from lxml import etree

from qns.d2q.document import ElementNames, checked_schema_name, element_names, labels_text
from qns.d2q.document_xml import PREFIX
from qns.d2q.schema import DIMENSIONS, Schema, parent
from qns.d2q.schema_xml import MAX_SCHEMA_BYTES, read_label_value
from qns.d2q.xml import NAMESPACE, utf8
from qns.errors import DocumentError, QnsError, shorten

# Rejected everywhere, even in comments, so that no quotes can hide it.
_FORBIDDEN = re.compile(rb"<!ENTITY|<!NOTATION|<!DOCTYPE|<!\[|%[^\s;%]{1,200};|\0")
_TEXT_DECLARATION = re.compile(rb"\A<\?xml\s[^>]*\?>")
_ROOT = f"{PREFIX}:document"

Declared = dict[str, tuple[tuple[Any, ...], dict[str, tuple[Any, ...]]]]
"""Maps an element to its flat content and its attributes (type, default, value, enumeration)."""


def write_dtd(schema: Schema) -> str:
    """Returns the DTD of the schema's documents."""
    return "\n".join(_lines(schema, element_names(schema))) + "\n"


def read_dtd(data: bytes | str, *, max_bytes: int = MAX_SCHEMA_BYTES) -> Schema:
    """Returns the schema that a DTD exports. Raises QnsError, with the line if there is one."""
    raw = utf8(data, max_bytes)
    if found := _FORBIDDEN.search(raw):
        raise DocumentError(
            f"{shorten(found[0].decode())} in a D2Q DTD",
            remedy="it has elements and attributes only: no entities, nothing external",
        ).at_mark(raw.count(b"\n", 0, found.start()) + 1, None)
    declared = _declared(raw)
    try:
        schema = _schema(declared)
        _compare(declared, _declared(write_dtd(schema).encode()), raw)
    except QnsError as problem:
        raise problem.at_mark(_line(raw, _ROOT), None) from None
    return schema


def _lines(schema: Schema, names: ElementNames) -> Iterator[str]:
    below: dict[str, list[str]] = {path: [] for path in ("", *schema.classes)}
    for path in schema.classes:
        below[parent(path)].append(names.element[path])
    yield "<!-- A D2Q DTD: the documents of one schema, their data and its quality. -->"
    graphs = ", ".join(f"{PREFIX}:{dimension}?" for dimension in DIMENSIONS)
    yield ""
    yield f"<!ELEMENT {_ROOT} ({PREFIX}:data, {graphs})>"
    yield f"<!ATTLIST {_ROOT}"
    yield f'  xmlns:{PREFIX} CDATA #FIXED "{NAMESPACE}"'
    yield f'  labels CDATA #FIXED "{labels_text(schema)}"'
    yield f"  schema ({checked_schema_name(schema.name)}) #REQUIRED>"
    for dimension in (None, *DIMENSIONS):
        suffix = f".{dimension}" if dimension else ""
        yield ""
        yield f"<!-- {'The quality graph: ' + dimension if dimension else 'The data graph'} -->"
        tops = _choice(names.element[path] + suffix for path in schema.classes)
        yield f"<!ELEMENT {PREFIX}:{dimension or 'data'} {tops}>"
        for path, properties in schema.properties.items():
            element = names.element[path] + suffix
            leaves = [names.element[prop.qualified] for prop in properties]
            yield ""
            yield f"<!ELEMENT {element} {_content(leaves, below[path], suffix)}>"
            yield f"<!ATTLIST {element} " + (
                "of IDREF #REQUIRED>"
                if dimension
                else f'id ID #REQUIRED class CDATA #FIXED "{path}">'
            )
            for prop, leaf in zip(properties, leaves, strict=True):
                yield f"<!ELEMENT {leaf}{suffix} (#PCDATA)>"
                if dimension:
                    yield f"<!ATTLIST {leaf}{suffix} of IDREF #REQUIRED>"
                    continue
                yield f"<!ATTLIST {leaf} id ID #IMPLIED absent (true | false) #IMPLIED"
                yield f'  property CDATA #FIXED "{prop.qualified}"'
                yield f'  type CDATA #FIXED "{prop.domain.name}">'


def _content(leaves: list[str], below: list[str], suffix: str) -> str:
    """Returns a content model: optional properties in order, then objects below in any order."""
    parts = [f"{leaf}{suffix}?" for leaf in leaves]
    if below:
        parts.append(_choice(name + suffix for name in below))
    return f"({', '.join(parts)})" if parts else "EMPTY"


def _choice(names: Iterable[str]) -> str:
    return f"({' | '.join(names)})*"


def _declared(raw: bytes) -> Declared:
    try:
        dtd: Any = etree.DTD(BytesIO(_TEXT_DECLARATION.sub(b"", raw)))
    except etree.LxmlError as problem:
        first: Any = next(iter(problem.error_log), None)  # type: ignore[call-overload]
        raise DocumentError(
            f"malformed DTD: {first.message.strip() if first else problem!s:.200}"
        ).at_mark(first.line if first and first.line else 1, None) from None
    return {
        _name(element): (
            (element.type, *_flat(element.content)),
            {
                _name(a): (a.type, a.default, a.default_value, tuple(a.itervalues()))
                for a in element.iterattributes()
            },
        )
        for element in dtd.iterelements()
    }


def _name(declaration: Any) -> str:
    return f"{declaration.prefix}:{declaration.name}" if declaration.prefix else declaration.name


def _flat(content: Any) -> Iterator[tuple[Any, ...]]:
    """Yields the parts of a content model, each operator before its operands."""
    left = [content]
    while left:
        node = left.pop()
        if node is not None:
            yield node.type, node.occur, node.name
            left += (node.right, node.left)


def _schema(declared: Declared) -> Schema:
    if _ROOT not in declared:
        raise DocumentError(f"no element {_ROOT}", remedy="this is not a D2Q DTD: export one")
    classes: dict[str, dict[str, str]] = {}
    properties: list[tuple[str, str]] = []
    for _, attributes in declared.values():
        if "class" in attributes:
            classes[_fixed(attributes, "class")] = {}
        elif "property" in attributes:
            properties.append((_fixed(attributes, "property"), _fixed(attributes, "type")))
    for name, type_name in properties:
        owner, _, bare = name.rpartition(".")
        if owner not in classes:
            raise DocumentError(f"the property {shorten(name)} has no class")
        classes[owner][bare] = type_name
    _, of_document = declared[_ROOT]
    names = of_document.get("schema", ("", "", "", ()))[3]
    labels = [pair.partition("=") for pair in _fixed(of_document, "labels").split()]
    return Schema(
        checked_schema_name("".join(names[:1])),
        classes,
        {label: read_label_value(label, number) for label, _, number in labels},
    )


def _fixed(attributes: dict[str, tuple[Any, ...]], name: str) -> str:
    value = attributes[name][2] if name in attributes else None
    return value or ""


def _compare(found: Declared, wanted: Declared, raw: bytes) -> None:
    """Raises DocumentError if the declarations differ, as in a DTD that was edited by hand."""
    for name in (*found, *wanted):
        if found.get(name) != wanted.get(name):
            what = "differs from" if name in found else "is missing: compare"
            raise DocumentError(
                f"the declaration of {shorten(name)} {what} what the schema of this DTD exports",
                remedy="edit the schema as an XML file and export it again",
            ).at_mark(_line(raw, name), None)


def _line(raw: bytes, name: str) -> int:
    found = re.search(rb"<!ELEMENT\s+" + re.escape(name.encode()) + rb"[\s(]", raw)
    return raw.count(b"\n", 0, found.start()) + 1 if found else 1
