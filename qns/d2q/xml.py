"""XML: the hardened parser, validation against the shipped XSDs, and helpers for writing.

Only UTF-8 is accepted. A DOCTYPE is rejected before anything in it is read, so there are no
entities. The parser never uses the network. Bytes, depth, elements, attributes and names are
bounded. Every error of lxml becomes a DocumentError with the line. lxml and its types stay in this
package.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final

from lxml import etree

from qns.cbr.domains import QUALITY
from qns.d2q.lexical import WHITE_SPACE, read_value
from qns.d2q.names import Vocabulary, apart, words_of
from qns.d2q.schema import Schema
from qns.errors import DocumentError, LimitExceeded, QnsError, shorten

Element = etree._Element

NAMESPACE: Final = "urn:qns:d2q:1"
MAX_BYTES: Final = 1_048_576
MAX_DEPTH: Final = 64
MAX_ELEMENTS: Final = 100_000
MAX_ATTRIBUTES: Final = 256
"""The limit for one element."""

_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"[ \t\r\n]*")
_DECLARATION = re.compile(rb"<\?xml\s[^>]*?\bencoding\s*=\s*[\"']([^\"'>]*)[\"']")
_POSITION = re.compile(r", line \d+, column \d+\Z")
_NOT_AN_ID = "is not a valid value of the atomic type 'xs:ID'"
_ENCODINGS = {"utf-8", "utf8", "us-ascii", "ascii"}


def parse_xml(
    data: bytes | str,
    *,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    max_elements: int = MAX_ELEMENTS,
) -> Element:
    """Returns the root element. Raises DocumentError or LimitExceeded with the line."""
    raw = utf8(data, max_bytes)
    _refuse_doctype(raw)
    try:
        is_known = _VOCABULARY.takes(words_of(raw))
        root: Element = _read(raw) if is_known else apart(lambda: _read(raw))
    except etree.XMLSyntaxError as problem:
        raise _malformed(problem) from None
    except (etree.LxmlError, ValueError) as problem:
        raise DocumentError(f"unreadable XML: {_short(str(problem))}").at_mark(1, None) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise _doctype_refused(1)
    _check_bounds(root, max_depth, max_elements)
    return root


def read_root(
    data: bytes | str, name: str, xsd_name: str, *, max_bytes: int = MAX_BYTES
) -> Element:
    """Returns the root element of a document, which is called `name` and valid against an XSD."""
    root = parse_xml(data, max_bytes=max_bytes)
    if root.tag != qualified(name):
        raise wrong_root(root, qualified(name))
    validate(root, xsd_name)
    return root


def validate(element: Element, xsd_name: str) -> None:
    """Raises DocumentError, with the line and what was expected, unless the XSD accepts it."""
    schema, lock = _xml_schema(xsd_name)
    with lock:  # a schema has one error log, which threads must not share
        if schema.validate(element):
            return
        first = schema.error_log[0]  # type: ignore[index]  # the stub has no _ErrorLog
        line, message = first.line, first.message
    message = message.replace(f"{{{NAMESPACE}}}", "").rstrip(". \n")
    message = message.replace(_NOT_AN_ID, "is no ID: it is given twice, or it is not a name")
    raise DocumentError(
        _short(message), remedy=f"schemas/{xsd_name}.xsd says what is allowed"
    ).at_mark(line or 1, None)


def utf8(data: bytes | str, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the input as UTF-8 without a byte order mark. A `str` may declare any encoding."""
    try:
        raw = data.encode("utf-8") if isinstance(data, str) else data
    except UnicodeEncodeError as problem:
        raise DocumentError(
            f"character U+{ord(problem.object[problem.start]):04X} cannot be part of XML",
        ).at_mark(problem.object.count("\n", 0, problem.start) + 1, None) from None
    if len(raw) > max_bytes:
        raise LimitExceeded(f"{len(raw):,} bytes of XML", remedy=f"at most {max_bytes:,}").at_mark(
            raw.count(b"\n", 0, max_bytes) + 1, None
        )
    raw = raw.removeprefix(_BOM)
    if isinstance(data, str):
        return raw
    declared = _DECLARATION.match(raw)
    name = declared[1].decode("latin-1") if declared else "utf-8"
    if name.lower() not in _ENCODINGS:
        raise DocumentError(
            f"the encoding {shorten(name)} is not accepted", remedy="save it as UTF-8"
        ).at_mark(1, None)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise DocumentError(
            f"byte 0x{raw[problem.start]:02X} is not UTF-8", remedy="save it as UTF-8"
        ).at_mark(raw.count(b"\n", 0, problem.start) + 1, None) from None
    return raw


@cache
def shipped_file(name: str) -> Path:
    """Returns a file of `schemas/`, which is in the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    for folder in (package / "schemas", package.parent / "schemas"):
        if (folder / name).is_file():
            return folder / name
    raise QnsError(f"schemas/{name} is missing", place=str(package), remedy="install qns again")


# -- for the readers and writers --------------------------------------------------------------


def qualified(name: str) -> str:
    """Returns lxml's spelling of a name in the namespace of QNS."""
    return f"{{{NAMESPACE}}}{name}"


def line_of(element: Element) -> int:
    line: int | None = element.sourceline  # type: ignore[assignment]  # the stub's type is `...`
    return line or 1


def wrong_root(root: Element, wanted: str) -> DocumentError:
    return DocumentError(
        f"the root element is {shown(root.tag)}", remedy=f"{shown(wanted)} is expected"
    ).at_mark(line_of(root), None)


def shown(tag: str) -> str:
    """Returns a tag for a message, with its namespace if that is not the one of QNS."""
    namespace, brace, name = tag.rpartition("}")
    if not brace:
        return f"{shorten(tag)} in no namespace"
    where = f"the namespace {namespace[1:]}" if len(namespace) < 100 else "another namespace"
    return f"{shorten(name)} in {where}"


def is_true(element: Element, attribute: str) -> bool:
    return element.get(attribute, "").strip(WHITE_SPACE) in ("true", "1")


def quality_key(text: str, schema: Schema) -> int:
    """Returns the key of a number from 0 to 1, or of a label."""
    text = text.strip(WHITE_SPACE)
    is_label = text[:1].isalpha() or text.casefold() in schema.labels
    key = QUALITY.key(schema.label(text)) if is_label else read_value(QUALITY, text)
    assert isinstance(key, int)
    return key


def new_root(name: str) -> Element:
    """Returns a root element in the namespace of QNS, which needs no prefix."""
    return etree.Element(
        qualified(name),
        nsmap={None: NAMESPACE},  # type: ignore[dict-item]  # None is the default namespace
    )


def child(parent: Element, tag: str, text: str | None = None, /, **attributes: str) -> Element:
    element = etree.SubElement(parent, tag, attributes)
    element.text = text
    return element


def to_bytes(root: Element) -> bytes:
    """Returns the document in UTF-8, with a declaration and indented. Texts stay as they are."""
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)


# -- inside the parser ------------------------------------------------------------------------


_VOCABULARY = Vocabulary()


def _read(raw: bytes) -> Element:
    root: Element = etree.fromstring(raw, new_parser())
    return root


def new_parser() -> etree.XMLParser:
    """Returns a parser that reads no entities, DTDs or files, and nothing from the network."""
    return etree.XMLParser(
        encoding="UTF-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        collect_ids=False,
        remove_comments=True,
        remove_pis=True,
    )


def _refuse_doctype(raw: bytes) -> None:
    """Raises DocumentError if there is a DOCTYPE before the root element."""
    at = 0
    while blank := _BLANK.match(raw, at):
        at = blank.end()
        if raw.startswith(b"<!DOCTYPE", at):
            raise _doctype_refused(raw.count(b"\n", 0, at) + 1)
        if raw.startswith(b"<!--", at):
            end = raw.find(b"-->", at + 4) + 3
        elif raw.startswith(b"<?", at):
            end = raw.find(b"?>", at + 2) + 2
        else:
            return
        if end <= at:  # it is never closed, which the parser reports
            return
        at = end


def _doctype_refused(line: int) -> DocumentError:
    return DocumentError(
        "a DOCTYPE is not accepted", remedy="remove it; entities are not read either"
    ).at_mark(line, None)


def _malformed(problem: etree.XMLSyntaxError) -> DocumentError:
    message = _POSITION.sub("", (problem.msg or "no element").strip())
    message = message.removesuffix(", use XML_PARSE_HUGE option")
    return DocumentError(f"malformed XML: {_short(message)}").at_mark(problem.lineno or 1, None)


def _check_bounds(root: Element, max_depth: int, max_elements: int) -> None:
    level, depth, count = [root], 0, 0
    while level:
        depth += 1
        count += len(level)
        if depth > max_depth:
            raise _too_much(level[0], "elements nested deeper", max_depth)
        if count > max_elements:
            raise _too_much(level[max_elements - count], "more elements", max_elements)
        for element in level:
            if len(element.attrib) > MAX_ATTRIBUTES:
                raise _too_much(element, "an element with more attributes", MAX_ATTRIBUTES)
        level = [child for element in level for child in element]


def _too_much(element: Element, what: str, limit: int) -> LimitExceeded:
    return LimitExceeded(f"{what} than a peer reads", remedy=f"at most {limit:,}").at_mark(
        line_of(element), None
    )


@cache
def _xml_schema(name: str) -> tuple[etree.XMLSchema, Lock]:
    return etree.XMLSchema(file=str(shipped_file(f"{name}.xsd"))), Lock()


def _short(message: str) -> str:
    """Returns the head and the tail of a message, which may quote a megabyte of input."""
    return message if len(message) <= 400 else f"{message[:200]} … {message[-180:]}"
