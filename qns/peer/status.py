"""Status: what a peer shows of its state, read-only.

Health, metrics, the simulator and the lab read this instead of the components. Each property is
computed when it is read; only `federation` stays the document that was in force when `Peer.status`
made this view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from qns.cbr.subscription import Subscription
from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.link import Link, LinkState
from qns.edl.merge_subscriptions_table import ViewState
from qns.edl.messages import Gossip
from qns.edl.seals import Refusals, Sealer
from qns.federation.document import Federation
from qns.iil.layer import InternalInterfaceLayer
from qns.peer.dead_letters import DeadLetter, content_of, dead_letter, dead_letters
from qns.peer.event_log import EventLog
from qns.peer.identity import Identity
from qns.peer.outcomes import IncidentKind
from qns.peer.routing_tables import RoutingTables, routing_tables
from qns.peer.tuning import Tuning
from qns.peer.why import Question, Why, why


class OutboundStatus(NamedTuple):
    """The stream to one consumer."""

    consumer: str
    number: int
    """The last number that was assigned."""
    acknowledged: int
    owed_events: int
    """How many of the numbers that are not acknowledged still have their event."""
    lag_bytes: int

    @property
    def lag_events(self) -> int:
        return self.number - self.acknowledged


class DroppedStatus(NamedTuple):
    """A subscription of which deliveries were dropped that its reader has not acknowledged."""

    subscription: str
    owner: str
    dropped: int


class InboundStatus(NamedTuple):
    """The stream from one incarnation of a producer."""

    producer: str
    last: int
    early: int
    """The number of entries that are held back."""


class ViewStatus(NamedTuple):
    """The view for one producer."""

    producer: str
    elements: int
    state: ViewState
    has_pending: bool
    """True if a subscription is not stable yet at the producer."""


class PendingStatus(NamedTuple):
    """The subscriptions that are not stable yet at one producer."""

    producer: str
    subscriptions: int
    oldest: str
    """The subscription that has been pending longest."""
    since: float
    """When it became pending; 0 if that was before the last start."""


class LinkWork(NamedTuple):
    """The work that is left on the link to one other peer."""

    other: str
    is_resting: bool
    is_asking: bool
    """True if a request other than gossip is under way."""
    has_messages: bool
    """True if a parcel, a hello or a request for the document waits to be sent."""
    has_timer: bool
    """True if a gap will be pulled or an acknowledgement sent later."""
    failures: int = 0
    """Failed requests since the last answer."""
    problem: str = ""
    """Why the last request failed; empty after an answer."""
    send_alls: int = 0
    """How often in a row the other peer has asked for the whole view."""
    pulls: int = 0
    """Attempts to close the gap that is open."""
    change_refusal: str = ""
    """Why the other peer refuses the view for good; empty if it does not."""


@dataclass(frozen=True, slots=True, eq=False)
class PeerStatus:
    _identity: Identity
    _federation: Federation
    _log: EventLog
    _iil: InternalInterfaceLayer
    _edl: ExternalDiffusionLayer
    _setback: IncidentKind | None = None
    is_fenced: bool = False
    """True if another peer runs as this organisation, and this one only serves readers."""
    _sealer: Sealer | None = None

    # --- identity and federation ------------------------------------------------------------------

    @property
    def organisation(self) -> str:
        return self._identity.organisation

    @property
    def epoch(self) -> int:
        return self._identity.epoch

    @property
    def setback(self) -> IncidentKind | None:
        """OWN_LOSS or OWN_COPY if the store is behind the past of this peer, OWN_TWIN if another
        peer seems to run as this organisation; otherwise None."""
        return self._setback

    @property
    def federation(self) -> Federation:
        return self._federation

    @property
    def document(self) -> bytes:
        """The federation document in force, byte for byte."""
        return self._edl.dialogue.document_xml

    @property
    def tuning(self) -> Tuning:
        return self._iil.tuning

    @property
    def is_member(self) -> bool:
        return self.organisation in self._federation

    @property
    def newest_document(self) -> int:
        """The newest version of the federation document that another peer claims to have."""
        links = self._edl.forwarder.links.values()
        return max((link.claimed_document for link in links), default=0)

    @property
    def useless_documents(self) -> dict[str, str]:
        """The other peers whose newer document is not put in force here, with the reasons."""
        return {
            link.other: link.useless_reason
            for link in self._edl.forwarder.links.values()
            if self._federation.version < link.claimed_document == link.useless_document
        }

    @property
    def refused_offers(self) -> dict[str, str]:
        """The other peers that refuse the document of this one, with their reasons."""
        return {
            link.other: link.refusal
            for link in self._edl.forwarder.links.values()
            if link.refused_offer == (self._federation.version, link.claimed_document)
        }

    @property
    def unreachable(self) -> tuple[str, ...]:
        """The other peers that did not answer when they were last called."""
        return self._edl.reachability.unreachable()

    def disbelieved(self, now: float) -> list[str]:
        """Returns the members that claim later epochs of this peer too often, or too late ones."""
        return self._edl.producer.claims.refused(now)

    @property
    def wrong_seals(self) -> Mapping[str, Refusals]:
        """Member -> what was refused of what it has sent, because of its seal."""
        return self._edl.consumer.seals.refusals

    @property
    def signer_problem(self) -> str:
        """Why this peer could not seal what it sent last; empty if it could."""
        return "" if self._sealer is None else self._sealer.problem

    def set_back_producers(self) -> dict[str, float]:
        """Returns the producers whose stores went back in time since the start of this peer, with
        the time at which this peer noticed it."""
        return dict(self._edl.consumer.set_back_at)

    def problem_with(self, other: str) -> str:
        """Returns why the last request to another peer failed; empty after an answer."""
        link = self._edl.forwarder.links.get(other)
        return "" if link is None else link.problem

    def is_reached_by(self, other: str) -> bool:
        """False if the other peer reports that it cannot reach this one."""
        return self._edl.reachability.reaches(other, self.organisation)

    @property
    def has_twin(self) -> bool:
        """True if another process seems to run as this organisation."""
        return self._setback is IncidentKind.OWN_TWIN

    # --- users ------------------------------------------------------------------------------------

    @property
    def subscriptions(self) -> int:
        return len(self._iil.table)

    def local_subscriptions(self) -> list[Subscription]:
        return [subscription for _, subscription in self._iil.subscriptions()]

    @property
    def deliveries_waiting(self) -> int:
        """Deliveries that users have not acknowledged, and events that wait for them."""
        return sum(self._iil.dispatcher.depth(each.id) for each in self._iil.table)

    def dropped(self) -> Iterator[DroppedStatus]:
        """Yields the subscriptions of which the operator's limit has dropped deliveries."""
        for id, number in self._iil.dispatcher.dropped.counts().items():
            yield DroppedStatus(id, self._iil.table[id].owner, number)

    @property
    def oldest_unread(self) -> float | None:
        """When the oldest delivery that no user has acknowledged was made; None if there is none.

        It is 0 for a delivery that an earlier release made, which did not record the time.
        """
        found = (self._iil.dispatcher.oldest_unread(each.id) for each in self._iil.table)
        return min((row.delivered_at for row in found if row is not None), default=None)

    def pending(self) -> Iterator[PendingStatus]:
        """Yields each producer at which subscriptions are not stable yet."""
        for producer, number, oldest, since in self._iil.stability.longest_pending():
            yield PendingStatus(producer, number, oldest, since)

    def delivered(self, subscription: str) -> int:
        """Returns the number of the last delivery of a subscription."""
        return self._iil.table[subscription].delivered

    # --- events and streams -----------------------------------------------------------------------

    @property
    def events_kept(self) -> int:
        return len(self._log)

    @property
    def custody(self) -> int:
        """The number of promises to forward an event."""
        return len(self._edl.forwarder.custody)

    def promises(self) -> Iterator[tuple[str, str]]:
        """Yields source and receiver of every promise to forward an event."""
        parcels = self._edl.forwarder.custody.parcels.values()
        return ((each.event[0], each.entry.receiver) for each in parcels)

    @property
    def dead_letters(self) -> int:
        return len(self._edl.forwarder.custody.dead_letters)

    def find_dead_letters(self, receiver: str | None = None) -> Iterator[DeadLetter]:
        """Yields the dead letters of one receiver, or all, oldest first."""
        return dead_letters(self._edl.forwarder.custody, self._log, receiver)

    def dead_letter(self, number: int) -> DeadLetter:
        """Returns one dead letter; raises NotAllowed if there is none of this number."""
        return dead_letter(self._edl.forwarder.custody, self._log, number)

    def content_of(self, letter: DeadLetter) -> dict[str, Any]:
        """Returns the event of a dead letter as a JSON object."""
        return content_of(letter, self._log, self._federation.schema)

    @property
    def early_entries(self) -> int:
        return sum(each.early for each in self.inbound())

    def full_buffers(self) -> Iterator[tuple[str, str]]:
        """Yields the buffers that are full, each with what that means and how it ends."""
        tuning = self._iil.tuning
        if self._log.in_memory >= tuning.most_events:
            yield (
                f"{self._log.in_memory:,} events are in memory, which is the limit most_events",
                "new ones are rejected as busy until some expire or are delivered",
            )
        if self.custody >= tuning.most_custody:
            yield (
                f"{self.custody:,} events are in custody, which is the limit most_custody",
                "producers send directly what this peer does not forward",
            )
        if self.subscriptions >= tuning.most_subscriptions:
            yield (
                f"there are {self.subscriptions:,} subscriptions, the limit most_subscriptions",
                "new ones are rejected until some end",
            )

    def outbound(self) -> Iterator[OutboundStatus]:
        """Yields the stream to each consumer."""
        for name, stream in self._edl.producer.streams.items():
            yield OutboundStatus(
                name, stream.number, stream.acknowledged, stream.owed_events, stream.owed_bytes
            )

    def dropped_for(self, stream: OutboundStatus) -> int:
        """Returns how many events owed to a consumer the operator's limits have dropped."""
        tuning = self._iil.tuning
        if min(tuning.most_owed, tuning.most_owed_bytes) == inf:
            return 0
        return stream.lag_events - stream.owed_events

    def inbound(self) -> Iterator[InboundStatus]:
        """Yields the stream from each incarnation of each producer."""
        for (producer, _), stream in self._edl.consumer.streams.items():
            yield InboundStatus(producer, stream.last, len(stream.early))

    # --- merging ----------------------------------------------------------------------------------

    def views(self) -> Iterator[ViewStatus]:
        """Yields the view for each producer."""
        for producer, view in self._edl.consumer.merger.table.views.items():
            pending = self._iil.has_pending(producer)
            yield ViewStatus(producer, len(view.texts), view.state, pending)

    def external_view(self, consumer: str) -> Mapping[str, Subscription]:
        """Returns the view that a consumer has sent: its elements by their text."""
        return self._edl.producer.table.view(consumer)

    @property
    def external_elements(self) -> int:
        """The number of elements in the External Merge Table."""
        return sum(map(len, self._edl.producer.table.views.values()))

    def routing_tables(self, now: float, limit: int) -> RoutingTables:
        """Returns the tables of both layers as values, at most `limit` rows of each."""
        return routing_tables(self._iil, self._edl, now, limit)

    def why(self, question: Question) -> Why:
        """Explains why a user was notified of an event or not, or where the event is."""
        return why(self._iil, self._edl, self._log, self._federation, question)

    # --- links ------------------------------------------------------------------------------------

    def links(self) -> Iterator[LinkWork]:
        """Yields the work that is left on each link."""
        return map(_link_work, self._edl.forwarder.links.values())


def _link_work(link: Link) -> LinkWork:
    return LinkWork(
        link.other,
        link.state is LinkState.RESTING,
        link.state is LinkState.ASKING and not isinstance(link.request, Gossip),
        bool(link.parcels or link.wants_hello or link.wants_document),
        any(each is not None for each in (link.pull_at, link.acknowledge_at, link.standings_at)),
        link.failures,
        link.problem,
        link.send_alls,
        link.pulls,
        link.change_refusal,
    )
