"""Peer: one organisation's Quality Notification Service, without any I/O (thesis 5.4).

The Internal Interface Layer and the External Diffusion Layer, joined. A batch of inputs and the
time go in; a transaction, requests to other peers, answers and a wake-up time come out. Whoever
drives the peer commits the transaction before anything else leaves (`gateway.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from qns.cbr.event import Event
from qns.d2q.event_xml import MAX_EVENT_BYTES, write_event
from qns.edl.consumer import Consumer
from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.messages import Envelope, Notify
from qns.edl.producer import Producer
from qns.errors import Busy, DuplicateId, LimitExceeded, NotAllowed, QnsError
from qns.event_log import EventLog, KnownEvent
from qns.federation.document import Federation
from qns.iil.interpreter import readable
from qns.iil.layer import InternalInterfaceLayer, checked_lifetime
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    Deliveries,
    InstallDocument,
    ListSubscriptions,
    Ok,
    Pause,
    Publish,
    Published,
    Read,
    RedeliverDeadLetter,
    Renew,
    Resume,
    Subscribe,
    Subscribed,
    Subscriptions,
    Unsubscribe,
    Unsubscribed,
)
from qns.iil.subscriptions import LocalSubscription
from qns.inputs import Answered, Effects, Input, Outputs, Received
from qns.publications import Publications, digest_of
from qns.reconfiguration import follow, install
from qns.tables import IDENTITY, IdentityRow, PublicationRow
from qns.tuning import Tuning
from qns.turn import Turn

_FARTHEST_EPOCH: Final = 2**40
"""Nobody has started so often: who says so lies."""


@dataclass(slots=True, eq=False)
class Peer:
    identity: IdentityRow
    federation: Federation
    tuning: Tuning
    log: EventLog
    iil: InternalInterfaceLayer
    edl: ExternalDiffusionLayer
    publications: Publications
    _handlers: dict[type, Callable[[Turn, Any], Answer | Envelope | None]] = field(init=False)

    def __post_init__(self) -> None:
        self._handlers = {
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Renew: self._renew,
            Pause: self._pause,
            Resume: self._resume,
            ListSubscriptions: self._list,
            Publish: self._publish,
            Read: self._read,
            AcknowledgeDeliveries: self._acknowledge,
            InstallDocument: self._install,
            RedeliverDeadLetter: self._redeliver,
            Received: self._received,
            Answered: self._answered,
        }

    @property
    def me(self) -> str:
        return self.identity.organisation

    @property
    def is_member(self) -> bool:
        return self.me in self.federation

    @property
    def consumer(self) -> Consumer:
        return self.edl.consumer

    @property
    def producer(self) -> Producer:
        return self.edl.producer

    def start(self, turn: Turn, *, restored: bool) -> None:
        """Says hello to everybody: here I am, what have you, what do you miss?"""
        turn.record("start", epoch=self.identity.epoch, restored=restored)
        follow(self, turn, self.federation)
        if restored:
            for stream in self.producer.streams.values():
                stream.raise_fence(turn, self.identity.epoch)
            for producer in self.consumer.merger.views:
                self.rewound(turn, producer)
        for producer in self.consumer.merger.views:
            self.edl.forwarder.link(producer).wants_hello = True
        self.producer.start(turn)
        self.consumer.start(turn)
        self.edl.gossip_at = turn.now + self.tuning.gossip_every_s

    # --- turns ------------------------------------------------------------------------------------

    def turn(self, inputs: Sequence[Input], now: float) -> tuple[Turn, Effects]:
        turn = Turn(now)
        self._expire(turn)
        answers: Outputs = []
        for each in inputs:
            if type(each) is not Received or type(each.envelope.body) is not Notify:
                self.iil.offer_now(turn)
            try:
                answers.append(self._handlers[type(each)](turn, each))
            except QnsError as error:
                answers.append(error.with_traceback(None))  # which would hold the request, too
        return turn, self.finish(turn, answers)

    def finish(self, turn: Turn, answers: Outputs) -> Effects:
        """What is due by now, and all that there is to say."""
        self.iil.offer_now(turn)
        self._expire(turn)
        self.iil.dispatcher.lapse(turn)
        self.edl.due(turn)
        ahead = max(self.consumer.ahead, *(each.epoch for each in self.producer.lost.values()), 0)
        if self.identity.epoch <= ahead < _FARTHEST_EPOCH:
            self._jump(turn, ahead + 1)
        for key in self.log.collect(turn):
            self.iil.dispatcher.forget(turn, key)
            self.producer.forget(turn, key)
        self.iil.table.put_counters(turn)
        sends = list(self.edl.sends(turn))
        wake_at = min(
            self.iil.table.next_expiry(),
            self.iil.dispatcher.next_lapse(),
            self.log.next_expiry(),
            self.edl.next_due(),
        )
        return Effects(answers, sends, turn.records, wake_at)

    def _expire(self, turn: Turn) -> None:
        for subscription in self.iil.table.expired(turn.now):
            self.end(turn, subscription, "expired")

    # --- users ------------------------------------------------------------------------------------

    def _subscribe(self, turn: Turn, request: Subscribe) -> Subscribed:
        self._must_be_member()
        subscription = self.iil.interpret(request)
        table = self.iil.table
        if request.id in table:
            known = table[request.id]
            if (known.owner, known.text, known.group) != (
                *(request.owner, request.text, request.group),
            ):
                raise DuplicateId(
                    f"subscription {request.id} exists already", remedy="choose another id"
                )
        else:
            self.iil.check_room()
            known = table.add(
                turn,
                request.id or table.free_id(self.identity.epoch),
                request.owner,
                subscription,
                text=request.text,
                shown=readable(request.text, subscription, self.federation.schema),
                group=request.group,
                expires_at=turn.now + request.lifetime_s,
            )
            self.consumer.merger.subscribe(turn, known.id, subscription)
            for source in self.log.sources():
                if source not in self.consumer.merger.views:  # this organisation, a former member
                    self.iil.catch_up(turn, known, source, late=True)
            for producer in self.consumer.merger.views:
                self.wait_for(turn, known, producer, late=True)
        pending = self.iil.stability.pending(known.id)
        return Subscribed(known.id, tuple(pending), known.expires_at)

    def _unsubscribe(self, turn: Turn, request: Unsubscribe) -> Unsubscribed:
        subscription = self.iil.table.owned(request.id, request.owner)
        return Unsubscribed(request.id, self.end(turn, subscription, "unsubscribed"))

    def end(self, turn: Turn, subscription: LocalSubscription, why: str) -> int:
        dropped = self.iil.end(turn, subscription, why)
        self.consumer.merger.unsubscribe(turn, subscription.id)
        return dropped

    def _renew(self, turn: Turn, request: Renew) -> Subscribed:
        subscription = self.iil.table.owned(request.id, request.owner)
        expires_at = turn.now + checked_lifetime(request.lifetime_s)
        self.iil.table.renew(turn, subscription, expires_at)
        return Subscribed(request.id, tuple(self.iil.stability.pending(request.id)), expires_at)

    def _pause(self, turn: Turn, request: Pause) -> Ok:
        subscription = self.iil.table.owned(request.id, request.owner)
        self.iil.table.change(turn, subscription, "pause")
        return Ok()

    def _resume(self, turn: Turn, request: Resume) -> Ok:
        subscription = self.iil.table.owned(request.id, request.owner)
        self.iil.table.change(turn, subscription, "resume")
        self.iil.dispatcher.resume(turn, subscription)
        return Ok()

    def _list(self, _: Turn, request: ListSubscriptions) -> Subscriptions:
        return self.iil.list(request.owner)

    def _read(self, _: Turn, request: Read) -> Deliveries:
        return self.iil.read(request)

    def _acknowledge(self, turn: Turn, request: AcknowledgeDeliveries) -> Ok:
        self.iil.table.owned(request.id, request.owner)
        self.iil.dispatcher.acknowledge(turn, request.id, request.upto)
        return Ok()

    # --- the Quality Factory ----------------------------------------------------------------------

    def _publish(self, turn: Turn, request: Publish) -> Published:
        event = request.event
        self._must_be_member()
        if event.source != self.me:
            raise NotAllowed(
                f"{self.me} cannot publish for {event.source}",
                remedy=f"publish it at the peer of {event.source}",
            )
        if event.data_class not in self.federation[self.me].hosts:
            raise NotAllowed(
                f"{self.me} does not host {event.data_class}",
                remedy="the federation document says who hosts what",
            )
        digest = digest_of(event)
        if self.publications.has(event, digest, self.log.get((self.me, event.id))):
            return Published(event.id, (), again=True)
        if len(self.log) >= self.tuning.most_events:
            raise Busy(f"{self.me} holds {len(self.log)} events", remedy="publish it again later")
        return Published(event.id, tuple(self._diffuse(turn, event, digest)))

    def _diffuse(self, turn: Turn, event: Event, digest: bytes) -> list[str]:
        if event.published_us is None:
            event = event._replace(published_us=int(turn.now * 1_000_000))
        xml = write_event(event, self.federation.schema)
        if len(xml) > MAX_EVENT_BYTES:
            raise LimitExceeded(
                f"event {event.id} has {len(xml):,} bytes of XML",
                remedy=f"at most {MAX_EVENT_BYTES:,}",
            )
        sequence = self.identity.published + 1
        self.become(turn, self.identity._replace(published=sequence))
        self.publications.remember(turn, PublicationRow(event.id, sequence, digest))
        position = (self.identity.joined, self.identity.epoch, sequence)
        known = KnownEvent(event, xml, position, turn.now + event.available_s, taken=True)
        self.log.add(turn, known)
        turn.record(
            "pub",
            event=event,
            joined=position[0],
            epoch=position[1],
            sequence=sequence,
        )
        self.iil.offer(turn, known)
        return self.producer.diffuse(turn, known)

    # --- other peers ------------------------------------------------------------------------------

    def _received(self, turn: Turn, received: Received) -> Envelope:
        return self.edl.received(turn, received.envelope)

    def _answered(self, turn: Turn, answered: Answered) -> None:
        document = self.edl.answered(turn, answered.number, answered.envelope)
        if document is None or answered.envelope is None:
            return
        claimed, sender = answered.envelope.document, answered.envelope.sender
        with suppress(QnsError):  # another federation, or owed events to be delivered before
            self._install(turn, InstallDocument(document))
        if max(self.federation.version, self.edl.postponed) < claimed:
            self.edl.forwarder.link(sender).useless_document = claimed

    def _redeliver(self, turn: Turn, request: RedeliverDeadLetter) -> Ok:
        custody = self.edl.forwarder.custody
        if request.number not in custody.dead_letters:
            raise NotAllowed(f"there is no dead letter {request.number}")
        letter = custody.dead_letters[request.number]
        key = (letter.source, letter.event)
        if letter.source == self.me and not self.producer.send_again(turn, letter.receiver, key):
            raise NotAllowed(f"{letter.receiver} is not a member any more, or has it by now")
        parcel = custody.bury(turn, request.number)
        if letter.source != self.me:
            self.edl.forwarder.promise(turn, parcel)
        return Ok()

    # --- stability --------------------------------------------------------------------------------

    def wait_for(
        self, turn: Turn, subscription: LocalSubscription, producer: str, *, late: bool
    ) -> None:
        """The subscription is stable at the producer now, or waits until it is."""
        sources = subscription.subscription.sources
        if sources is not None and producer not in sources:
            return
        view = self.consumer.merger.views[producer]
        until = self.consumer.backlog_end(producer)
        self.iil.stability.wait(turn, subscription.id, producer, view.version, until, late=late)
        if until is not None:
            self.advanced(turn, producer, self.consumer.current(producer).last)

    def _stable(
        self, turn: Turn, subscription: LocalSubscription, producer: str, *, late: bool
    ) -> None:
        self.iil.catch_up(turn, subscription, producer, late=late)
        view = self.consumer.merger.views.get(producer)
        if view is None:
            return
        seen = subscription.subscription.projected(producer, view.projection.hosted)
        if seen is not None:
            turn.record(
                "stable",
                sub=subscription.id,
                producer=producer,
                joined=self.federation[producer].joined,
                epoch=self.consumer.current(producer).epoch,
                classes=sorted(seen.scope),
            )

    def advanced(self, turn: Turn, producer: str, last: int) -> None:
        for row in self.iil.stability.stable(turn, producer, last):
            self._stable(turn, self.iil.table[row.subscription], producer, late=bool(row.late))

    def rewound(self, turn: Turn, producer: str) -> None:
        """Nobody is stable at this producer until it has told which view it has."""
        if producer in self.consumer.merger.views:
            for subscription in self.iil.table:
                self.wait_for(turn, subscription, producer, late=False)

    # --- the federation ---------------------------------------------------------------------------

    def _install(self, turn: Turn, request: InstallDocument) -> Ok:
        install(self, turn, request.xml)
        return Ok()

    def _must_be_member(self) -> None:
        if not self.is_member:
            raise NotAllowed(
                f"{self.me} is not a member of the federation {self.federation.name}",
                remedy="a newer federation document can let it in",
            )

    def _jump(self, turn: Turn, epoch: int) -> None:
        """Others know a later life of this peer than it does itself: its disk was lost."""
        self.become(turn, self.identity._replace(epoch=epoch))
        self.edl.epoch = self.producer.epoch = self.consumer.epoch = epoch
        turn.record("start", epoch=epoch, restored=True)
        for name, stream in self.producer.streams.items():
            lost = self.producer.lost.pop(name, None)
            stream.raise_fence(turn, epoch, None if lost is None else lost.first)
        for inbound in self.consumer.streams.values():
            inbound.consumer_epoch = epoch
        for producer in self.consumer.merger.views:
            self.rewound(turn, producer)
            self.edl.forwarder.link(producer).wants_hello = True

    def become(self, turn: Turn, identity: IdentityRow) -> None:
        self.identity = identity
        turn.put(IDENTITY, identity)
