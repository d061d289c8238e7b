"""Messages: the requests and replies of peers, each in an envelope.

`Notify` and `ChangeSub` are the two operations of the thesis (5.4.4). The others repair the streams
after failures. Every request is idempotent.

Types that are made for every notification or every call are named tuples, which are faster to make
than dataclasses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


class Fence(NamedTuple):
    """After a restore of the producer, its epoch `epoch` begins at number `first`.

    An entry of an older epoch is valid only if its number is below `first`.
    """

    epoch: int
    first: int


ANY_MEMBER: Final = ""
"""Stands for the carriers of an entry that travels through relays. No name is empty."""


class Entry(NamedTuple):
    """A place in the stream of one receiver, with the subtree of further receivers."""

    receiver: str
    incarnation: int
    """The receiver's incarnation."""
    epoch: int
    number: int
    confirmed: int
    """The epoch up to which the receiver knows all fences; `fences` has the later ones."""
    fences: tuple[Fence, ...] = ()
    children: tuple[Entry, ...] = ()
    carriers: tuple[str, ...] = ()
    """The peers that may bring the entry besides its producer: those above it in the tree as it
    was built, or `ANY_MEMBER`."""
    proof: bytes = b""
    """Shows that the seal of the item covers this entry (`seals.py`); empty without a seal."""

    def alone(self) -> Entry:
        """Returns the entry without its subtree."""
        return self._replace(children=())

    def receivers(self) -> list[str]:
        """Returns the receivers of the whole subtree."""
        return [self.receiver, *(name for child in self.children for name in child.receivers())]


class Notification(NamedTuple):
    """One event on its way to one receiver, and through it to the receiver's subtree.

    If a peer gets an entry of which it is not the receiver, it relays the notification.
    """

    source: str
    producer_incarnation: int
    epoch: int
    sequence: int
    """With `producer_incarnation` and `epoch`: the event's place in publication order."""
    event: str
    """The id of the event."""
    xml: bytes
    """The event exactly as its producer wrote it."""
    remaining_s: float
    """The remaining time of its availability."""
    entry: Entry
    path: tuple[str, ...]
    """The peers that have carried it so far, producer first. It prevents loops."""
    seal: bytes = b""
    """The producer's certificate and signature (`seals.py`); empty if it does not seal."""


@dataclass(frozen=True, slots=True)
class Skip:
    """A producer's declaration that it cannot send these numbers any more."""

    source: str
    producer_incarnation: int
    first: Entry
    """The entry of the first number."""
    last: int
    reason: str
    seal: bytes = b""
    """As in a notification."""


Item = Notification | Skip


def entry_of(item: Item) -> Entry:
    """Returns the entry of the item; its receiver may differ from the peer that gets the item."""
    return item.entry if isinstance(item, Notification) else item.first


class ReachabilityRow(NamedTuple):
    """The organisations that one organisation reports as unreachable."""

    organisation: str
    epoch: int
    version: int
    unreachable: tuple[str, ...]


class Notify(NamedTuple):
    items: tuple[Item, ...]


class Notified(NamedTuple):
    """One outcome for each item, and the standing in the stream of the caller."""

    outcomes: tuple[Outcome, ...]
    standing: Standing | None


class Outcome(NamedTuple):
    taken: bool
    reason: str = ""
    """Why it was not taken."""
    permanent: bool = False
    """True if the receiver will never take it."""


class Standing(NamedTuple):
    """How far a consumer has come in the stream of a producer."""

    producer_incarnation: int
    """As the consumer knows it."""
    consumer_incarnation: int
    consumer_epoch: int
    """The producer ignores stale standings of earlier epochs."""
    epoch: int
    """The newest epoch of the producer whose fences the consumer knows."""
    last: int
    """The last number that it has accepted, together with all numbers before it."""
    fences: tuple[Fence, ...] = ()
    """The fences that it knows. A producer that lacks one of them has lost an epoch."""


@dataclass(frozen=True, slots=True)
class ChangeSub:
    """A change of the view that the sender has for the receiver."""

    producer_incarnation: int
    """As the consumer knows it."""
    consumer_incarnation: int
    epoch: int
    """The epoch of the consumer."""
    base: int | None
    """The version that it changes; None if `added` has the whole view."""
    version: int
    added: tuple[str, ...]
    """Elements as D2Q XML."""
    removed: tuple[str, ...]
    digest: str
    """The digest of the whole view after the change."""


@dataclass(frozen=True, slots=True)
class SubChanged:
    """The view is in force, and its backlog ends with number `upto`."""

    version: int
    epoch: int
    """The epoch of the producer."""
    upto: int
    producer_incarnation: int
    fences: tuple[Fence, ...]


@dataclass(frozen=True, slots=True)
class SendAll:
    """The change does not fit what the producer has: it needs the whole view."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Compares what both sides have; sent at every start and when a partition heals."""

    incarnation: int
    """The incarnation of the sender."""
    epoch: int
    # As producer for the receiver:
    number: int
    """The last number of the stream from the sender to the receiver."""
    fences: tuple[Fence, ...]
    held_epoch: int
    held_version: int
    held_digest: str
    """The receiver's view as stored at the sender, with the epoch in which it was sent."""
    # As consumer of the receiver:
    standing: Standing
    version: int
    digest: str
    """The sender's own view, which the receiver should have stored."""


@dataclass(frozen=True, slots=True)
class PullGap:
    """Asks the producer for the numbers that are missing, up to `upto`."""

    standing: Standing
    upto: int


@dataclass(frozen=True, slots=True)
class GapPulled:
    items: tuple[Item, ...]
    epoch: int
    fences: tuple[Fence, ...]
    """The gap may belong to an epoch that the producer does not remember."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    standing: Standing


@dataclass(frozen=True, slots=True)
class RelayAcknowledgement:
    """The standing of a consumer that cannot reach the producer, on its way through others."""

    producer: str
    consumer: str
    standing: Standing
    path: tuple[str, ...]
    """The peers that have carried it so far, consumer first. It prevents loops."""
    proof: bytes = b""
    seal: bytes = b""
    """The consumer's certificate and signature, as in a notification."""


@dataclass(frozen=True, slots=True)
class Gossip:
    """Carries only what every envelope has: reachability and the version of the document."""


@dataclass(frozen=True, slots=True)
class FetchDocument:
    pass


@dataclass(frozen=True, slots=True)
class Document:
    xml: bytes


@dataclass(frozen=True, slots=True)
class OfferDocument:
    """Gives the receiver a newer federation document, which it may be unable to fetch."""

    xml: bytes


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Fault:
    """The request was not served, and it has changed nothing."""

    reason: str
    permanent: bool = False
    retry_after_s: float = 0.0
    """When it should be repeated, as HTTP says it; 0 if it does not."""


Request = (
    Notify
    | ChangeSub
    | Hello
    | PullGap
    | Acknowledge
    | RelayAcknowledgement
    | Gossip
    | FetchDocument
    | OfferDocument
)
Reply = Notified | SubChanged | SendAll | Hello | GapPulled | Done | Document | Fault


class Envelope(NamedTuple):
    sender: str
    document: int
    """The version of the federation document in force at the sender."""
    reachability: tuple[ReachabilityRow, ...]
    body: Request | Reply
