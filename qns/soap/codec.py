"""Codec: message objects to XML text and back, compiled once from the shapes.

The reader walks the children of an element once and trusts that the schema has accepted it. The
writer puts strings together, which is several times quicker than building a tree first.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable
from itertools import takewhile
from math import inf
from typing import Any, Final

from lxml import etree
from pybase64 import b64encode_as_string

from qns.errors import ValueRefused, show
from qns.soap.shapes import LARGEST, LONGEST_WAIT_S, NAMESPACE, Field, Leaf, Occurs, Shape

Element = etree._Element
Reader = Callable[[Element], Any]
Put = Callable[[str], None]
Writer = Callable[[Put, Any], None]

LONGEST_PROSE: Final = 1_000
_UNSENDABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_SPECIAL: Final = re.compile("[&<>\r\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def qualified(name: str) -> str:
    """lxml's spelling of a name of the contract."""
    return f"{{{NAMESPACE}}}{name}"


# -- reading ----------------------------------------------------------------------------------


def reader_of(shape: Shape) -> Reader:
    """Turns an element that is valid against the schema into the object of the shape.

    The schema demands the order of the fields, so those that occur once and come first are known
    by their places; only what follows is told apart by its name.
    """
    fixed = list(takewhile(lambda field: field.occurs is Occurs.ONCE, shape.fields))
    rest = [field for field in shape.fields[len(fixed) :] if not field.is_reserved]
    spare = len(rest)  # reserved elements end up there
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
        return int(element.text)  # type: ignore[arg-type]  # it is valid, so there is a text
    except ValueError:  # thousands of zeros before it
        raise unreadable() from None


def _read_flag(element: Element) -> bool:
    return (element.text or "").strip() in ("true", "1")


def _read_seconds(element: Element) -> float:
    return checked_seconds(float(element.text))  # type: ignore[arg-type]  # as above


def checked_seconds(seconds: float) -> float:
    """For libxml2, NaN is not less than 0, and so it lets it pass."""
    if seconds != seconds:
        raise ValueRefused("NaN seconds", remedy="give a number from 0, or INF for ever")
    return seconds


def _read_bytes(element: Element) -> bytes:
    try:
        return a2b_base64(element.text or "")
    except ValueError:  # libxml2 passes over what is not of the alphabet
        raise unreadable() from None


def unreadable() -> ValueRefused:
    """For what is valid and yet no number, or not base64."""
    return ValueRefused(
        "a number or base64 that cannot be read", remedy="write it in the shortest form"
    )


_LEAF_READERS: Final[dict[Leaf, Reader]] = {
    Leaf.TEXT: _read_text,
    Leaf.PROSE: _read_text,
    Leaf.NUMBER: _read_number,
    Leaf.FLAG: _read_flag,
    Leaf.SECONDS: _read_seconds,
    Leaf.WAIT: _read_seconds,
    Leaf.BYTES: _read_bytes,
}


# -- writing ----------------------------------------------------------------------------------


_MOST_REMEMBERED: Final = 1_000
"""Characters of an element; longer ones do not come again."""


def writer_of(shape: Shape) -> Writer:
    """Puts the children of the shape's element; ValueRefused for what the wire cannot carry."""
    take = shape.take
    parts: list[Writer] = []

    def write(put: Put, value: Any) -> None:
        for part, field_value in zip(parts, take(value), strict=True):
            part(put, field_value)

    parts += [_field_writer(field, write) for field in shape.fields if not field.is_reserved]
    return write


def _field_writer(field: Field, itself: Writer) -> Writer:
    opening, closing = f"<{field.name}>", f"</{field.name}>"
    if isinstance(field.kind, Leaf):
        write_one = _leaf_writer(_LEAF_TEXTS[field.kind], opening, closing)
    else:
        inner = writer_of(field.kind) if isinstance(field.kind, Shape) else itself
        write_one = _element_writer(inner, opening, closing)
        if isinstance(field.kind, Shape):
            write_one = _remembering_writer(write_one)
    if field.occurs is Occurs.ONCE:
        return write_one
    if field.occurs is Occurs.PERHAPS:
        return _optional_writer(write_one, field.default)
    return _repeating_writer(write_one)


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


def _remembering_writer(write_one: Writer) -> Writer:
    """The same element often comes again: who sends, and that a notification was taken."""
    last: tuple[Any, str] = (object(), "")

    def write(put: Put, value: Any) -> None:
        nonlocal last
        before, text = last
        if value != before:
            parts: list[str] = []
            write_one(parts.append, value)
            text = "".join(parts)
            if len(text) <= _MOST_REMEMBERED and _is_fixed(value):
                last = value, text
        put(text)

    return write


def _is_fixed(value: Any) -> bool:
    """Whether it stays as it is: a tuple says that it can be hashed even if a list is in it."""
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
    """A text between tags; every character comes back as it is."""
    return _escaped(text) if _SPECIAL.search(text) else text


def prose_content(text: str) -> str:
    """Words for people: what XML cannot carry is replaced, what nobody would read is cut.

    They may quote what somebody sent, who must not get back a megabyte for a megabyte.
    """
    if len(text) > LONGEST_PROSE:
        text = text[: LONGEST_PROSE - 1] + "…"
    return _escaped(_UNSENDABLE.sub("\ufffd", text)) if _SPECIAL.search(text) else text


def _escaped(text: str) -> str:
    bad = _UNSENDABLE.search(text)
    if bad:
        raise ValueRefused(
            f"character U+{ord(bad[0]):04X} in a text", remedy="XML cannot carry it: remove it"
        )
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")  # a parser would make a line feed of it


def _number_content(number: int) -> str:
    if not 0 <= number <= LARGEST:
        raise ValueRefused(f"the number {show(number)}", remedy=f"from 0 to {LARGEST:,}")
    return str(int(number))


def _flag_content(flag: bool) -> str:
    return "true" if flag else "false"


def _seconds_content(seconds: float) -> str:
    if not seconds >= 0:  # nor NaN
        raise ValueRefused(f"{show(seconds)} seconds", remedy="give a number from 0")
    return "INF" if seconds == inf else repr(float(seconds))


def _wait_content(seconds: float) -> str:
    return _seconds_content(min(seconds, LONGEST_WAIT_S))


_LEAF_TEXTS: Final[dict[Leaf, Callable[[Any], str]]] = {
    Leaf.TEXT: text_content,
    Leaf.PROSE: prose_content,
    Leaf.NUMBER: _number_content,
    Leaf.FLAG: _flag_content,
    Leaf.SECONDS: _seconds_content,
    Leaf.WAIT: _wait_content,
    Leaf.BYTES: b64encode_as_string,
}
