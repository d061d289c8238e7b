"""Requests: what this peer asks other peers, one request at a time on each link.

A request without an answer is repeated after a pause. What the answer says goes to the component
that made the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from qns.edl.consumer import Consumer
from qns.edl.dialogue import Dialogue
from qns.edl.forwarder import Forwarder
from qns.edl.intake import Intake
from qns.edl.link import Link, LinkState
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Document,
    Done,
    Envelope,
    Fault,
    FetchDocument,
    GapPulled,
    Gossip,
    Hello,
    Notification,
    Notified,
    Notify,
    OfferDocument,
    PullGap,
    RelayAcknowledgement,
    Reply,
    Request,
    SendAll,
    SubChanged,
    entry_of,
)
from qns.edl.producer import Producer
from qns.edl.reachability import Reachability
from qns.edl.validation import validate_envelope
from qns.peer.tuning import Tuning
from qns.peer.turn import Turn


class Send(NamedTuple):
    """A request on its way; its answer, or the lack of one, comes back under its number."""

    to: str
    number: int
    envelope: Envelope


@dataclass(slots=True, eq=False)
class Requests:
    me: str
    tuning: Tuning
    reachability: Reachability
    producer: Producer
    consumer: Consumer
    forwarder: Forwarder
    dialogue: Dialogue
    intake: Intake
    _gossip_at: float = 0.0
    _gossiped: int = 0
    _under_way: dict[int, str] = field(default_factory=dict)
    """Number of a request under way -> its receiver."""
    _requests: int = 0

    def start(self, turn: Turn) -> None:
        self._gossip_at = turn.now + self.tuning.gossip_every_s

    # --- sending ----------------------------------------------------------------------------------

    def handle_due(self, turn: Turn, *, is_alone: bool = False) -> None:
        """Does what is due by now.

        A peer that no other has called for a while compares what both have, instead of gossiping:
        if it is not at its endpoint, the others know a later epoch of another peer that is.
        """
        self.producer.resending.handle_due(turn)
        ready = self.producer.table.go_on(turn)
        if ready is not None:  # the message cuts the pause of the consumer short
            self.forwarder.link(ready).wants_gossip = True
        for member in self.producer.claims.pop_due(turn.now):
            if member in self.forwarder.links:
                self.forwarder.links[member].wants_hello = True
        for link in self.forwarder.links.values():
            link.end_rest(turn.now)
            link.retry_refused(turn.now, self.tuning.notifications_per_call)
        if self._gossip_at <= turn.now:
            self._gossip_at = turn.now + self.tuning.gossip_every_s
            self.dialogue.postponed_document = 0  # everything that was owed may be delivered by now
            others = sorted(name for name in self.consumer.federation.organisations)
            others = [name for name in others if name != self.me]
            if others:
                self._gossiped += 1
                link = self.forwarder.link(others[self._gossiped % len(others)])
                link.wants_gossip, link.wants_hello = True, link.wants_hello or is_alone

    def next_due(self) -> float:
        due = min(self._gossip_at, self.producer.table.next_due())
        if self.dialogue.is_closed:
            links = self.forwarder.links.values()
            rests = (link.rest_until for link in links if link.state is LinkState.RESTING)
            return min(due, *rests, inf)
        due = min(due, self.producer.resending.next_due(), self.producer.claims.next_due())
        for link in self.forwarder.links.values():
            due = min(due, link.next_due())
        return due

    def next_sends(self, turn: Turn) -> Iterator[Send]:
        """Yields the next request of every idle link that has one."""
        for link in list(self.forwarder.links.values()):
            if link.state is LinkState.IDLE:
                request = self._next_request(turn, link)
                if request is not None:
                    self._requests += 1
                    self._under_way[self._requests] = link.other
                    link.asks(request)
                    link.wants_gossip = False
                    envelope = self.dialogue.envelope(link.other, request)
                    yield Send(link.other, self._requests, envelope)

    def _next_request(self, turn: Turn, link: Link) -> Request | None:
        other = link.other
        if link.wants_document:
            link.wants_document = False
            return FetchDocument()
        if self.dialogue.is_closed:
            return self._next_of_closed(link)
        # Before the requests that a peer with an older document refuses.
        if link.standings_at is not None and link.standings_at <= turn.now:
            (producer, consumer), carried = link.pop_standing()
            path = (*carried.path, self.me)
            return RelayAcknowledgement(
                producer, consumer, carried.standing, path, carried.proof, carried.seal
            )
        if link.wants_offer:
            link.wants_offer = False
            return OfferDocument(self.dialogue.document_xml)
        if link.wants_hello:
            link.wants_hello = False
            link.acknowledge_at = None
            return self.dialogue.hello(other)
        if link.change_at is None or link.change_at <= turn.now:
            link.change_at = None
            change = self.consumer.change_sub(other)
            if change is not None:
                return change
        if link.pull_at is not None and link.pull_at <= turn.now:
            link.pull_at = None
            pull = self.consumer.pull_gap(turn, other)
            if pull is not None:
                link.acknowledge_at = None
                return pull
        items = self.producer.resending.next_resent(turn, other)
        if link.skips:
            items += link.skips
            link.skips.clear()
        limit = self.tuning.notifications_per_call - len(items)
        if limit > 0 and (items or link.parcels):
            sizes = (len(each.xml) for each in items if isinstance(each, Notification))
            room = self.tuning.bytes_per_call - sum(sizes)
            items.extend(self.forwarder.next_notifications(turn, link, limit, room))
        if items:
            return Notify(tuple(items))
        if link.acknowledge_at is not None and link.acknowledge_at <= turn.now:
            link.acknowledge_at = None
            return Acknowledge(self.consumer.standing(other))
        return Gossip() if link.wants_gossip else None

    def _next_of_closed(self, link: Link) -> Request | None:
        """Returns what a peer sends whose document has expired: what may bring a fresh one."""
        if link.wants_offer:
            link.wants_offer = False
            return OfferDocument(self.dialogue.document_xml)
        return Gossip() if link.wants_gossip else None

    # --- answers ----------------------------------------------------------------------------------

    def handle_answer(
        self, turn: Turn, number: int, envelope: Envelope | None, problem: str = ""
    ) -> bytes | None:
        """Handles an answer, or the lack of one; returns the document if the answer has one.

        `problem` says why there is no answer, if that is known.
        """
        other = self._under_way.pop(number, None)
        if other is None:
            return None
        link = self.forwarder.link(other)
        request = link.request
        assert request is not None
        if envelope is None:
            self._unanswered(turn, link, request, problem)
            return None
        if envelope.sender != other or validate_envelope(envelope) is not None:
            self._repeat(turn, link, request)
            link.refused(turn.now, "the answer is not one that this peer can send")
            return None
        self.dialogue.learn_from(turn, other, envelope.document, envelope.reachability)
        healed = self.reachability.observe(other, reachable=True)
        if healed and not isinstance(request, Hello):
            self.consumer.want_hello(other)
        return self._conclude(turn, link, request, envelope.body)

    def _conclude(
        self, turn: Turn, link: Link, request: Request, body: Request | Reply
    ) -> bytes | None:
        other = link.other
        document: bytes | None = None
        problem = ""
        match request, body:
            case Notify(), Notified() if len(request.items) == len(body.outcomes):
                problem = self._handle_outcomes(turn, link, request, body)
            case ChangeSub(), SubChanged():
                link.send_alls = 0
                self.consumer.sub_changed(turn, other, request, body)
            case ChangeSub(), SendAll():
                link.send_alls += 1
                self.consumer.send_all(other)
            case Hello(), Hello():
                self.dialogue.handle_hello(turn, other, body)
                self.consumer.hello_answered(other, request)
            case PullGap(), GapPulled():
                self.intake.gap_pulled(turn, other, request, body)
            case FetchDocument(), Document():
                document = body.xml
            case (_, Done()) | (Gossip(), _):
                pass
            case RelayAcknowledgement(), Fault(permanent=True):
                self.forwarder.routes.refuse(other)
                self._repeat(turn, link, request)
            case RelayAcknowledgement(), Fault() if not self._leads(other, request):
                self._repeat(turn, link, request)  # through another relay, if there is one
            case ChangeSub(), Fault(permanent=True):
                self._repeat(turn, link, request)
                link.change_refused(turn.now, body.reason)
                link.wants_hello |= link.change_refusals > 1  # it may have a view of a later epoch
            case FetchDocument(), Fault(permanent=True):
                link.useless_document = link.claimed_document
            case OfferDocument(), Fault(permanent=True):
                link.refused_offer = self.consumer.federation.version, link.claimed_document
                link.refusal = body.reason
            case Notify(), Fault(permanent=True) if self.me not in self.consumer.federation:
                self.producer.abandon(turn, other)  # the other will never accept it
            case _:
                problem = f"{type(request).__name__} was refused: {_reason(body)}"
                self._repeat(turn, link, request)
        if isinstance(body, Fault) and not isinstance(request, OfferDocument):
            self.dialogue.may_offer_document(link)
        if problem:
            pause_s = body.retry_after_s if isinstance(body, Fault) else 0.0
            link.refused(turn.now, problem, pause_s)
        else:
            link.answered()
        return document

    def _leads(self, relay: str, carried: RelayAcknowledgement) -> bool:
        """True if the relay is on a way to the producer, by what the peers report now."""
        hops = self.forwarder.routes.hops(carried.producer, carried.path)
        return relay == carried.producer or relay in hops

    def _handle_outcomes(self, turn: Turn, link: Link, notify: Notify, reply: Notified) -> str:
        """Handles the outcomes of a Notify; returns a problem if the receiver needs a pause.

        It needs none if it has taken something, or refuses again what it had refused before.
        """
        other = link.other
        if reply.standing is not None:
            self.producer.update_standing(turn, other, reply.standing)
        first_parcel = len(notify.items) - len(link.sent)
        is_new = self.forwarder.handle_outcomes(turn, link, reply.outcomes[first_parcel:])
        for item, outcome in zip(notify.items, reply.outcomes, strict=True):
            if outcome.taken or not outcome.permanent:
                continue
            receiver = entry_of(item).receiver
            if receiver == other:
                self.producer.handle_rejection(turn, other, item, outcome.reason)
            else:  # for example because its version does not relay
                self.forwarder.routes.refuse(other)
                self.producer.resending.relay_refused(receiver)
        if any(each.taken or each.permanent for each in reply.outcomes):
            return ""
        if not is_new and not first_parcel:
            return ""
        reason = reply.outcomes[0].reason if reply.outcomes else ""
        return f"Notify was refused: {reason or 'without a reason'}"

    def _unanswered(self, turn: Turn, link: Link, request: Request, problem: str) -> None:
        if self.reachability.observe(link.other, reachable=False):
            self.forwarder.report_break(link.other)
        self.reachability.forget_sent(link.other)
        self.forwarder.bypass(turn, link.other)
        self._repeat(turn, link, request)
        link.wants_gossip = link.other in self.consumer.federation
        link.unanswered(turn.now, problem)

    def _repeat(self, turn: Turn, link: Link, request: Request) -> None:
        """Makes a request that failed due again."""
        match request:
            case Hello():
                self.consumer.want_hello(link.other)
            case ChangeSub():
                self.consumer.change_sub_failed(link.other)
            case FetchDocument():
                link.wants_document = True
            case OfferDocument():
                pass  # the next fault makes it due again
            case PullGap():
                link.pull_at = turn.now
            case Acknowledge():
                incarnation = request.standing.producer_incarnation
                self.consumer.acknowledge_later(turn, link.other, incarnation)
            case RelayAcknowledgement(consumer=self.me):
                incarnation = request.standing.producer_incarnation
                self.consumer.acknowledge_later(turn, request.producer, incarnation)
            case Notify():
                for receiver in {entry_of(item).receiver: None for item in request.items}:
                    self.producer.resending.resend_unanswered(receiver)
            case Gossip():
                link.wants_gossip = True


def _reason(body: Request | Reply) -> str:
    return body.reason if isinstance(body, Fault) else f"it answered with {type(body).__name__}"
