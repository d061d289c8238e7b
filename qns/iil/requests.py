"""What users, Quality Factories and operators of one organisation ask of their peer."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from qns.cbr.event import Event


@dataclass(frozen=True, slots=True)
class Subscribe:
    owner: str
    text: str
    """In any spelling of the language (semantics §3)."""
    id: str = ""
    """Chosen by the caller, so that a repeated call is recognised; else the peer gives one."""
    group: str = ""
    """Delivery group: each event goes to one of its members."""
    lifetime_s: float = inf


@dataclass(frozen=True, slots=True)
class Subscribed:
    id: str
    pending: tuple[str, ...]
    """The producers at which it is not stable yet."""
    expires_at: float


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    owner: str
    id: str


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    id: str
    dropped: int
    """Deliveries that nobody read."""


@dataclass(frozen=True, slots=True)
class Renew:
    owner: str
    id: str
    lifetime_s: float = inf


@dataclass(frozen=True, slots=True)
class Pause:
    owner: str
    id: str


@dataclass(frozen=True, slots=True)
class Resume:
    owner: str
    id: str


@dataclass(frozen=True, slots=True)
class ListSubscriptions:
    owner: str


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    id: str
    text: str
    group: str
    paused: bool
    expires_at: float
    pending: tuple[str, ...]
    """The producers at which it is not stable yet."""
    delivered: int
    dropped: int
    waiting: int
    """Deliveries not acknowledged, and events that wait for it."""


@dataclass(frozen=True, slots=True)
class Subscriptions:
    subscriptions: tuple[SubscriptionInfo, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    event: Event


@dataclass(frozen=True, slots=True)
class Published:
    id: str
    sent_to: tuple[str, ...]
    """The organisations that will get it, whichever way."""
    again: bool = False
    """It had been published before; nothing was done."""


@dataclass(frozen=True, slots=True)
class Read:
    """Deliveries of a subscription beyond a number; does not change anything."""

    owner: str
    id: str
    after: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Delivery:
    number: int
    source: str
    event: str
    xml: bytes


@dataclass(frozen=True, slots=True)
class Deliveries:
    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True, slots=True)
class AcknowledgeDeliveries:
    owner: str
    id: str
    upto: int


@dataclass(frozen=True, slots=True)
class InstallDocument:
    """A newer version of the federation document, from the operator."""

    xml: bytes


@dataclass(frozen=True, slots=True)
class RedeliverDeadLetter:
    number: int


@dataclass(frozen=True, slots=True)
class Ok:
    pass


Request = (
    Subscribe
    | Unsubscribe
    | Renew
    | Pause
    | Resume
    | ListSubscriptions
    | Publish
    | Read
    | AcknowledgeDeliveries
    | InstallDocument
    | RedeliverDeadLetter
)
Answer = Subscribed | Unsubscribed | Subscriptions | Published | Deliveries | Ok
