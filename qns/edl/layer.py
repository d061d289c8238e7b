"""External Diffusion Layer: what a peer says to other peers, and what it makes of their words.

One link to each other peer; over it go, one request at a time, what the producer side, the consumer
side and the forwarder have to say (thesis 5.4.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from qns.edl.consumer import Consumer
from qns.edl.forwarder import Forwarder
from qns.edl.link import Link, State
from qns.edl.membership import Membership
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Document,
    Done,
    Envelope,
    Fault,
    FetchDocument,
    Gossip,
    Hello,
    Notification,
    Notified,
    Notify,
    Pull,
    Pulled,
    Reply,
    Request,
    SendAll,
    SubChanged,
)
from qns.edl.producer import Producer
from qns.edl.soundness import objection
from qns.tuning import Tuning
from qns.turn import Turn


class Send(NamedTuple):
    """A request on its way; its answer, or the lack of one, comes back under its number."""

    to: str
    number: int
    envelope: Envelope


@dataclass(slots=True, eq=False)
class ExternalDiffusionLayer:
    me: str
    epoch: int
    tuning: Tuning
    membership: Membership
    producer: Producer
    consumer: Consumer
    forwarder: Forwarder
    document_xml: bytes
    postponed: int = 0
    """A version of the document that has to wait until all that is owed is delivered."""
    gossip_at: float = 0.0
    _gossiped: int = 0
    _open: dict[int, str] = field(default_factory=dict)
    """Number of a request under way -> to whom."""
    _requests: int = 0

    # --- requests of others -----------------------------------------------------------------------

    def received(self, turn: Turn, envelope: Envelope) -> Envelope:
        sender, body = envelope.sender, envelope.body
        wrong = objection(envelope)
        if wrong is not None:
            return self._envelope("", Fault(f"{self.me} was sent {wrong}", permanent=True))
        is_behind = envelope.document > self.consumer.federation.version
        if not is_behind and not self._knows(sender):
            fault = Fault(f"{sender} is not a member of the federation", permanent=True)
            return self._envelope("", fault)
        self._heard(turn, envelope)
        if is_behind and not isinstance(body, FetchDocument | Gossip):
            fault = Fault(f"{self.me} has an older federation document and fetches the newer one")
            return self._envelope(sender, fault)
        return self._envelope(sender, self._reply(turn, sender, body))

    def _knows(self, other: str) -> bool:
        """Whether it is a member, or was one and still has to do with this peer."""
        return (
            other in self.consumer.federation
            or other in self.producer.streams
            or any(name == other for name, _ in self.consumer.streams)
        )

    def _reply(self, turn: Turn, sender: str, body: Request | Reply) -> Reply:
        match body:
            case Notify():
                return self._notified(turn, sender, body)
            case ChangeSub():
                return self.producer.change_sub(turn, sender, body)
            case Hello():
                self._hello_from(turn, sender, body)
                return self.hello(sender)
            case Pull():
                return self.producer.pull(turn, sender, body)
            case Acknowledge():
                self.producer.stands(turn, sender, body.standing)
                return Done()
            case Gossip():
                return Done()
            case FetchDocument():
                return Document(self.document_xml)
            case _:
                return Fault(f"{type(body).__name__} is not a request", permanent=True)

    def _notified(self, turn: Turn, sender: str, notify: Notify) -> Notified:
        outcomes = self.consumer.accept_all(turn, sender, notify.items)
        for item, outcome in zip(notify.items, outcomes, strict=True):
            if item.source != sender and outcome.taken:
                self.consumer.acknowledge_later(turn, item.source)
        joined = max((item.joined for item in notify.items if item.source == sender), default=0)
        stream = self.consumer.streams.get((sender, joined))
        return Notified(outcomes, stream.standing if stream else None)

    def _hello_from(self, turn: Turn, sender: str, hello: Hello) -> None:
        self.consumer.hello_from(turn, sender, hello)
        self.producer.hello_from(turn, sender, hello)

    def hello(self, other: str) -> Hello:
        stream = self.producer.streams.get(other)
        view = self.consumer.merger.views.get(other)
        return Hello(
            self.producer.joined,
            self.epoch,
            stream.number if stream else 0,
            tuple(stream.fences) if stream else (),
            stream.view_epoch if stream else 0,
            stream.version if stream else 0,
            self.producer.table.digest(other),
            self.consumer.standing(other),
            view.version if view else 0,
            str(view.digest) if view else "",
        )

    def _heard(self, turn: Turn, envelope: Envelope) -> None:
        federation = self.consumer.federation
        self.membership.heard(envelope.reachability, federation.organisations)
        link = self.forwarder.link(envelope.sender)
        link.heard(turn.now)
        link.claimed_document = envelope.document
        known = max(federation.version, link.useless_document)
        if known < envelope.document != self.postponed:
            link.wants_document = True

    def _envelope(self, to: str, body: Request | Reply) -> Envelope:
        version = self.consumer.federation.version
        return Envelope(self.me, version, self.membership.news_for(to), body)

    # --- answers to our requests ------------------------------------------------------------------

    def answered(self, turn: Turn, number: int, envelope: Envelope | None) -> bytes | None:
        """What came back, or nothing in time; the federation document if that was the answer."""
        other = self._open.pop(number, None)
        if other is None:
            return None
        link = self.forwarder.link(other)
        request = link.request
        assert request is not None
        if envelope is None:
            self._unanswered(turn, link, request)
            return None
        if envelope.sender != other or objection(envelope) is not None:
            self._again(turn, link, request)
            link.refused(turn.now)
            return None
        self._heard(turn, envelope)
        healed = self.membership.saw(other, reachable=True)
        if healed and not isinstance(request, Hello):
            self.consumer.ask(other)
        return self._conclude(turn, link, request, envelope.body)

    def _conclude(
        self, turn: Turn, link: Link, request: Request, body: Request | Reply
    ) -> bytes | None:
        other = link.other
        document: bytes | None = None
        busy = False
        match request, body:
            case Notify(), Notified() if len(request.items) == len(body.outcomes):
                busy = self._outcomes(turn, link, request, body)
            case ChangeSub(), SubChanged():
                self.consumer.sub_changed(turn, other, request, body)
            case ChangeSub(), SendAll():
                if other in self.consumer.merger.views:
                    self.consumer.merger.tell_all(other)
            case Hello(), Hello():
                self._hello_from(turn, other, body)
            case Pull(), Pulled():
                self.consumer.pulled(turn, other, request, body)
            case FetchDocument(), Document():
                document = body.xml
            case (_, Done()) | (Gossip(), _):
                pass
            case FetchDocument(), Fault(permanent=True):
                link.useless_document = link.claimed_document
            case Notify(), Fault(permanent=True) if self.me not in self.consumer.federation:
                self.producer.abandon(turn, other)  # it does not know us any more, nor ever will
            case _:
                busy = True
                self._again(turn, link, request)
        if busy:
            link.refused(turn.now)
        else:
            link.answered()
        return document

    def _outcomes(self, turn: Turn, link: Link, notify: Notify, reply: Notified) -> bool:
        """Whether the other asked for a pause."""
        other = link.other
        if reply.standing is not None:
            self.producer.stands(turn, other, reply.standing)
        first_parcel = len(notify.items) - len(link.sent)
        self.forwarder.outcomes(turn, link, reply.outcomes[first_parcel:])
        for item, outcome in zip(notify.items, reply.outcomes, strict=True):
            if not outcome.taken and outcome.permanent:
                self.producer.refused(turn, other, item, outcome.reason)
        return not any(each.taken or each.permanent for each in reply.outcomes)

    def _unanswered(self, turn: Turn, link: Link, request: Request) -> None:
        self.membership.saw(link.other, reachable=False)
        self.membership.missed(link.other)
        self.forwarder.bypass(turn, link.other)
        self._again(turn, link, request)
        link.wants_gossip = link.other in self.consumer.federation
        link.unanswered(turn.now)

    def _again(self, turn: Turn, link: Link, request: Request) -> None:
        """The request has to be made once more, in its time."""
        match request:
            case Hello():
                self.consumer.ask(link.other)
            case ChangeSub():
                self.consumer.merger.failed(link.other)
            case FetchDocument():
                link.wants_document = True
            case Pull():
                link.pull_at = turn.now
            case Acknowledge():
                link.acknowledge_at = turn.now
            case Notify():
                stream = self.producer.streams.get(link.other)
                if stream is not None and stream.acknowledged < stream.number:
                    self.producer.resending[link.other] = stream.acknowledged + 1
            case Gossip():
                link.wants_gossip = True

    # --- what there is to say ---------------------------------------------------------------------

    def due(self, turn: Turn) -> None:
        self.producer.due(turn)
        for link in self.forwarder.links.values():
            link.rested(turn.now)
        if self.gossip_at <= turn.now:
            self.gossip_at = turn.now + self.tuning.gossip_every_s
            self.postponed = 0  # perhaps all that was owed is delivered by now
            others = sorted(name for name in self.consumer.federation.organisations)
            others = [name for name in others if name != self.me]
            if others:
                self._gossiped += 1
                self.forwarder.link(others[self._gossiped % len(others)]).wants_gossip = True

    def sends(self, turn: Turn) -> Iterable[Send]:
        for link in list(self.forwarder.links.values()):
            if link.state is State.IDLE:
                request = self._next_request(turn, link)
                if request is not None:
                    self._requests += 1
                    self._open[self._requests] = link.other
                    link.asks(request)
                    link.wants_gossip = False
                    yield Send(link.other, self._requests, self._envelope(link.other, request))

    def _next_request(self, turn: Turn, link: Link) -> Request | None:
        other = link.other
        if link.wants_document:
            link.wants_document = False
            return FetchDocument()
        if link.wants_hello:
            link.wants_hello = False
            link.acknowledge_at = None
            return self.hello(other)
        change = self.consumer.change_sub(other, self.epoch)
        if change is not None:
            return change
        if link.pull_at is not None and link.pull_at <= turn.now:
            link.pull_at = None
            pull = self.consumer.pull(turn, other)
            if pull is not None:
                link.acknowledge_at = None
                return pull
        items = self.producer.next_items(turn, other)
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

    def next_due(self) -> float:
        due = min(self.producer.next_due(), self.gossip_at)
        for link in self.forwarder.links.values():
            due = min(due, link.deadline())
        return due
