"""Codec: converts message objects to XML text and back. It is built once from the shapes.

The reader walks the children of an element once. It relies on the element being valid against the
schema. The writer joins strings, which is several times faster than building a tree first.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import takewhile
from math import inf
from typing import Any, Final

from lxml import etree
from pybase64 import b64encode_as_string

from qns.errors import ValueRefused, shorten, show
from qns.soap.shapes import (
    CONTRACT,
    LARGEST,
    LONGEST_WAIT_S,
    NAMESPACE,
    Field,
    Leaf,
    Occurs,
    Shape,
)

Element = etree._Element
Reader = Callable[[Element], Any]
Put = Callable[[str], None]
Writer = Callable[[Put, Any], None]

LONGEST_PROSE: Final = 1_000
"""Characters of a text for people; a longer one is cut."""
_UNSENDABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL: Final = re.compile("[&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def qualified(name: str) -> str:
    """Returns a name of the contract in lxml's notation, with the namespace in braces."""
    return f"{{{NAMESPACE}}}{name}"


# -- reading ----------------------------------------------------------------------------------


def reader_of(shape: Shape) -> Reader:
    """Returns a function that turns a valid element into the object of the shape.

    The schema prescribes the order of the fields. The leading fields that occur exactly once are
    therefore found by position; only the fields after them are found by name.
    """
    fixed = list(takewhile(lambda field: field.occurs is Occurs.ONCE, shape.fields))
    rest = [field for field in shape.fields[len(fixed) :] if not field.is_reserved]
    spare = len(rest)  # the index for the values of reserved elements, which are dropped
    absent = [*(field.default for field in rest), None]
    repeated = tuple(at for at, field in enumerate(rest) if field.occurs is Occurs.MANY)
    at_place: list[Reader] = []
    by_name: dict[str, tuple[int, bool, Reader]] = {}
    make, count = shape.make, len(fixed)

    def read(element: Element) -> Any:
        children = list(element)
        first = [read_child(child) for read_child, child in zip(at_place, children, strict=False)]
        values = absent.copy()
        for child in children[count:]:
            at, is_many, read_child = by_name[child.tag]
            if not is_many:
                values[at] = read_child(child)
            elif values[at]:
                values[at].append(read_child(child))
            else:
                values[at] = [read_child(child)]
        for at in repeated:
            values[at] = tuple(values[at])
        values.pop()
        return make(*first, *values)

    at_place += [_field_reader(field, read) for field in fixed]
    for field in shape.fields[count:]:
        at = spare if field.is_reserved else rest.index(field)
        is_many = field.occurs is Occurs.MANY
        by_name[qualified(field.name)] = (at, is_many, _field_reader(field, read))
    return read


def _field_reader(field: Field, itself: Reader) -> Reader:
    if isinstance(field.kind, Shape):
        return reader_of(field.kind)
    return _LEAF_READERS[field.kind] if isinstance(field.kind, Leaf) else itself


def _read_text(element: Element) -> str:
    return element.text or ""


def _read_number(element: Element) -> int:
    try:
        return int(element.text)  # type: ignore[arg-type]  # a valid element has a text
    except ValueError:  # Python does not convert thousands of leading zeros
        raise unreadable() from None


def _read_flag(element: Element) -> bool:
    return (element.text or "").strip() in ("true", "1")


def _read_seconds(element: Element) -> float:
    return checked_seconds(float(element.text))  # type: ignore[arg-type]  # as above


def checked_seconds(seconds: float) -> float:
    """Raises ValueRefused for NaN, which libxml2 accepts because it is not less than 0."""
    if seconds != seconds:
        raise ValueRefused(
            "NaN seconds is not a duration", remedy="use a number of at least 0, or INF"
        )
    return seconds


def _read_moment(element: Element) -> datetime:
    return moment_of((element.text or "").strip())


def moment_of(text: str) -> datetime:
    """Returns the time that a dateTime means; raises ValueRefused if it has no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # a year after 9999, or the end of a day as 24:00:00
        raise unreadable() from None
    if moment.tzinfo is None:
        raise ValueRefused(f"the dateTime {shorten(text)} has no zone", remedy="end it with Z")
    return moment


def _read_bytes(element: Element) -> bytes:
    try:
        return a2b_base64(element.text or "")
    except ValueError:  # libxml2 ignores characters that are not in the base64 alphabet
        raise unreadable() from None


def unreadable() -> ValueRefused:
    """Returns the error for a value that the schema accepts but that cannot be converted."""
    return ValueRefused(
        "a number, dateTime or base64 text cannot be read", remedy="write it in its shortest form"
    )


_LEAF_READERS: Final[dict[Leaf, Reader]] = {
    Leaf.TEXT: _read_text,
    Leaf.PROSE: _read_text,
    Leaf.NUMBER: _read_number,
    Leaf.FLAG: _read_flag,
    Leaf.SECONDS: _read_seconds,
    Leaf.WAIT: _read_seconds,
    Leaf.MOMENT: _read_moment,
    Leaf.BYTES: _read_bytes,
}


# -- writing ----------------------------------------------------------------------------------


_LONGEST_CACHED: Final = 1_000
"""Characters of an element's text. Longer elements are unlikely to repeat and are not cached."""


def writer_of(shape: Shape, contract: int = CONTRACT) -> Writer:
    """Returns a function that writes the children of the shape's element.

    It leaves out the elements that are newer than this version of the contract. The function
    raises ValueRefused for a value that XML cannot carry.
    """
    take = shape.take
    parts: list[Writer] = []

    def write(put: Put, value: Any) -> None:
        for part, field_value in zip(parts, take(value), strict=True):
            part(put, field_value)

    parts += [
        _field_writer(field, write, contract) for field in shape.fields if not field.is_reserved
    ]
    return write


def _field_writer(field: Field, itself: Writer, contract: int) -> Writer:
    if field.since > contract:
        return _write_nothing
    opening, closing = f"<{field.name}>", f"</{field.name}>"
    if isinstance(field.kind, Leaf):
        write_one = _leaf_writer(_LEAF_TEXTS[field.kind], opening, closing)
    else:
        inner = writer_of(field.kind, contract) if isinstance(field.kind, Shape) else itself
        write_one = _element_writer(inner, opening, closing)
        if isinstance(field.kind, Shape):
            write_one = _caching_writer(write_one)
    if field.occurs is Occurs.ONCE:
        return write_one
    if field.occurs is Occurs.PERHAPS:
        return _optional_writer(write_one, field.default)
    return _repeating_writer(write_one)


def _write_nothing(put: Put, value: Any) -> None:
    pass


def _leaf_writer(text_of: Callable[[Any], str], opening: str, closing: str) -> Writer:
    def write(put: Put, value: Any) -> None:
        put(f"{opening}{text_of(value)}{closing}")

    return write


def _element_writer(inner: Writer, opening: str, closing: str) -> Writer:
    def write(put: Put, value: Any) -> None:
        put(opening)
        inner(put, value)
        put(closing)

    return write


def _caching_writer(write_one: Writer) -> Writer:
    """Keeps the text of the last element, because equal elements often follow each other.

    Examples are the origin of every request and the outcome of a notification that was taken.
    """
    last: tuple[Any, str] = (object(), "")

    def write(put: Put, value: Any) -> None:
        nonlocal last
        before, text = last
        if value != before:
            parts: list[str] = []
            write_one(parts.append, value)
            text = "".join(parts)
            if len(text) <= _LONGEST_CACHED and _is_immutable(value):
                last = value, text
        put(text)

    return write


def _is_immutable(value: Any) -> bool:
    """True if the value can be hashed; a tuple that holds a list cannot."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _optional_writer(write_one: Writer, default: Any) -> Writer:
    def write(put: Put, value: Any) -> None:
        if value != default:
            write_one(put, value)

    return write


def _repeating_writer(write_one: Writer) -> Writer:
    def write(put: Put, values: Any) -> None:
        for value in values:
            write_one(put, value)

    return write


def text_content(text: str) -> str:
    """Returns a text as element content; reading it back gives every character unchanged."""
    return _escaped(text) if _SPECIAL.search(text) else text


def prose_content(text: str) -> str:
    """Returns a text for people as element content.

    Characters that XML cannot carry are replaced. A long text is cut: it may quote the request, and
    a request of a megabyte must not cause a reply of a megabyte.
    """
    if len(text) > LONGEST_PROSE:
        text = text[: LONGEST_PROSE - 1] + "…"
    return _escaped(_UNSENDABLE.sub("\ufffd", text)) if _SPECIAL.search(text) else text


def _escaped(text: str) -> str:
    bad = _UNSENDABLE.search(text)
    if bad:
        raise ValueRefused(
            f"a text contains character U+{ord(bad[0]):04X}, which XML cannot carry",
            remedy="remove it",
        )
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")  # a parser would turn a plain one into a line feed


def _number_content(number: int) -> str:
    if not 0 <= number <= LARGEST:
        raise ValueRefused(
            f"the number {show(number)} is out of range", remedy=f"use 0 to {LARGEST:,}"
        )
    return str(int(number))


def _flag_content(flag: bool) -> str:
    return "true" if flag else "false"


def _seconds_content(seconds: float) -> str:
    if not seconds >= 0:  # written so that NaN is rejected too
        raise ValueRefused(
            f"{show(seconds)} seconds is not a duration", remedy="use a number of at least 0"
        )
    return "INF" if seconds == inf else repr(float(seconds))


def _wait_content(seconds: float) -> str:
    return _seconds_content(min(seconds, LONGEST_WAIT_S))


def moment_content(moment: datetime) -> str:
    """Returns a dateTime in UTC, as XML Schema writes it."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


_LEAF_TEXTS: Final[dict[Leaf, Callable[[Any], str]]] = {
    Leaf.TEXT: text_content,
    Leaf.PROSE: prose_content,
    Leaf.NUMBER: _number_content,
    Leaf.FLAG: _flag_content,
    Leaf.SECONDS: _seconds_content,
    Leaf.WAIT: _wait_content,
    Leaf.MOMENT: moment_content,
    Leaf.BYTES: b64encode_as_string,
}
