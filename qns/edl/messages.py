"""What peers say to each other: requests and their replies, each in an envelope.

`Notify` and `ChangeSub` are the thesis's two operations (5.4.4); the others keep the streams whole
when something fails. Every request may be repeated: receivers treat a second one as no news.

What is made for every notification, or for every call, is a named tuple: quicker than a dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Fence(NamedTuple):
    """A producer came back from an old backup: its epoch `epoch` begins at number `first`.

    An entry of an older epoch is valid iff its number is below that.
    """

    epoch: int
    first: int


class Entry(NamedTuple):
    """A place in one receiver's stream, and the subtree of further receivers."""

    receiver: str
    joined: int
    """The receiver's incarnation."""
    epoch: int
    number: int
    confirmed: int
    """The epoch up to which the receiver knows all fences; `fences` are those after it."""
    fences: tuple[Fence, ...] = ()
    children: tuple[Entry, ...] = ()

    def alone(self) -> Entry:
        return self._replace(children=())

    def receivers(self) -> list[str]:
        """Everybody in this subtree."""
        return [self.receiver, *(name for child in self.children for name in child.receivers())]


class Notification(NamedTuple):
    """One event on its way to one receiver, and through it to the receiver's subtree."""

    source: str
    joined: int
    """The producer's incarnation."""
    epoch: int
    sequence: int
    """With `joined` and `epoch`: the event's place in publication order."""
    event: str
    """Its id."""
    xml: bytes
    """The event exactly as its producer wrote it."""
    remaining_s: float
    """What is left of its availability."""
    entry: Entry
    path: tuple[str, ...]
    """Who has carried it so far, producer first: the loop guard."""


@dataclass(frozen=True, slots=True)
class Skip:
    """A producer's declaration that it cannot send these numbers any more."""

    source: str
    joined: int
    first: Entry
    """The entry of the first number."""
    last: int
    reason: str


Item = Notification | Skip


class ReachabilityRow(NamedTuple):
    """Whom one organisation cannot reach, as it says itself."""

    organisation: str
    epoch: int
    version: int
    unreachable: tuple[str, ...]


class Notify(NamedTuple):
    items: tuple[Item, ...]


class Notified(NamedTuple):
    """One outcome for each item, and how far the sender's own stream has come here."""

    outcomes: tuple[Outcome, ...]
    standing: Standing | None


class Outcome(NamedTuple):
    taken: bool
    reason: str = ""
    """Why not."""
    permanent: bool = False
    """It will never be taken: a dead letter."""


class Standing(NamedTuple):
    """Where a consumer stands in a producer's stream."""

    joined: int
    """The producer's incarnation, as the consumer knows it."""
    own: int
    """The consumer's own incarnation."""
    consumer_epoch: int
    """Of its life that says so: a late word of a former one does not count."""
    epoch: int
    """The newest epoch whose fences it knows."""
    last: int
    fences: tuple[Fence, ...] = ()
    """Those that it knows: a producer that does not know them has lost a life."""


@dataclass(frozen=True, slots=True)
class ChangeSub:
    """A change of the sender's merge subscription as the receiver sees it."""

    joined: int
    """The producer's incarnation, as the consumer knows it."""
    own: int
    """The consumer's own incarnation."""
    epoch: int
    """The consumer's."""
    base: int | None
    """The version that it changes; None: everything is told anew."""
    version: int
    added: tuple[str, ...]
    """Elements as D2Q XML."""
    removed: tuple[str, ...]
    digest: str
    """Of the whole view after the change."""


@dataclass(frozen=True, slots=True)
class SubChanged:
    """The view is in force, and its backlog is complete with number `upto`."""

    version: int
    epoch: int
    """The producer's."""
    upto: int
    joined: int
    fences: tuple[Fence, ...]


@dataclass(frozen=True, slots=True)
class SendAll:
    """The change does not fit what the producer has: tell everything anew."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What have you, what do you miss: sent at every start and when a partition heals."""

    joined: int
    """The sender's incarnation."""
    epoch: int
    # As producer for the receiver:
    number: int
    """The last number given out to it."""
    fences: tuple[Fence, ...]
    held_epoch: int
    held_version: int
    held_digest: str
    """The receiver's view as the sender has it, and which life of the receiver told it."""
    # As consumer of the receiver:
    standing: Standing
    version: int
    digest: str
    """The sender's view of the receiver, as it should be there."""


@dataclass(frozen=True, slots=True)
class Pull:
    """Send me these numbers of your stream: I see a gap."""

    standing: Standing
    upto: int


@dataclass(frozen=True, slots=True)
class Pulled:
    items: tuple[Item, ...]
    epoch: int
    fences: tuple[Fence, ...]
    """Perhaps the gap is one of a life that the producer does not remember."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    standing: Standing


@dataclass(frozen=True, slots=True)
class Gossip:
    """Only what every envelope carries: who reaches whom, which document is in force."""


@dataclass(frozen=True, slots=True)
class FetchDocument:
    pass


@dataclass(frozen=True, slots=True)
class Document:
    xml: bytes


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Fault:
    """The request was not served, and nothing was changed."""

    reason: str
    permanent: bool = False


Request = Notify | ChangeSub | Hello | Pull | Acknowledge | Gossip | FetchDocument
Reply = Notified | SubChanged | SendAll | Hello | Pulled | Done | Document | Fault


class Envelope(NamedTuple):
    sender: str
    document: int
    """The version of the federation document in force at the sender."""
    reachability: tuple[ReachabilityRow, ...]
    body: Request | Reply
