"""Tables: every table of a peer's store, in one place.

A row is a NamedTuple, and its fields are the columns of the table. The first `key` columns are the
key. The names of the columns are a released format: `joined` is an incarnation (docs/glossary.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

Row = TypeVar("Row", bound=tuple[Any, ...])
Key = tuple[Any, ...]

ALL: Final = 2**63 - 1
"""A limit beyond every number of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Table(Generic[Row]):
    name: str
    row: type[Row]
    key: int = 1
    """The number of leading columns that form the key."""
    indexed: tuple[str, ...] = ()
    """Columns by which rows can be found."""


# --- identity -----------------------------------------------------------------------------------


class IdentityRow(NamedTuple):
    organisation: str
    joined: int
    """The version of the federation document with which it joined: its incarnation."""
    epoch: int
    """Grows with every start of this peer."""
    nonce: str
    """Is kept outside the store as well, so that a restored backup is detected."""
    published: int
    """The number of published events: the sequence number of the last one."""
    turns: int = 0
    """The number of committed turns. It is noted outside the store as well, so that lost commits
    are detected."""


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
    """(joined, epoch, sequence) is the place in the publication order of its producer."""
    expires_at: float
    """Until when late subscribers get it, on the clock of this peer; may be infinite."""
    taken: int
    """1 if it has been offered to the local users, 0 if an earlier event is still missing."""
    xml: bytes


class PublicationRow(NamedTuple):
    """A recently published id, by which a repeated publication is recognised."""

    id: str
    sequence: int
    digest: bytes


# --- internal interface layer ---------------------------------------------------------------------


class SubscriptionRow(NamedTuple):
    id: str
    owner: str
    text: str
    delivery_group: str
    """Empty if the subscription belongs to no delivery group."""
    expires_at: float
    paused: int
    created: int
    """The place in the order in which subscriptions were made."""
    reading: str = ""
    """The text without labels, if it differs: a later change of labels does not change it."""
    normal: str = ""
    """The normal form (`qns.d2q.stored_form`); empty if an earlier version wrote the row."""


class CounterRow(NamedTuple):
    subscription: str
    delivered: int
    """The number of the last delivery. Only a peer that goes back in time uses a number again;
    then the number series differs."""
    dropped: int


class NumberSeriesRow(NamedTuple):
    """Where the delivery numbers of one start of the peer begin, for readers' cursors."""

    subscription: str
    first: int
    series: str


class WaitingRow(NamedTuple):
    """A subscription that is pending at a producer (semantics §9, FIFO)."""

    subscription: str
    producer: str
    version: int
    """The version of the view that has to be in force at the producer."""
    until: int | None
    """The number that completes the backlog; NULL before the producer has replied."""
    late: int
    """1 if available events that this organisation received earlier are owed as well."""


class DeliveryRow(NamedTuple):
    subscription: str
    number: int
    source: str
    event: str
    lease_until: float
    """In a delivery group: when an unacknowledged event passes to another member."""
    delivered_at: float = 0.0
    """When the delivery was made; 0 if an earlier release made it."""


class QueuedRow(NamedTuple):
    """An event whose subscription is paused or pending at the producer."""

    subscription: str
    order: int
    source: str
    event: str
    held: int
    """1 if it waits for the producer's backlog, 0 if it waits for the end of a pause."""


class DroppedRow(NamedTuple):
    """Deliveries that the operator's limit dropped and that the reader has not acknowledged."""

    subscription: str
    first: int
    last: int


class ServedRow(NamedTuple):
    """An available event that was handed out to a member of a delivery group."""

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
    reached: int
    """The last number of those that were accepted before the stream was set back, or `last`."""
    published_in: int
    """The epoch in which the last accepted event was published."""
    sequence: int
    """The highest sequence of an accepted event of that epoch."""


class AcceptedRow(NamedTuple):
    """How far the events of an earlier epoch were accepted."""

    producer: str
    producer_joined: int
    published_in: int
    sequence: int


class InboundFenceRow(NamedTuple):
    producer: str
    producer_joined: int
    epoch: int
    first: int
    sets_back: int
    """1 if the consumer had to step back because of it, or if the producer seems to have
    forgotten it, 0 if not."""


class FormerSealRow(NamedTuple):
    """A seal certificate of an organisation that has left: what it owes is still checked."""

    organisation: str
    number: int
    certificate: str
    document: int = 0
    """The last version of the document that named it; 0 if an earlier release kept it."""


class EarlyRow(NamedTuple):
    """An entry that arrived before the numbers that precede it."""

    producer: str
    producer_joined: int
    number: int
    epoch: int
    event: str


class CustodyRow(NamedTuple):
    """A notification that this peer has promised to forward."""

    id: int
    receiver: str
    source: str
    event: str
    entry: str
    """The entry of the receiver with its subtree, as JSON."""


# --- external diffusion layer, producer side ------------------------------------------------------


class ConsumerRow(NamedTuple):
    """The stream to one consumer, and the version of the view that the consumer has sent."""

    consumer: str
    joined: int
    view_epoch: int
    version: int
    number: int
    """The last number that was assigned."""
    acknowledged: int
    confirmed: int
    """The newest epoch of this peer whose fences the consumer knows."""
    consumer_epoch: int
    """The newest epoch of the consumer that this peer knows."""


class ExternalRow(NamedTuple):
    """One element of the merge subscription of a consumer, as D2Q XML."""

    consumer: str
    element: str


class FenceRow(NamedTuple):
    """After a restore, epoch `epoch` of this stream begins at number `first`."""

    consumer: str
    epoch: int
    first: int


class OwedRow(NamedTuple):
    consumer: str
    number: int
    epoch: int
    event: str
    size: int = 0
    """The bytes of the event; 0 if an earlier release made the row."""


class DeadLetterRow(NamedTuple):
    id: int
    at: float
    receiver: str
    source: str
    event: str
    entry: str
    reason: str


class EvidenceRow(NamedTuple):
    """What proves that a producer has sent an event to this organisation (docs/evidence.md)."""

    number: int
    root: int
    """The number of a row in `sealed_roots`."""
    event: str
    accepted_at: float
    leaf: bytes
    proof: bytes
    """Leads from the leaf to the root."""
    xml: bytes


class SealedRootRow(NamedTuple):
    """A root that a producer has signed. The events of one commit share it."""

    number: int
    source: str
    kept_at: float
    root: bytes
    seal: bytes
    document: int
    """The version of the federation document that names the certificate of the seal."""
    timestamp: int = 0
    """The number of a row in `timestamps`; 0 before there is one."""
    timestamp_proof: bytes = b""
    """Leads from the root to what the timestamp is of."""


class TimestampRow(NamedTuple):
    """What a timestamping authority (RFC 3161) has signed for several roots at once."""

    number: int
    last_root: int
    """The last of these roots; the earlier ones have timestamps too."""
    root: bytes
    response: bytes


class EvidenceDocumentRow(NamedTuple):
    """A version of the federation document to which evidence refers."""

    version: int
    xml: bytes


class HistoryRow(NamedTuple):
    """One record of the history, for `qns verify` (docs/history.md)."""

    epoch: int
    number: int
    record: str
    """The record as JSON."""


IDENTITY = Table("identity", IdentityRow)
DOCUMENT = Table("document", DocumentRow)
EVENTS = Table("events", EventRow, 2)
PUBLICATIONS = Table("publications", PublicationRow)
SUBSCRIPTIONS = Table("subscriptions", SubscriptionRow)
COUNTERS = Table("counters", CounterRow)
NUMBER_SERIES = Table("number_series", NumberSeriesRow, 2)
WAITING = Table("waiting", WaitingRow, 2)
DELIVERIES = Table("deliveries", DeliveryRow, 2, indexed=("event",))
QUEUED = Table("queued", QueuedRow, 2, indexed=("event",))
DROPPED = Table("dropped", DroppedRow, 2)
SERVED = Table("served", ServedRow, 3, indexed=("event",))
VIEWS = Table("views", ViewRow)
INBOUND = Table("inbound", InboundRow, 2)
ACCEPTED = Table("accepted", AcceptedRow, 3)
INBOUND_FENCES = Table("inbound_fences", InboundFenceRow, 3)
FORMER_SEALS = Table("former_seals", FormerSealRow, 2)
EARLY = Table("early", EarlyRow, 3)
CUSTODY = Table("custody", CustodyRow)
CONSUMERS = Table("consumers", ConsumerRow)
EXTERNAL = Table("external", ExternalRow, 2)
FENCES = Table("fences", FenceRow, 2)
OWED = Table("owed", OwedRow, 2, indexed=("event",))
DEAD_LETTERS = Table("dead_letters", DeadLetterRow)
EVIDENCE = Table("evidence", EvidenceRow, indexed=("event",))
SEALED_ROOTS = Table("sealed_roots", SealedRootRow, indexed=("document",))
TIMESTAMPS = Table("timestamps", TimestampRow)
EVIDENCE_DOCUMENTS = Table("evidence_documents", EvidenceDocumentRow)
HISTORY = Table("history", HistoryRow, 2)

TABLES: tuple[Table[Any], ...] = tuple(
    each for each in tuple(globals().values()) if isinstance(each, Table)
)
"""Every table above, in this order."""
