"""Every table of a peer's store, in one place: what is on disk is what survives.

A row is a NamedTuple; the first `key` columns are its key. A `Transaction` collects what one batch
of inputs changes, the last word on each row, and a store commits it whole or not at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

Row = TypeVar("Row", bound=tuple[Any, ...])
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table(Generic[Row]):
    name: str
    row: type[Row]
    key: int = 1
    """How many leading columns make the key."""


class Transaction:
    """Rows to put and keys to delete."""

    def __init__(self) -> None:
        self._changes: defaultdict[Table[Any], dict[Key, Any]] = defaultdict(dict)

    def __bool__(self) -> bool:
        return bool(self._changes)

    def put(self, table: Table[Row], row: Row) -> None:
        self._changes[table][row[: table.key]] = row

    def delete(self, table: Table[Row], *key: object) -> None:
        self._changes[table][key] = None

    def add(self, later: Transaction) -> None:
        """What another one changes after this; its word is the last."""
        for table, changes in later._changes.items():
            self._changes[table].update(changes)

    def changes(self) -> Iterator[tuple[Table[Any], dict[Key, Any]]]:
        """For each table: key -> the new row, or None where it goes."""
        yield from self._changes.items()


# --- who this peer is ---------------------------------------------------------------------------


class IdentityRow(NamedTuple):
    organisation: str
    joined: int
    """The document version with which it joined: its incarnation."""
    epoch: int
    """Counts the starts; never from a clock."""
    nonce: str
    """Kept outside the store too, so that a restored backup is noticed."""
    published: int
    """How many events were published: the next one's place in publication order."""


class DocumentRow(NamedTuple):
    version: int
    xml: bytes


# --- events ---------------------------------------------------------------------------------------


class EventRow(NamedTuple):
    source: str
    id: str
    joined: int
    epoch: int
    sequence: int
    """(joined, epoch, sequence): the place in its producer's publication order."""
    expires_at: float
    """Until when late subscribers get it, on this peer's clock; infinity for ever."""
    taken: int
    """1: it has been offered to the local users; 0: it only waits here for its turn."""
    xml: bytes


class PublicationRow(NamedTuple):
    """An id published lately, so that a factory may repeat a call whose answer was lost."""

    id: str
    sequence: int
    digest: bytes


# --- internal interface layer ---------------------------------------------------------------------


class SubscriptionRow(NamedTuple):
    id: str
    owner: str
    text: str
    delivery_group: str
    """Empty: the subscription is a subscriber of its own."""
    expires_at: float
    paused: int
    created: int
    """Order of arrival."""


class CounterRow(NamedTuple):
    subscription: str
    delivered: int
    """Number of the last delivery: never reused, so that it can be a cursor."""
    dropped: int


class WaitingRow(NamedTuple):
    """A subscription that is not stable yet at a producer (semantics §9, FIFO)."""

    subscription: str
    producer: str
    version: int
    """The version of the producer's view that has to be in force."""
    until: int | None
    """The stream's number with which its backlog is complete; unknown before the reply."""
    late: int
    """1: events that this organisation received before are owed too."""


class DeliveryRow(NamedTuple):
    subscription: str
    number: int
    source: str
    event: str
    lease_until: float
    """For a member of a delivery group: when an unacknowledged event passes to another."""


class QueuedRow(NamedTuple):
    """An event that waits: its subscription is paused, or not stable yet at the producer."""

    subscription: str
    order: int
    source: str
    event: str
    held: int
    """1: for the producer's backlog; 0: for the end of the pause."""


class ServedRow(NamedTuple):
    """An available event that a delivery group has had already."""

    delivery_group: str
    source: str
    event: str


# --- external diffusion layer, consumer side ------------------------------------------------------


class ViewRow(NamedTuple):
    producer: str
    version: int


class InboundRow(NamedTuple):
    producer: str
    producer_joined: int
    epoch: int
    """The newest epoch of the producer whose fences are all known here."""
    last: int


class InboundFenceRow(NamedTuple):
    producer: str
    producer_joined: int
    epoch: int
    first: int


class EarlyRow(NamedTuple):
    """An entry that came before its turn."""

    producer: str
    producer_joined: int
    number: int
    epoch: int
    event: str


class CustodyRow(NamedTuple):
    """A notification that this peer has promised to bring to another."""

    id: int
    receiver: str
    source: str
    event: str
    entry: str
    """The receiver's entry with its subtree, as JSON."""


# --- external diffusion layer, producer side ------------------------------------------------------


class ConsumerRow(NamedTuple):
    """One row of the External Merge Table's head, and the stream to that consumer."""

    consumer: str
    joined: int
    view_epoch: int
    version: int
    number: int
    """The last number given out."""
    acknowledged: int
    confirmed: int
    """The newest of our epochs whose fences the consumer knows."""
    consumer_epoch: int
    """The newest life of the consumer that was heard of."""


class ExternalRow(NamedTuple):
    """One element of a consumer's merge subscription, as D2Q XML."""

    consumer: str
    element: str


class FenceRow(NamedTuple):
    """After a restore: epoch `epoch` of this stream begins at number `first`."""

    consumer: str
    epoch: int
    first: int


class OwedRow(NamedTuple):
    consumer: str
    number: int
    epoch: int
    event: str


class DeadLetterRow(NamedTuple):
    id: int
    at: float
    receiver: str
    source: str
    event: str
    entry: str
    reason: str


class HistoryRow(NamedTuple):
    """What happened, for `qns verify` (docs/history.md)."""

    epoch: int
    number: int
    record: str
    """JSON."""


IDENTITY = Table("identity", IdentityRow)
DOCUMENT = Table("document", DocumentRow)
EVENTS = Table("events", EventRow, 2)
PUBLICATIONS = Table("publications", PublicationRow)
SUBSCRIPTIONS = Table("subscriptions", SubscriptionRow)
COUNTERS = Table("counters", CounterRow)
WAITING = Table("waiting", WaitingRow, 2)
DELIVERIES = Table("deliveries", DeliveryRow, 2)
QUEUED = Table("queued", QueuedRow, 2)
SERVED = Table("served", ServedRow, 3)
VIEWS = Table("views", ViewRow)
INBOUND = Table("inbound", InboundRow, 2)
INBOUND_FENCES = Table("inbound_fences", InboundFenceRow, 3)
EARLY = Table("early", EarlyRow, 3)
CUSTODY = Table("custody", CustodyRow)
CONSUMERS = Table("consumers", ConsumerRow)
EXTERNAL = Table("external", ExternalRow, 2)
FENCES = Table("fences", FenceRow, 2)
OWED = Table("owed", OwedRow, 2)
DEAD_LETTERS = Table("dead_letters", DeadLetterRow)
HISTORY = Table("history", HistoryRow, 2)

TABLES: tuple[Table[Any], ...] = (
    IDENTITY,
    DOCUMENT,
    EVENTS,
    PUBLICATIONS,
    SUBSCRIPTIONS,
    COUNTERS,
    WAITING,
    DELIVERIES,
    QUEUED,
    SERVED,
    VIEWS,
    INBOUND,
    INBOUND_FENCES,
    EARLY,
    CUSTODY,
    CONSUMERS,
    EXTERNAL,
    FENCES,
    OWED,
    DEAD_LETTERS,
    HISTORY,
)
