"""Outcomes: what a turn brought about, as typed values for whoever drives the peer.

Waiting pulls, metrics and logs read these. The history has its own records (docs/history.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from qns.peer.tables import DeliveryRow


class IncidentKind(Enum):
    """The kinds of incidents. The value is the name of the record in the history, if it has one."""

    SKIP = "skip"
    """A producer declared that it cannot send some events any more."""
    DROP = "drop"
    """The retention limit dropped an event that was owed to a consumer."""
    WITHHOLD = "withhold"
    """A consumer may not read an owed event any more, which is therefore skipped."""
    DISCARD = "discard"
    """An operator dropped a dead letter, or there are too many of its source and receiver: the
    receiver will not get the event from this peer."""
    REWIND = "rewind"
    """A producer was restored from an older copy of its store."""
    FORGOTTEN = "forgotten"
    """A producer remembers nothing of its stream: its store was lost, or the copy is too old."""
    DOCUMENT = "document"
    """The newer federation document of another peer may not be put in force here."""
    OWN_COPY = "own copy"
    """The store of this peer was restored from an older copy."""
    OWN_LOSS = "own loss"
    """The store of this peer is new, although the peer has run before."""
    OWN_TWIN = "own twin"
    """Another peer seems to run as this organisation, with a copy of its store."""
    CLAIM = "claim"
    """A member claims later epochs of this peer too often, or too late ones: it is ignored."""
    SEAL = "seal"
    """A member has brought a message whose seal is wrong: it is refused."""
    LAPSE = "lapse"
    """A member of a delivery group did not acknowledge an event in time."""
    OVERFLOW = "overflow"
    """The operator's limit dropped the oldest delivery of a user's queue."""


class Incident(NamedTuple):
    """Something that an operator should see."""

    kind: IncidentKind
    fields: Mapping[str, object]


class Rejection(NamedTuple):
    """A receiver rejected a notification for good: there is a new dead letter."""

    number: int
    """The number of the dead letter."""
    receiver: str
    source: str
    event: str
    reason: str


class DocumentChange(NamedTuple):
    """A newer federation document is in force."""

    before: int
    """The version that was in force before."""
    version: int
    members: tuple[str, ...]


@dataclass(slots=True)
class Outcomes:
    deliveries: list[DeliveryRow] = field(default_factory=list)
    """Rows that were added to the queues of subscriptions."""
    published_us: list[int | None] = field(default_factory=list)
    """When the event of each delivery was published, on the clock of its producer."""
    subscribed: list[str] = field(default_factory=list)
    """Subscriptions that were added."""
    stable: list[str] = field(default_factory=list)
    """Subscriptions that are stable at every producer now."""
    ended: list[str] = field(default_factory=list)
    """Subscriptions that were unsubscribed, expired or ended with the membership."""
    rejections: list[Rejection] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    overflows: list[str] = field(default_factory=list)
    """Subscriptions of which a delivery was dropped, one for each delivery."""
    documents: list[DocumentChange] = field(default_factory=list)

    def changed_queues(self) -> set[str]:
        """Returns the subscriptions whose readers find something new, or that have ended."""
        return {*(row.subscription for row in self.deliveries), *self.overflows, *self.ended}

    def joined(self, later: Outcomes) -> Outcomes:
        """Returns the outcomes of this turn and a later one."""
        return Outcomes(
            self.deliveries + later.deliveries,
            self.published_us + later.published_us,
            self.subscribed + later.subscribed,
            self.stable + later.stable,
            self.ended + later.ended,
            self.rejections + later.rejections,
            self.incidents + later.incidents,
            self.overflows + later.overflows,
            self.documents + later.documents,
        )


NONE: Final = Outcomes()
"""The outcomes of a turn that has none. Nothing may be added to it."""
