"""Terms: a subscription as it was written, before names are resolved in the schema.

Each of the three spellings (thesis notation, readable, XML) becomes a `Statement`. `normal_form.py`
turns a statement into a subscription and `description.py` a subscription into a statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

# These limits together ensure that a printed subscription can be parsed: printing writes at most
# two terms for one of the normal form, and at most twelve characters for one of a value.
MAX_TEXT_LENGTH: Final = 1_048_576
"""Limits the characters of one subscription in a textual spelling."""
MAX_TERMS: Final = 8_192
"""Limits the constraints plus members of sets, as written."""
MAX_NORMAL_TERMS: Final = 4_096
"""Limits the terms when the constraints on each attribute are one value set."""
MAX_VALUE_CHARACTERS: Final = 40_000
"""Limits the characters of all strings and sources together."""
MAX_NAME_CHARACTERS: Final = 200_000
"""Limits the characters of the names of attributes, as they are printed."""


class Operator(Enum):
    """An operator. Its value is its name in XML."""

    EQUALS = "equals"
    DIFFERS = "differs"
    BELOW = "below"
    AT_MOST = "atMost"
    ABOVE = "above"
    AT_LEAST = "atLeast"
    BETWEEN = "between"
    IN = "in"
    STARTS_WITH = "startsWith"
    ENDS_WITH = "endsWith"
    CONTAINS = "contains"
    EXISTS = "exists"
    FALLS_BELOW = "fallsBelow"
    RISES_ABOVE = "risesAbove"
    CHANGES_BY = "changesBy"


SIGNS: Final = {
    Operator.EQUALS: "=",
    Operator.DIFFERS: "!=",
    Operator.BELOW: "<",
    Operator.AT_MOST: "<=",
    Operator.ABOVE: ">",
    Operator.AT_LEAST: ">=",
    Operator.BETWEEN: "between",
    Operator.IN: "in",
    Operator.STARTS_WITH: "starts with",
    Operator.ENDS_WITH: "ends with",
    Operator.CONTAINS: "contains",
    Operator.EXISTS: "exists",
    Operator.FALLS_BELOW: "falls below",
    Operator.RISES_ABOVE: "rises above",
    Operator.CHANGES_BY: "changes by",
}
"""Maps each operator to its sign in the readable spelling."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a text, counted from 1. XML has no columns."""

    line: int = 1
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A value as written: `quoted` or `bare` in the textual spellings, `raw` in XML."""

    text: str
    form: Literal["quoted", "bare", "raw"] = "raw"
    mark: Position = Position()


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a set: one value (EQUALS), or a range (BETWEEN, AT_MOST, BELOW, …)."""

    operator: Operator
    values: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """One constraint: `p op v`, or `p.qd op t`.

    `values` holds two for BETWEEN, none for EXISTS and IN, one otherwise; `members` is for IN.
    `previous` makes it a constraint on the previous value of a quality dimension (`was`).
    `part` is the part of the thesis notation in which it was written, if that is known.
    """

    attribute: str
    operator: Operator
    values: tuple[Written, ...] = ()
    members: tuple[Member, ...] = ()
    previous: bool = False
    part: Literal["data", "quality"] | None = None
    mark: Position = Position()

    @property
    def size(self) -> int:
        return max(1, len(self.members))


@dataclass(frozen=True, slots=True)
class Statement:
    data_class: str
    only: bool = False
    sources: tuple[str, ...] | None = None
    terms: tuple[Term, ...] = ()
    class_mark: Position = Position()
    source_marks: tuple[Position, ...] = ()
    """One position for each source, or none if they are not known."""
