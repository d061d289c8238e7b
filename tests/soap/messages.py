"""Hypothesis strategies for every message of the contract, built from its tables."""

from __future__ import annotations

from datetime import UTC
from functools import cache
from math import inf
from typing import Any

from hypothesis import strategies as st

from qns.errors import DocumentError
from qns.soap.operations import FAULTS, OPERATION_CODECS, Message
from qns.soap.shapes import LARGEST, Field, Leaf, Occurs, Shape

MESSAGES: dict[str, Message] = {
    message.name: message
    for codec in OPERATION_CODECS.values()
    for message in (codec.request, codec.reply)
} | {fault.name: fault for fault in FAULTS.values()}

_UNSENDABLE = [chr(code) for code in range(32) if chr(code) not in "\t\n\r"] + ["\ufffe", "\uffff"]
TEXTS = st.one_of(
    st.sampled_from(["", "INPS", " INAIL ", "a&b", "<x>", "]]>", "\r\n\t", "è€𝄞", "&amp;"]),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters=_UNSENDABLE), max_size=12),
)
NUMBERS = st.one_of(st.integers(0, 5), st.integers(0, LARGEST), st.just(LARGEST))
SECONDS = st.one_of(st.just(inf), st.just(0.0), st.floats(0, allow_nan=False, allow_infinity=False))

_LEAVES: dict[Leaf, st.SearchStrategy[Any]] = {
    Leaf.TEXT: TEXTS,
    Leaf.PROSE: TEXTS,
    Leaf.NUMBER: NUMBERS,
    Leaf.FLAG: st.booleans(),
    Leaf.SECONDS: SECONDS,
    Leaf.WAIT: st.floats(0, 60, allow_nan=False),
    Leaf.MOMENT: st.datetimes(timezones=st.just(UTC)),
    Leaf.BYTES: st.binary(max_size=40),
}


def messages(shape: Shape) -> st.SearchStrategy[Any]:
    """Returns a strategy for the objects of a shape."""
    return _objects(shape, 2)


@cache
def _objects(shape: Shape, depth: int) -> st.SearchStrategy[Any]:
    kept = [field for field in shape.fields if not field.is_reserved]
    parts = st.tuples(*(_values(shape, field, depth) for field in kept))
    return parts.map(lambda values: _made(shape, values)).filter(lambda made: made is not None)


def _made(shape: Shape, values: tuple[Any, ...]) -> Any:
    try:
        return shape.make(*values)
    except DocumentError:  # a reply to changeSub that contradicts itself
        return None


def _values(shape: Shape, field: Field, depth: int) -> st.SearchStrategy[Any]:
    if isinstance(field.kind, Leaf):
        one = _LEAVES[field.kind]
    elif isinstance(field.kind, Shape):
        one = _objects(field.kind, depth)
    elif depth:
        one = st.deferred(lambda: _objects(shape, depth - 1))
    else:
        one = st.nothing()
    if field.occurs is Occurs.ONCE:
        return one
    if field.occurs is Occurs.PERHAPS:
        return st.one_of(st.just(field.default), one)
    return st.just(()) if one.is_empty else st.lists(one, max_size=2).map(tuple)
