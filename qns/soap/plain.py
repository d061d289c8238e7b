"""Plain envelopes: the very form that `writer_of` gives a message, read without a tree.

Peers send nothing else, so nearly all that comes in is of this form. One pattern for each run of
leaves, made from the same shapes, both checks and reads it. Whatever is a little different, however
right, is given up on: hardening, schema and codec then read it, and say what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from pybase64 import b64decode, b64encode_as_string

from qns.errors import QnsError
from qns.soap.envelope import ADDRESSING, BODY_START, END, MAX_MESSAGE_ID, START
from qns.soap.hardening import Bounds
from qns.soap.operations import Message
from qns.soap.shapes import NAMESPACE, Field, Leaf, Occurs, Shape

Scan = Callable[[str, int], tuple[Any, int]]
"""What stands from a place on, and the place behind it."""

_MOST_NESTED: Final = 12
"""Of a shape in itself; who sends more waits for the tree."""

# Nothing that is escaped, and no control characters.
_TEXT = r"[^<>&\x00-\x1f\x7f-\x9f]"
_HEAD = re.compile(
    re.escape(START)
    + rf'(?:<soap:Header><wsa:MessageID xmlns:wsa="{re.escape(ADDRESSING)}">'
    + rf"({_TEXT}{{0,{MAX_MESSAGE_ID}}}+)</wsa:MessageID></soap:Header>)?"
    + re.escape(BODY_START)
    + rf'<([A-Za-z]++) xmlns="{re.escape(NAMESPACE)}">'
)


class Plain(NamedTuple):
    message: Message
    value: Any
    message_id: str


def read_plain(body: bytes, bounds: Bounds, messages: Mapping[str, Message]) -> Plain | None:
    """What the envelope holds if it is plain; `messages` are those expected, by their names."""
    if len(body) > bounds.bytes or body.count(b"<") > 2 * bounds.elements:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    head = _HEAD.match(text)
    message = None if head is None else messages.get(head[2])
    if head is None or message is None:
        return None
    if "\ufffe" in text or "\uffff" in text:  # no characters of XML
        return None
    scan, end = _scan_of(message)
    try:
        value, at = scan(text, head.end())
    except (_NotPlain, ValueError, QnsError):
        return None
    if len(text) != at + len(end) or not text.endswith(end):
        return None
    return Plain(message, value, (head[1] or "").strip())


class _NotPlain(Exception):
    """The text goes on otherwise than we would write it."""


@cache
def _scan_of(message: Message) -> tuple[Scan, str]:
    return _scan_of_shape(message.shape, _MOST_NESTED), f"{message.closing}{END}"


def _scan_of_shape(shape: Shape, nested: int) -> Scan:
    """A function of its own for each shape: a loop over its fields would cost half as much again.

    For a shape with two leaves and a repeated element it reads:

        def scan(text, at):
            found = match0(text, at)
            if found is None: raise NotPlain
            at = found.end()
            value0, value1, = found.groups()
            value2, at = scan2(text, at)
            return make(value0, read1(value1), value2), at
    """
    source = _Source(shape)
    for field in shape.fields:
        if isinstance(field.kind, Leaf):
            if not field.is_reserved:  # never written, and so not read here
                source.add_leaf(field, field.kind)
        elif isinstance(field.kind, Shape):
            source.add_element(field, field.kind, _scan_of_shape(field.kind, nested))
        elif nested:
            source.add_element(field, shape, _scan_of_shape(shape, nested - 1))
        else:
            source.values.append(repr(field.default))
    return source.compiled()


class _Source:
    def __init__(self, shape: Shape) -> None:
        self.names: dict[str, Any] = {"make": shape.make, "NotPlain": _NotPlain}
        self.lines = ["def scan(text, at):"]
        self.values: list[str] = []
        self.pattern = ""
        """Of the leaves that follow each other and are not in a line yet."""
        self.groups: list[str] = []

    def add_leaf(self, field: Field, leaf: Leaf) -> None:
        pattern, read = _leaf(field, leaf)
        self.pattern += pattern
        at = len(self.values)
        self.groups.append(f"value{at}")
        self.names[f"read{at}"] = read
        self.values.append(f"value{at}" if read is str else f"read{at}(value{at})")

    def add_element(self, field: Field, shape: Shape, inner: Scan) -> None:
        at = len(self.values)
        self._close_run()
        self.lines.append(f"value{at}, at = scan{at}(text, at)")
        self.names[f"scan{at}"] = _element(field, shape, inner)
        self.values.append(f"value{at}")

    def compiled(self) -> Scan:
        self._close_run()
        self.lines.append(f"return make({', '.join(self.values)}), at")
        exec("\n    ".join(self.lines), self.names)  # noqa: S102  # of our own tables only
        scan: Scan = self.names["scan"]
        return scan

    def _close_run(self) -> None:
        if not self.pattern:
            return
        match = f"match{len(self.names)}"
        self.names[match] = re.compile(self.pattern).match
        self.lines += [
            f"found = {match}(text, at)",
            "if found is None: raise NotPlain",
            "at = found.end()",
        ]
        if self.groups:
            self.lines.append(f"{', '.join(self.groups)}, = found.groups()")
        self.pattern, self.groups = "", []


def _element(field: Field, shape: Shape, inner: Scan) -> Scan:
    """An element with children, as often as it may be there."""
    opening, closing = f"<{field.name}>", f"</{field.name}>"
    occurs, absent = field.occurs, field.default
    match, made = _Bare(field, shape).compiled()

    def scan(text: str, at: int) -> tuple[Any, int]:
        found = []
        while text.startswith(opening, at):
            bare = match(text, at)
            if bare is not None:
                found.append(made(bare))
                at = bare.end()
                continue
            value, at = inner(text, at + len(opening))
            if not text.startswith(closing, at):
                raise _NotPlain
            at += len(closing)
            found.append(value)
        if occurs is Occurs.MANY:
            return tuple(found), at
        if len(found) == 1:
            return found[0], at
        if found or occurs is Occurs.ONCE:
            raise _NotPlain
        return absent, at

    return scan


class _Bare:
    """One pattern for a whole element without any of those children that may be absent.

    Nearly all notifications are like that, and this reads them in half the time.
    """

    def __init__(self, field: Field, shape: Shape) -> None:
        self.names: dict[str, Any] = {}
        self.pattern = ""
        self.groups = 0
        self.value = self._inside(field, shape)

    def compiled(self) -> tuple[Callable[..., re.Match[str] | None], Callable[..., Any]]:
        groups = "".join(f"value{at}, " for at in range(self.groups))
        lines = ["def made(found):", f"return {self.value}"]
        if groups:
            lines.insert(1, f"{groups}= found.groups()")
        exec("\n    ".join(lines), self.names)  # noqa: S102  # of our own tables only
        return re.compile(self.pattern).match, self.names["made"]

    def _inside(self, field: Field, shape: Shape) -> str:
        """The expression for an element's value, once its pattern is added."""
        self.pattern += f"<{field.name}>"
        values = [self._value(each) for each in shape.fields if not each.is_reserved]
        self.pattern += f"</{field.name}>"
        return f"{self._named('make', shape.make)}({', '.join(values)})"

    def _value(self, field: Field) -> str:
        if isinstance(field.kind, Leaf):
            pattern, read = _leaf(field, field.kind)
            self.pattern += pattern
            value = f"value{self.groups}"
            self.groups += 1
            return value if read is str else f"{self._named('read', read)}({value})"
        if field.occurs is Occurs.ONCE and isinstance(field.kind, Shape):
            return self._inside(field, field.kind)
        return self._named("absent", field.default)

    def _named(self, kind: str, value: object) -> str:
        name = f"{kind}{len(self.names)}"
        self.names[name] = value
        return name


# -- leaves -----------------------------------------------------------------------------------


def _leaf(field: Field, leaf: Leaf) -> tuple[str, Callable[[Any], Any]]:
    """The pattern of its element, with one group, and what turns that group into the value."""
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
    """Of elements with this name, one behind the other."""
    opening, closing = f"<{name}>", f"</{name}>"
    between = f"{closing}{opening}"

    def each(run: str) -> tuple[Any, ...]:
        if not run:
            return ()
        return tuple(map(read, run[len(opening) : -len(closing)].split(between)))

    return each


def _bytes(text: str) -> bytes:
    """Only what the writer writes: of the last characters some bits could be anything."""
    data = b64decode(text, validate=True)
    if b64encode_as_string(data) != text:
        raise _NotPlain
    return data


_SECONDS = r"INF|[0-9]{1,15}\.[0-9]{1,20}"
_LEAVES: Final[dict[Leaf, tuple[str, Callable[[str], Any]]]] = {
    Leaf.TEXT: (f"{_TEXT}*+", str),
    Leaf.PROSE: (f"{_TEXT}*+", str),
    Leaf.NUMBER: ("[0-9]{1,18}+", int),
    Leaf.FLAG: ("true|false", lambda text: text == "true"),
    Leaf.SECONDS: (_SECONDS, float),
    Leaf.WAIT: (r"[1-5]?[0-9]\.[0-9]{1,20}|60\.0", float),
    Leaf.BYTES: ("[^<]*+", _bytes),
}
