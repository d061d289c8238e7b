"""Publication: an event with the record of its publication, and which subscriptions it matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from qns.errors import DocumentError, show
from qns.history.meaning import Meaning, PlainEvent

_ROUNDING_S = 1e-6


@dataclass(slots=True, eq=False)
class Publication:
    """One `pub` record."""

    number: int
    """The number of its record, which is also its place in publication order."""
    t: float
    source: str
    id: str
    incarnation: int
    """The producer's incarnation."""
    event: PlainEvent
    available_s: float
    """The availability Δ of semantics §8."""
    is_owed: bool
    """False if the producer was not a member when it published."""
    is_lost: bool = False
    """True if a restore of its producer has undone it."""
    withdrawn: float = inf
    """The record with which its producer ceased to host the event's class. Later subscribers do
    not get the event."""
    _matches: dict[Meaning, bool] = field(default_factory=dict)

    def is_available(self, number: int, t: float) -> bool:
        """True if a subscriber gets the event that begins later, with this record at time `t`.

        At the very end of its availability both answers are right: clocks are rounded.
        """
        ends = self.t + self.available_s - _ROUNDING_S
        return bool(self.available_s and t <= ends and number < self.withdrawn)

    def matches(self, meaning: Meaning) -> bool:
        """Returns `meaning.matches` of its event, evaluated once."""
        found = self._matches.get(meaning)
        if found is None:
            found = self._matches[meaning] = meaning.matches(self.event)
        return found


Publications = Mapping[tuple[str, str], Sequence[Publication]]
"""Source, id -> its publications. There are several if a restore undid earlier ones."""


def availability_s(event: Mapping[str, Any]) -> float:
    """Returns the availability Δ of an event in JSON: seconds, "INF" for ever, 0 if left out."""
    available = event.get("available", 0)
    if available == "INF":
        return inf
    if type(available) not in (int, float) or not 0 <= available < inf:
        raise DocumentError(f"'available' is {show(available)}", remedy="seconds from 0 on, or INF")
    return float(available)
