"""What the tables of the contract are made of: leaves, fields, shapes and operations.

The contract is data (`shapes_peer.py`, `shapes_local.py`). The WSDL, the reader and the writer are
all made from it, so that they cannot tell different stories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from operator import attrgetter
from typing import Any, Final

NAMESPACE: Final = "urn:qns:peer:1"
LARGEST: Final = 2**63 - 1
"""Of the whole numbers on the wire: what a database and most languages can hold."""
LONGEST_WAIT_S: Final = 60.0


class Port(Enum):
    PEER = "Peer"
    LOCAL = "Local"


class Leaf(Enum):
    """What stands in an element without children."""

    TEXT = "text"
    """A name, an id, a text that means something: every character counts."""
    PROSE = "prose"
    """Words for people: a character that XML cannot carry is replaced, a long text is cut."""
    NUMBER = "number"
    FLAG = "flag"
    SECONDS = "seconds"
    """From 0 to INF, which is for ever."""
    WAIT = "wait"
    """Seconds that somebody is made to wait: bounded."""
    BYTES = "bytes"


class Occurs(Enum):
    ONCE = "once"
    PERHAPS = "perhaps"
    MANY = "many"


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A complex type, and the message object that it stands for."""

    name: str
    documentation: str
    fields: tuple[Field, ...]
    make: Callable[..., Any]
    """The object, from the values of the fields that are not reserved, in their order."""
    take: Callable[[Any], tuple[Any, ...]]
    """The other way round."""


class Itself(Enum):
    """The kind of a field that holds more of its own shape."""

    ITSELF = "itself"


Kind = Leaf | Shape | Itself


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    name: str
    """On the wire."""
    kind: Kind
    documentation: str
    occurs: Occurs = Occurs.ONCE
    default: Any = None
    """What the absence of an optional element means."""
    is_reserved: bool = False
    """For a later version of the peer: accepted, not looked at and never written."""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    port: Port
    name: str
    documentation: str
    request: Shape
    reply: Shape


def once(name: str, kind: Kind, documentation: str) -> Field:
    return Field(name, kind, documentation)


def perhaps(name: str, kind: Kind, documentation: str, default: Any = None) -> Field:
    return Field(name, kind, documentation, Occurs.PERHAPS, default)


def many(name: str, kind: Kind, documentation: str) -> Field:
    return Field(name, kind, documentation, Occurs.MANY, ())


def reserved(name: str, documentation: str) -> Field:
    return Field(name, Leaf.BYTES, documentation, Occurs.PERHAPS, is_reserved=True)


def record(name: str, documentation: str, kind: type[Any], *wire: Field) -> Shape:
    """The shape of a dataclass or named tuple whose fields stand in the order of the wire."""
    named = getattr(kind, "_fields", None) or tuple(field.name for field in fields(kind))
    assert len(named) == sum(not field.is_reserved for field in wire), name
    if hasattr(kind, "_fields"):
        return Shape(name, documentation, wire, kind, tuple)
    return Shape(name, documentation, wire, kind, attributes(*named))


def attributes(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    """Takes an object apart; always a tuple, also for one attribute or none."""
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda value: (get(value),)
