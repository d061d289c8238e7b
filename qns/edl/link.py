"""Link: the connection to one other peer, with everything that waits to be sent to it.

At most one request is under way. What collects meanwhile goes into the next request. A request
without an answer is repeated after a pause that doubles up to a limit. `LINK` is the state machine.

Parcels that the other peer does not take for now have a pause of their own once they were refused,
so that they do not delay what else the link has to send.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, islice
from math import inf
from typing import NamedTuple

from qns.edl.messages import Entry, Request, Skip, Standing
from qns.peer.backoff import Backoff
from qns.peer.event_log import EventKey
from qns.peer.state_machine import TableKey


class LinkState(TableKey):
    IDLE = "idle"
    ASKING = "asking"
    """A request is under way."""
    RESTING = "resting"
    """The last request failed, and the pause before the next one is not over."""


class LinkEvent(TableKey):
    SENT = "sent"
    ANSWERED = "answered"
    UNANSWERED = "unanswered"
    REFUSED = "refused"
    """The other peer asked for a pause: back-pressure."""
    RESTED = "rested"


LINK: dict[tuple[LinkState, LinkEvent], LinkState] = {
    (LinkState.IDLE, LinkEvent.SENT): LinkState.ASKING,
    (LinkState.ASKING, LinkEvent.ANSWERED): LinkState.IDLE,
    (LinkState.ASKING, LinkEvent.UNANSWERED): LinkState.RESTING,
    (LinkState.ASKING, LinkEvent.REFUSED): LinkState.RESTING,
    (LinkState.RESTING, LinkEvent.RESTED): LinkState.IDLE,
}


ParcelKey = tuple[str, str, int, int, int]
"""(receiver, source, its incarnation, epoch, number)"""


class Carried(NamedTuple):
    """The standing of a consumer, on its way to the producer through other peers."""

    standing: Standing
    path: tuple[str, ...] = ()
    """The path that it has taken."""
    proof: bytes = b""
    seal: bytes = b""


@dataclass(slots=True, eq=False)
class Parcel:
    """An event with the receiver's entry, on the link to the receiver or to a relay."""

    event: EventKey
    producer_incarnation: int
    entry: Entry
    path: tuple[str, ...]
    custody: int | None
    """The id of the custody row; None if another peer or a stream of this one is responsible."""
    seal: bytes = b""
    """The seal of the notification with which it came; what this peer publishes has none yet."""
    was_refused: bool = False
    """True if the receiver did not take it for now when it was last sent."""

    @property
    def key(self) -> ParcelKey:
        entry = self.entry
        return entry.receiver, self.event[0], self.producer_incarnation, entry.epoch, entry.number


@dataclass(slots=True, eq=False)
class Link:
    me: str
    other: str
    backoff: Backoff
    state: LinkState = LinkState.IDLE
    request: Request | None = None
    """The request under way."""
    parcels: dict[ParcelKey, Parcel] = field(default_factory=dict)
    refused_parcels: dict[ParcelKey, Parcel] = field(default_factory=dict)
    """Parcels that the other peer did not take for now, the one that waits longest first."""
    refused_parcels_at: float | None = None
    """When the first of them are sent again."""
    parcel_retries: int = 0
    """How often that was done since one of them was taken."""
    skips: dict[Skip, None] = field(default_factory=dict)
    """Skips of other producers, which this peer relays."""
    standings: dict[tuple[str, str], Carried] = field(default_factory=dict)
    """(producer, consumer) -> the consumer's standing, which the other peer is to pass on."""
    standings_at: float | None = None
    """When the standings are sent."""
    sent: list[ParcelKey] = field(default_factory=list)
    """The parcels in the request under way."""
    failures: int = 0
    """Failed requests since the last answer."""
    problem: str = ""
    """Why the last request failed; empty after an answer."""
    rest_until: float = 0.0
    is_pause_asked: bool = False
    """True if the other peer has said how long the pause is."""
    wants_hello: bool = False
    wants_document: bool = False
    wants_gossip: bool = False
    wants_offer: bool = False
    """True if the other peer is to be given the federation document."""
    refused_offer: tuple[int, int] = (0, 0)
    """The version of the federation document that the other peer refused to take, and the version
    that it had then."""
    refusal: str = ""
    """Why it has refused that version."""
    claimed_document: int = 0
    """The version of the federation document that the other peer claims to have."""
    useless_document: int = 0
    """A claimed version for which the other peer did not send a usable document."""
    useless_reason: str = ""
    """Why that document is not put in force here."""
    acknowledge_at: float | None = None
    pull_at: float | None = None
    pulls: int = 0
    """Attempts to close the gap that is open."""
    change_refusal: str = ""
    """Why the other peer refuses the view for good; empty if it does not."""
    change_refusals: int = 0
    change_at: float | None = None
    """When the view is sent again after a refusal. Meanwhile other requests are sent."""
    send_alls: int = 0
    """How often in a row the other peer has answered a ChangeSub with SendAll."""

    def asks(self, request: Request) -> None:
        self._change(LinkEvent.SENT)
        self.request = request

    def answered(self) -> None:
        self._finish(LinkEvent.ANSWERED)
        self.failures = 0
        self.problem = ""

    def unanswered(self, now: float, problem: str = "") -> None:
        self._finish(LinkEvent.UNANSWERED)
        self.is_pause_asked = False
        self.problem = problem or "there was no answer"
        self._rest(now)

    def refused(self, now: float, problem: str, pause_s: float = 0.0) -> None:
        """The other peer asks for a pause; `pause_s` is how long, if it says so."""
        self._finish(LinkEvent.REFUSED)
        self.problem = problem
        self._rest(now)
        self.is_pause_asked = pause_s > 0
        if pause_s > 0:
            self.rest_until = now + min(pause_s, self.backoff.longest_s)

    def change_refused(self, now: float, reason: str) -> None:
        """The other peer has refused the view for good: it is sent again after a pause."""
        self.change_refusal = reason
        self.change_refusals += 1
        self.change_at = now + self.backoff.pause_s(self.change_refusals)

    def change_accepted(self) -> None:
        self.change_refusal, self.change_refusals, self.change_at = "", 0, None

    def received(self, now: float) -> None:
        """The other peer sent something: it may be reachable, so the pause is cut short."""
        if self.state is LinkState.RESTING and not self.is_pause_asked:
            self.rest_until = min(self.rest_until, now + self.backoff.first_s)

    def end_rest(self, now: float) -> None:
        """Ends the pause if its time is over."""
        if self.state is LinkState.RESTING and self.rest_until <= now:
            self._change(LinkEvent.RESTED)

    def next_due(self) -> float:
        """Returns when this link has work to do even if nothing arrives."""
        if self.state is LinkState.RESTING:
            return self.rest_until
        if self.state is LinkState.ASKING:
            return inf
        due = inf if self.acknowledge_at is None else self.acknowledge_at
        if self.pull_at is not None:
            due = min(due, self.pull_at)
        if self.change_at is not None:
            due = min(due, self.change_at)
        if self.refused_parcels_at is not None:
            due = min(due, self.refused_parcels_at)
        return due if self.standings_at is None else min(due, self.standings_at)

    def all_parcels(self) -> Iterator[Parcel]:
        """Yields every parcel that is not delivered yet."""
        return chain(self.parcels.values(), self.refused_parcels.values())

    def put_aside(self, now: float, parcel: Parcel) -> None:
        """Makes a parcel wait that the other peer did not take for now."""
        parcel.was_refused = True
        self.refused_parcels[parcel.key] = parcel
        if self.refused_parcels_at is None:
            self.refused_parcels_at = now + self._pause_s(self.parcel_retries + 1)

    def retry_refused(self, now: float, most: int) -> None:
        """Makes at most this many parcels that were refused due again, if their pause is over."""
        if self.refused_parcels_at is None or self.refused_parcels_at > now:
            return
        for key in list(islice(self.refused_parcels, most)):
            self.parcels[key] = self.refused_parcels.pop(key)
        self.parcel_retries += 1
        pause_s = self._pause_s(self.parcel_retries + 1)
        self.refused_parcels_at = now + pause_s if self.refused_parcels else None

    def refused_parcel_taken(self, now: float) -> None:
        """The other peer took a parcel that it had refused: it may take the others too."""
        self.parcel_retries = 0
        if self.refused_parcels:
            self.refused_parcels_at = now

    def drop_parcels(self) -> None:
        self.parcels.clear()
        self.refused_parcels.clear()
        self.refused_parcels_at, self.parcel_retries = None, 0

    def add_standing(self, producer: str, consumer: str, carried: Carried, at: float) -> None:
        """Makes a standing due that the other peer is to pass on."""
        self.standings[producer, consumer] = carried
        self.standings_at = at if self.standings_at is None else min(at, self.standings_at)

    def pop_standing(self) -> tuple[tuple[str, str], Carried]:
        """Removes and returns a standing."""
        found = self.standings.popitem()
        if not self.standings:
            self.standings_at = None
        return found

    def _change(self, event: LinkEvent) -> None:
        self.state = LINK[self.state, event]

    def _finish(self, event: LinkEvent) -> None:
        self._change(event)
        self.request = None
        self.sent = []

    def _rest(self, now: float) -> None:
        self.failures += 1
        self.rest_until = now + self._pause_s(self.failures)

    def _pause_s(self, failures: int) -> float:
        # The jitter differs from link to link, so that retries of many peers spread.
        digest = sha256(f"{self.me} {self.other} {failures}".encode()).digest()
        return self.backoff.pause_s(failures, digest[0] / 256)
