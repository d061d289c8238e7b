"""The types of the contract's tables: leaves, fields, shapes and operations.

The contract is data (`shapes_*.py`). The WSDL, the reader and the writer are
all built from it, so that they cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from operator import attrgetter
from typing import Any, Final

NAMESPACE: Final = "urn:qns:peer:1"
LARGEST: Final = 2**63 - 1
"""The largest whole number in a message: databases and most languages can hold it."""
LONGEST_WAIT_S: Final = 60.0
CONTRACT: Final = 2
"""The version of the contract. Clients of QNS 0.2.0 read version 1 and reject other elements."""


class Port(Enum):
    PEER = "Peer"
    LOCAL = "Local"


class Leaf(Enum):
    """The kinds of elements without children."""

    TEXT = "text"
    """A text for programs, such as a name or an id; every character is significant."""
    PROSE = "prose"
    """A text for people: a character that XML cannot carry is replaced, a long text is cut."""
    NUMBER = "number"
    FLAG = "flag"
    SECONDS = "seconds"
    """A number from 0 to INF, which means without end."""
    WAIT = "wait"
    """The seconds that a caller waits, at most `LONGEST_WAIT_S`."""
    MOMENT = "moment"
    """A dateTime with a zone; our writer uses UTC and whole microseconds."""
    BYTES = "bytes"


class Occurs(Enum):
    ONCE = "once"
    PERHAPS = "perhaps"
    MANY = "many"


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A complex type of the contract, and how it maps to a message object."""

    name: str
    documentation: str
    fields: tuple[Field, ...]
    make: Callable[..., Any]
    """Builds the object from the values of the fields that are not reserved, in their order."""
    take: Callable[[Any], tuple[Any, ...]]
    """Returns the values of these fields from an object; the inverse of `make`."""


class Itself(Enum):
    """The kind of a field that holds objects of the shape that it belongs to."""

    ITSELF = "itself"


Kind = Leaf | Shape | Itself


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    name: str
    """The name of the element."""
    kind: Kind
    documentation: str
    occurs: Occurs = Occurs.ONCE
    default: Any = None
    """The value if an optional element is absent."""
    is_reserved: bool = False
    """True if the element is for a later version: it is accepted, ignored and never written."""
    since: int = 1
    """The version of the contract that introduced the element; older callers do not get it."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    port: Port
    name: str
    documentation: str
    request: Shape
    reply: Shape


def once(name: str, kind: Kind, documentation: str) -> Field:
    return Field(name, kind, documentation)


def perhaps(
    name: str, kind: Kind, documentation: str, default: Any = None, *, since: int = 1
) -> Field:
    return Field(name, kind, documentation, Occurs.PERHAPS, default, since=since)


def many(name: str, kind: Kind, documentation: str, *, since: int = 1) -> Field:
    return Field(name, kind, documentation, Occurs.MANY, (), since=since)


def reserved(name: str, documentation: str) -> Field:
    return Field(name, Leaf.BYTES, documentation, Occurs.PERHAPS, is_reserved=True)


def record(
    name: str, documentation: str, kind: type[Any], *wire: Field, derived: tuple[str, ...] = ()
) -> Shape:
    """Returns the shape of a dataclass or named tuple whose fields have the order of `wire`.

    The last elements of `wire` may be `derived` from properties: they are written, not read.
    """
    named = getattr(kind, "_fields", None) or tuple(field.name for field in fields(kind))
    count = len(named)
    assert count + len(derived) == sum(not field.is_reserved for field in wire), name
    if derived:
        take = attributes(*named, *derived)
        return Shape(name, documentation, wire, lambda *values: kind(*values[:count]), take)
    if hasattr(kind, "_fields"):
        return Shape(name, documentation, wire, kind, tuple)
    return Shape(name, documentation, wire, kind, attributes(*named))


def attributes(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    """Returns a function that gives the attributes of an object, always as a tuple."""
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)
