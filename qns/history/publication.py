"""Publication: one `pub` record, and which subscriptions it matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from qns.errors import DocumentError, show
from qns.history.meaning import Meaning, PlainEvent


@dataclass(slots=True, eq=False)
class Publication:
    number: int
    """Of its record: its place in publication order, too."""
    t: float
    source: str
    id: str
    joined: int
    event: PlainEvent
    available_s: float
    """Δ of semantics §8."""
    is_owed: bool
    """False: published by an organisation that was no member then."""
    is_lost: bool = False
    """True: a restore of its producer has undone it."""
    withdrawn: float = inf
    """The record with which its producer ceased to host its class: late subscribers end there."""
    _answers: dict[Meaning, bool] = field(default_factory=dict)

    def is_available(self, number: int, t: float) -> bool:
        """Whether a subscriber who comes with this record, after it, is in time (semantics §8)."""
        return bool(self.available_s and t <= self.t + self.available_s and number < self.withdrawn)

    def matches(self, meaning: Meaning) -> bool:
        answer = self._answers.get(meaning)
        if answer is None:
            answer = self._answers[meaning] = meaning.matches(self.event)
        return answer


Publications = Mapping[tuple[str, str], Sequence[Publication]]
"""(source, id) -> its publications: more than one if a restore undid the first."""


def availability_s(event: Mapping[str, Any]) -> float:
    """Δ as an event's JSON tells it: seconds, "INF", or left out for 0."""
    available = event.get("available", 0)
    if available == "INF":
        return inf
    if type(available) not in (int, float) or not 0 <= available < inf:
        raise DocumentError(f"'available' is {show(available)}", remedy="seconds from 0 on, or INF")
    return float(available)
