"""Plain envelopes: reads messages in the exact form that `writer_of` produces, without a tree.

Peers send no other form, so nearly all incoming messages are plain. Regular expressions that are
built from the shapes both validate and read them. An envelope that differs in any way, even if it
is valid, is left to hardening, schema and codec, which also report what is wrong with it.

Reading is generated code. For every shape, this module writes the source of one Python function and
compiles it once with `exec`. A generic loop over the fields of a shape would take 50 % longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from pybase64 import b64decode, b64encode_as_string

from qns.errors import QnsError
from qns.soap.codec import moment_of
from qns.soap.envelope import ADDRESSING, BODY_START, END, MAX_MESSAGE_ID, START
from qns.soap.hardening import Bounds
from qns.soap.operations import Message
from qns.soap.shapes import NAMESPACE, Field, Leaf, Occurs, Shape

Scanner = Callable[[str, int], tuple[Any, int]]
"""Reads a value from a position in a text; returns the value and the position after it."""

_MOST_NESTED: Final = 12
"""How many levels of a recursive shape are read here; the codec reads deeper ones."""

# Text without escapes and control characters.
_TEXT = r"[^<>&\x00-\x1f\x7f-\x9f]"
_HEAD = re.compile(
    re.escape(START)
    + rf'(?:<soap:Header><wsa:MessageID xmlns:wsa="{re.escape(ADDRESSING)}">'
    + rf"({_TEXT}{{0,{MAX_MESSAGE_ID}}}+)</wsa:MessageID></soap:Header>)?"
    + re.escape(BODY_START)
    + rf'<([A-Za-z]++) xmlns="{re.escape(NAMESPACE)}">'
)
_MESSAGE_ID_GROUP, _NAME_GROUP = 1, 2


class Plain(NamedTuple):
    """The content of a plain envelope."""

    message: Message
    value: Any
    message_id: str


def read_plain(body: bytes, bounds: Bounds, messages: Mapping[str, Message]) -> Plain | None:
    """Returns the content of a plain envelope, or None if the envelope is not plain.

    `messages` has the expected messages by name.
    """
    if len(body) > bounds.bytes or body.count(b"<") > 2 * bounds.elements:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    head = _HEAD.match(text)
    message = None if head is None else messages.get(head[_NAME_GROUP])
    if head is None or message is None:
        return None
    if "\ufffe" in text or "\uffff" in text:  # XML forbids these characters
        return None
    scan, end = _scanner_of_message(message)
    try:
        value, position = scan(text, head.end())
    except (_NotPlain, ValueError, QnsError):
        return None
    if len(text) != position + len(end) or not text.endswith(end):
        return None
    return Plain(message, value, (head[_MESSAGE_ID_GROUP] or "").strip())


class _NotPlain(Exception):
    """Raised where the text differs from what our writer would write."""


@cache
def _scanner_of_message(message: Message) -> tuple[Scanner, str]:
    """Returns the scanner of a message's content, and the text that must follow the content."""
    return _scanner_of(message.shape, _MOST_NESTED), f"{message.closing}{END}"


# -- the function that is generated for each shape ----------------------------------------------


def _scanner_of(shape: Shape, nested: int) -> Scanner:
    """Generates the scanner of a shape; `nested` is how many levels of itself it may hold."""
    source = _ScannerSource(shape)
    for field in shape.fields:
        if isinstance(field.kind, Leaf):
            if not field.is_reserved:  # our writer never writes a reserved field
                source.add_leaf(field, field.kind)
        elif isinstance(field.kind, Shape):
            source.add_element(field, field.kind, _scanner_of(field.kind, nested))
        elif nested:
            source.add_element(field, shape, _scanner_of(shape, nested - 1))
        else:
            source.values.append(repr(field.default))
    return source.compiled()


class _ScannerSource:
    """The source text of a shape's scanner, and the objects that the text refers to.

    Consecutive leaves share one pattern. For a shape with two leaves and a repeated element, the
    text is:

        def scan(text, position):
            found = match0(text, position)
            if found is None: raise NotPlain
            position = found.end()
            value0, value1, = found.groups()
            value2, position = scan2(text, position)
            return make(value0, read1(value1), value2), position
    """

    def __init__(self, shape: Shape) -> None:
        self.names: dict[str, Any] = {"make": shape.make, "NotPlain": _NotPlain}
        """The globals of the generated function."""
        self.lines = ["def scan(text, position):"]
        self.values: list[str] = []
        """One expression for each argument of `make`."""
        self.pattern = ""
        """The pattern of the current run of leaves; no line matches it yet."""
        self.groups: list[str] = []
        """The variables for the groups of `pattern`."""

    def add_leaf(self, field: Field, leaf: Leaf) -> None:
        pattern, read = _leaf_pattern(field, leaf)
        self.pattern += pattern
        index = len(self.values)
        self.groups.append(f"value{index}")
        self.names[f"read{index}"] = read
        self.values.append(f"value{index}" if read is str else f"read{index}(value{index})")

    def add_element(self, field: Field, shape: Shape, inner: Scanner) -> None:
        index = len(self.values)
        self._close_run()
        self.lines.append(f"value{index}, position = scan{index}(text, position)")
        self.names[f"scan{index}"] = _element_scanner(field, shape, inner)
        self.values.append(f"value{index}")

    def compiled(self) -> Scanner:
        self._close_run()
        self.lines.append(f"return make({', '.join(self.values)}), position")
        exec("\n    ".join(self.lines), self.names)  # noqa: S102  # built from our own tables only
        scan: Scanner = self.names["scan"]
        return scan

    def _close_run(self) -> None:
        """Adds the lines that match the current run of leaves."""
        if not self.pattern:
            return
        match = f"match{len(self.names)}"
        self.names[match] = re.compile(self.pattern).match
        self.lines += [
            f"found = {match}(text, position)",
            "if found is None: raise NotPlain",
            "position = found.end()",
        ]
        if self.groups:
            self.lines.append(f"{', '.join(self.groups)}, = found.groups()")
        self.pattern, self.groups = "", []


def _element_scanner(field: Field, shape: Shape, inner: Scanner) -> Scanner:
    """Returns the scanner of a field whose elements have children."""
    opening, closing = f"<{field.name}>", f"</{field.name}>"
    occurs, absent = field.occurs, field.default
    match, build = _BareElement(field, shape).compiled()

    def scan(text: str, position: int) -> tuple[Any, int]:
        values = []
        while text.startswith(opening, position):
            bare = match(text, position)
            if bare is not None:
                values.append(build(bare))
                position = bare.end()
                continue
            value, position = inner(text, position + len(opening))
            if not text.startswith(closing, position):
                raise _NotPlain
            position += len(closing)
            values.append(value)
        if occurs is Occurs.MANY:
            return tuple(values), position
        if len(values) == 1:
            return values[0], position
        if values or occurs is Occurs.ONCE:
            raise _NotPlain
        return absent, position

    return scan


class _BareElement:
    """One pattern for a whole element in which every optional child with children is absent.

    Nearly all notifications have this form. One match reads them in half the time of `scan`. The
    generated function turns the match into the object:

        def build(found):
            value0, value1, = found.groups()
            return make2(value0, make1(read0(value1)), absent3)
    """

    def __init__(self, field: Field, shape: Shape) -> None:
        self.names: dict[str, Any] = {}
        """The globals of the generated function."""
        self.pattern = ""
        self.groups = 0
        self.value = self._element_value(field, shape)

    def compiled(self) -> tuple[Callable[..., re.Match[str] | None], Callable[..., Any]]:
        groups = "".join(f"value{index}, " for index in range(self.groups))
        lines = ["def build(found):", f"return {self.value}"]
        if groups:
            lines.insert(1, f"{groups}= found.groups()")
        exec("\n    ".join(lines), self.names)  # noqa: S102  # built from our own tables only
        return re.compile(self.pattern).match, self.names["build"]

    def _element_value(self, field: Field, shape: Shape) -> str:
        """Adds the pattern of an element; returns the expression for its value."""
        self.pattern += f"<{field.name}>"
        values = [self._field_value(each) for each in shape.fields if not each.is_reserved]
        self.pattern += f"</{field.name}>"
        return f"{self._named('make', shape.make)}({', '.join(values)})"

    def _field_value(self, field: Field) -> str:
        if isinstance(field.kind, Leaf):
            pattern, read = _leaf_pattern(field, field.kind)
            self.pattern += pattern
            value = f"value{self.groups}"
            self.groups += 1
            return value if read is str else f"{self._named('read', read)}({value})"
        if field.occurs is Occurs.ONCE and isinstance(field.kind, Shape):
            return self._element_value(field, field.kind)
        return self._named("absent", field.default)

    def _named(self, kind: str, value: object) -> str:
        """Makes an object available to the generated function; returns its name there."""
        name = f"{kind}{len(self.names)}"
        self.names[name] = value
        return name


# -- leaves -----------------------------------------------------------------------------------


def _leaf_pattern(field: Field, leaf: Leaf) -> tuple[str, Callable[[Any], Any]]:
    """Returns the pattern of a leaf, with one group, and the function that converts the group."""
    form, read = _LEAVES[leaf]
    element = f"<{field.name}>({form})</{field.name}>"
    if field.occurs is Occurs.PERHAPS:
        return f"(?:{element})?+", _or_default(read, field.default)
    if field.occurs is Occurs.MANY:
        many = f"((?:<{field.name}>(?:{form})</{field.name}>)*+)"
        return many, _each(read, field.name)
    return element, read


def _or_default(read: Callable[[str], Any], default: Any) -> Callable[[str | None], Any]:
    return lambda text: default if text is None else read(text)


def _each(read: Callable[[str], Any], name: str) -> Callable[[str], Any]:
    """Returns a function that reads consecutive elements of this name into a tuple."""
    opening, closing = f"<{name}>", f"</{name}>"
    between = f"{closing}{opening}"

    def each(run: str) -> tuple[Any, ...]:
        if not run:
            return ()
        return tuple(map(read, run[len(opening) : -len(closing)].split(between)))

    return each


def _bytes(text: str) -> bytes:
    """Decodes base64; raises _NotPlain unless it is in the form that our writer produces.

    Other forms exist because some bits of the last characters are not used.
    """
    data = b64decode(text, validate=True)
    if b64encode_as_string(data) != text:
        raise _NotPlain
    return data


_SECONDS = r"INF|[0-9]{1,15}\.[0-9]{1,20}"
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z"
_LEAVES: Final[dict[Leaf, tuple[str, Callable[[str], Any]]]] = {
    Leaf.TEXT: (f"{_TEXT}*+", str),
    Leaf.PROSE: (f"{_TEXT}*+", str),
    Leaf.NUMBER: ("[0-9]{1,18}+", int),
    Leaf.FLAG: ("true|false", lambda text: text == "true"),
    Leaf.SECONDS: (_SECONDS, float),
    Leaf.WAIT: (r"[1-5]?[0-9]\.[0-9]{1,20}|60\.0", float),
    Leaf.MOMENT: (_MOMENT, moment_of),
    Leaf.BYTES: ("[^<]*+", _bytes),
}
"""The pattern of each kind of leaf, and the function that converts its text."""
