"""Link: the way to one other peer, with what has to be said to it.

One request is under way at a time; what gathers meanwhile goes together in the next. A request
without an answer is repeated after a pause that doubles up to a limit. LINK is the whole life of a
link, as data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from math import inf

from qns.edl.messages import Entry, Request
from qns.event_log import EventKey


class State(Enum):
    IDLE = "idle"
    ASKING = "asking"
    RESTING = "resting"


class Happening(Enum):
    SENT = "sent"
    ANSWERED = "answered"
    UNANSWERED = "unanswered"
    REFUSED = "refused"
    """It asked to be left alone for a while: back-pressure."""
    RESTED = "rested"


LINK: dict[tuple[State, Happening], State] = {
    (State.IDLE, Happening.SENT): State.ASKING,
    (State.ASKING, Happening.ANSWERED): State.IDLE,
    (State.ASKING, Happening.UNANSWERED): State.RESTING,
    (State.ASKING, Happening.REFUSED): State.RESTING,
    (State.RESTING, Happening.RESTED): State.IDLE,
}


ParcelKey = tuple[str, int, int, int]
"""(source, its incarnation, epoch, number): the receiver is the link's other end."""


@dataclass(slots=True, eq=False)
class Parcel:
    """An event that has to be brought to the receiver, with the receiver's entry."""

    event: EventKey
    joined: int
    """The producer's incarnation."""
    entry: Entry
    path: tuple[str, ...]
    custody: int | None
    """The row of the promise, if it was another producer's event."""

    @property
    def key(self) -> ParcelKey:
        return self.event[0], self.joined, self.entry.epoch, self.entry.number


@dataclass(slots=True, eq=False)
class Link:
    me: str
    other: str
    first_pause_s: float
    longest_pause_s: float
    state: State = State.IDLE
    request: Request | None = None
    parcels: dict[ParcelKey, Parcel] = field(default_factory=dict)
    sent: list[ParcelKey] = field(default_factory=list)
    """The parcels in the request under way."""
    failures: int = 0
    rest_until: float = 0.0
    wants_hello: bool = False
    wants_document: bool = False
    wants_gossip: bool = False
    claimed_document: int = 0
    """The version that the other has, as it says."""
    useless_document: int = 0
    """The other claims to have this version, but what it gave was no use."""
    acknowledge_at: float | None = None
    pull_at: float | None = None
    pulls: int = 0

    def happened(self, happening: Happening) -> None:
        self.state = LINK[self.state, happening]

    def asks(self, request: Request) -> None:
        self.happened(Happening.SENT)
        self.request = request

    def answered(self) -> None:
        self._over(Happening.ANSWERED)
        self.failures = 0

    def unanswered(self, now: float) -> None:
        self._over(Happening.UNANSWERED)
        self._rest(now)

    def refused(self, now: float) -> None:
        self._over(Happening.REFUSED)
        self._rest(now)

    def _over(self, happening: Happening) -> None:
        self.happened(happening)
        self.request = None
        self.sent = []

    def _rest(self, now: float) -> None:
        self.failures += 1
        self.rest_until = now + self._pause_s()

    def heard(self, now: float) -> None:
        """The other spoke by itself: it may be reachable again."""
        if self.state is State.RESTING:
            self.rest_until = min(self.rest_until, now + self.first_pause_s)

    def rested(self, now: float) -> None:
        if self.state is State.RESTING and self.rest_until <= now:
            self.happened(Happening.RESTED)

    def _pause_s(self) -> float:
        """Doubles up to a limit; the jitter differs from link to link, so herds disperse."""
        pause = min(self.longest_pause_s, self.first_pause_s * 2.0 ** min(self.failures - 1, 20))
        jitter = sha256(f"{self.me} {self.other} {self.failures}".encode()).digest()[0] / 256
        return pause * (0.5 + 0.5 * jitter)

    def deadline(self) -> float:
        """When there is something to do here, if nothing comes in before."""
        if self.state is State.RESTING:
            return self.rest_until
        if self.state is State.ASKING:
            return inf
        acknowledge_at = inf if self.acknowledge_at is None else self.acknowledge_at
        return min(acknowledge_at, inf if self.pull_at is None else self.pull_at)
