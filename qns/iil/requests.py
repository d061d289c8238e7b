"""Requests: what users, Quality Factories and operators send to their peer, and the answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf

from qns.cbr.event import Event

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_S = (datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds() - 1


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Adds a subscription. The same request with the same id again changes nothing."""

    owner: str
    text: str
    """In any spelling of the language (semantics §3)."""
    id: str = ""
    """An id that the caller chooses makes the request repeatable; empty: the peer chooses one."""
    group: str = ""
    """The delivery group: each event goes to one of its members. Empty: none."""
    lifetime_s: float = inf


@dataclass(frozen=True, slots=True)
class Subscribed:
    id: str
    pending: tuple[str, ...]
    """The producers at which it is not stable yet."""
    expires_at: float
    """When it ends, in seconds since 1970; infinity: never."""
    warnings: tuple[str, ...] = ()
    """Why the subscription, or a part of it, may never match. A renewal has none."""

    @property
    def ends(self) -> datetime | None:
        """When it ends, in UTC. None: never."""
        return _moment(self.expires_at)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Ends a subscription. In a delivery group other members get its unread events."""

    owner: str
    id: str


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    id: str
    dropped: int
    """The number of unread events that were dropped."""


@dataclass(frozen=True, slots=True)
class Renew:
    """Replaces the lifetime of a subscription; the new one begins now."""

    owner: str
    id: str
    lifetime_s: float = inf


@dataclass(frozen=True, slots=True)
class Pause:
    """Queues the events of a subscription instead of delivering them."""

    owner: str
    id: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Ends a pause and delivers the queued events."""

    owner: str
    id: str


@dataclass(frozen=True, slots=True)
class ListSubscriptions:
    """Asks for the subscriptions of one owner."""

    owner: str


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    id: str
    text: str
    group: str
    paused: bool
    expires_at: float
    """When it ends, in seconds since 1970; infinity: never."""
    pending: tuple[str, ...]
    """The producers at which it is not stable yet."""
    delivered: int
    """The number of the last delivery."""
    dropped: int
    """The number of deliveries that a full queue has dropped."""
    waiting: int
    """The number of unacknowledged deliveries and queued events."""
    warnings: tuple[str, ...] = ()
    """Why the subscription, or a part of it, may never match, as things are now."""

    @property
    def ends(self) -> datetime | None:
        """When it ends, in UTC. None: never."""
        return _moment(self.expires_at)


@dataclass(frozen=True, slots=True)
class Subscriptions:
    subscriptions: tuple[SubscriptionInfo, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """Publishes an event. The same event again changes nothing."""

    event: Event


@dataclass(frozen=True, slots=True)
class Published:
    id: str
    sent_to: tuple[str, ...]
    """The organisations to which the event is sent, directly or through others."""
    again: bool = False
    """True if the event was published before; then nothing has changed."""


@dataclass(frozen=True, slots=True)
class PullDeliveries:
    """Asks for the deliveries of a subscription after a number; changes nothing.

    It is rejected with `DeliveriesDropped` if deliveries after that number were dropped, and with
    `CursorAhead` if the peer has no delivery of that number and series.
    """

    owner: str
    id: str
    after: int = 0
    limit: int = 100
    """The largest number of deliveries to return."""
    series: str = ""
    """The number series of the delivery `after`; empty if the caller does not know it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    number: int
    source: str
    event: str
    """The id of the event."""
    xml: bytes
    """The exact bytes that its producer wrote."""
    series: str = ""
    """The number series. With the number it names the delivery, also if the peer goes back."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The deliveries that a pull found, oldest first."""

    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True, slots=True)
class AcknowledgeDeliveries:
    """Removes the deliveries of a subscription up to a number.

    It is rejected with `CursorAhead` if the peer has no delivery of that number and series.
    """

    owner: str
    id: str
    upto: int
    series: str = ""
    """The number series of the delivery `upto`; empty if the caller does not know it."""


@dataclass(frozen=True, slots=True)
class InstallDocument:
    """Puts a newer version of the federation document in force."""

    xml: bytes


@dataclass(frozen=True, slots=True)
class RedeliverDeadLetter:
    """Sends a dead letter once more."""

    number: int


@dataclass(frozen=True, slots=True)
class DropDeadLetter:
    """Gives up a dead letter for good; the history records it as a declared loss."""

    number: int


@dataclass(frozen=True, slots=True)
class Ok:
    """Confirms a request that has no other answer."""


Request = (
    Subscribe
    | Unsubscribe
    | Renew
    | Pause
    | Resume
    | ListSubscriptions
    | Publish
    | PullDeliveries
    | AcknowledgeDeliveries
    | InstallDocument
    | RedeliverDeadLetter
    | DropDeadLetter
)
Answer = Subscribed | Unsubscribed | Subscriptions | Published | Deliveries | Ok


def _moment(seconds: float) -> datetime | None:
    """Returns a time since 1970 as a dateTime; None if it is later than the year 9999."""
    if seconds > _LONGEST_S:
        return None
    return _EPOCH + timedelta(seconds=seconds)
