"""Ledger entries: requests of users with their answers, what users read, and what was undone."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from qns.iil.requests import Request, Subscribed

Key = tuple[str, str]
"""Organisation and id, of an event or of a subscription."""


@dataclass(slots=True, eq=False)
class Call:
    """A request of a user about one event or subscription: repeated until it is answered."""

    org: str
    request: Request
    asked_at: float
    answered_at: float = inf
    """When the first answer that granted it left the peer; infinity if none did."""
    answer: object = None
    refused_at: float = inf
    """When an answer that refused it left the peer; infinity if none did."""

    @property
    def is_granted(self) -> bool:
        return self.answered_at < inf

    @property
    def ended_at(self) -> float:
        """When the peer granted it, also if it had refused an earlier attempt; otherwise when it
        refused it."""
        return self.answered_at if self.is_granted else self.refused_at


@dataclass(slots=True, eq=False)
class Publication(Call):
    fields: dict[str, Any] = field(default_factory=dict)
    """The event as a JSON object."""
    available_s: float = 0.0


class Restore(NamedTuple):
    """A host was put back to the state of an earlier time."""

    at: float
    since: float


class Read(NamedTuple):
    """A delivery that a user read."""

    asked_at: float
    at: float
    number: int
    source: str
    event: str


class DeclaredLoss(NamedTuple):
    """Deliveries that the peer declared to their reader as dropped."""

    at: float
    first: int
    last: int


def pending_of(call: Call) -> tuple[str, ...]:
    """Returns the producers at which a subscription was not stable when it was answered."""
    return call.answer.pending if isinstance(call.answer, Subscribed) else ()
