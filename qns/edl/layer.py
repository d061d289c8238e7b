"""External Diffusion Layer: the side of a peer that exchanges messages with other peers.

There is one link to each other peer. Over it go, one request at a time, the messages of the
producer side, the consumer side and the Forwarder (thesis 5.4.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Protocol

from qns.cbr.subscription import Subscription
from qns.d2q.schema import Schema
from qns.edl.consumer import Consumer
from qns.edl.custody import discard
from qns.edl.dialogue import Dialogue
from qns.edl.forwarder import Forwarder
from qns.edl.intake import Accepted, Intake
from qns.edl.link import Carried
from qns.edl.merge_subscriptions_table import ViewState
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
    Notified,
    Notify,
    OfferDocument,
    PullGap,
    RelayAcknowledgement,
    Reply,
    Request,
    Skip,
    Standing,
    entry_of,
)
from qns.edl.producer import Producer
from qns.edl.reachability import Reachability
from qns.edl.requests import Requests
from qns.edl.validation import validate_envelope
from qns.errors import Busy, NotAllowed, QnsError
from qns.federation.document import Federation
from qns.peer.event_log import EventKey, LoggedEvent
from qns.peer.layers import ViewProgress
from qns.peer.ports import Store
from qns.peer.tuning import Tuning
from qns.peer.turn import Turn


class InstallOffer(Protocol):
    """Puts a document in force that another organisation offers.

    `Peer` sets it after both are built, because only the whole peer can install a document.
    """

    def __call__(self, turn: Turn, xml: bytes, sender: str, /) -> None: ...


def _ignore_offer(turn: Turn, xml: bytes, sender: str, /) -> None:
    """Ignores the offer: a layer without a peer keeps its document."""


_OF_ANY_DOCUMENT = FetchDocument | Gossip | Acknowledge | RelayAcknowledgement
"""Requests that are served whatever document their sender has.

Acknowledgements name the incarnations of both ends. A producer that comes back to the federation
installs the newer document only when everything that it owed is acknowledged.
"""


@dataclass(slots=True, eq=False)
class ExternalDiffusionLayer:
    me: str
    tuning: Tuning
    reachability: Reachability
    producer: Producer
    consumer: Consumer
    forwarder: Forwarder
    document: InitVar[bytes]
    """The federation document in force, byte for byte."""
    install: InstallOffer = _ignore_offer
    intake: Intake = field(init=False)
    dialogue: Dialogue = field(init=False)
    requests: Requests = field(init=False)

    def __post_init__(self, document: bytes) -> None:
        self.intake = Intake(self.consumer)
        self.dialogue = Dialogue(
            self.me, self.reachability, self.producer, self.consumer, self.forwarder, document
        )
        self.requests = Requests(
            self.me,
            self.tuning,
            self.reachability,
            self.producer,
            self.consumer,
            self.forwarder,
            self.dialogue,
            self.intake,
        )

    # --- start, documents and epochs --------------------------------------------------------------

    def recover_from(self, store: Store, subscriptions: Iterable[tuple[str, Subscription]]) -> None:
        """Recovers every component; `subscriptions` are those of the users."""
        self.consumer.merger.recover_from(store, self.consumer.federation, subscriptions)
        self.consumer.recover_from(store)
        self.forwarder.recover_from(store)
        self.producer.recover_from(store)

    def start(self, turn: Turn, *, restored: bool) -> None:
        """Makes a hello to every producer due, to compare what both sides have."""
        if restored:
            self.begin_epoch(turn, self.producer.epoch)
        for producer in self.consumer.merger.table:
            self.consumer.want_hello(producer)
        self.producer.start(turn)
        self.consumer.start(turn)
        self.forwarder.start(turn)
        self.requests.start(turn)

    def begin_epoch(self, turn: Turn, epoch: int) -> None:
        """Begins an epoch after a restore: raises fences and compares every view again."""
        self.reachability.begin_epoch(epoch)
        self.producer.begin_epoch(turn, epoch)
        self.consumer.begin_epoch(epoch)
        for producer in self.consumer.merger.table:
            self.consumer.unconfirm_view(turn, producer)
            self.consumer.want_hello(producer)

    def doubt_views(self, turn: Turn) -> None:
        """Compares the views of all consumers: this peer may have forgotten what they have sent."""
        self.producer.uncompared.lose_all(turn, self.producer.streams)
        for other in self.consumer.merger.table:
            self.consumer.want_hello(other)

    def begin_incarnation(self, turn: Turn, incarnation: int) -> None:
        """Ends every stream and view: this organisation has joined again."""
        self.producer.begin_incarnation(turn, incarnation)
        self.consumer.begin_incarnation(turn, incarnation)

    def newest_forgotten_epoch(self) -> int:
        """Returns the newest epoch of this peer that only others know; 0 if there is none."""
        return self.producer.claims.newest

    @property
    def setback_proved_by(self) -> str:
        """The member that has more of this peer's past than the peer itself; "" if none has."""
        return self.producer.claims.setback_proved_by

    @property
    def suggests_twin(self) -> bool:
        """True if another peer may run as this organisation."""
        return self.producer.claims.suggests_twin

    def proves_twin(self, now: float, *, called_at: float, silence_s: float) -> bool:
        """True if another peer runs as this organisation, and this one should step down."""
        claims, others = self.producer.claims, len(self.producer.streams)
        return claims.proves_twin(now, others, called_at=called_at, silence_s=silence_s)

    def apply_schema(self, schema: Schema) -> None:
        """Reads and writes subscriptions and events with a schema that has grown."""
        self.consumer.schema = self.consumer.merger.schema = schema
        self.producer.table.apply_schema(schema)

    def apply_document(self, turn: Turn, old: Federation, new: Federation) -> None:
        """Re-routes views, streams and trees to the members and hosts of the new document."""
        consumer = self.consumer
        consumer.federation = new
        consumer.seals.apply_document(turn, new)
        if consumer.evidence is not None:
            consumer.evidence.apply_document(turn, self.dialogue.document_xml)
        consumer.merger.apply_document(turn, old, new)
        self.producer.apply_document(turn, old, new)
        consumer.apply_document(turn, old, new)
        self.reachability.apply_document(old, new)
        self.forwarder.apply_document(turn, old, new)
        for link in self.forwarder.links.values():
            link.wants_hello &= link.other in consumer.merger.table
        for name, view in consumer.merger.table.views.items():
            if view.state in (ViewState.UNKNOWN, ViewState.UNKNOWN_SENDING):
                consumer.want_hello(name)
        if new.version > old.version:
            self._announce(new)

    def _announce(self, federation: Federation) -> None:
        """Makes a message due to each member that may have an older document."""
        for name in federation.organisations:
            if name != self.me and self.me in federation:
                link = self.forwarder.link(name)
                link.wants_gossip |= link.claimed_document < federation.version

    # --- interest of the users (qns.peer.layers.Interest) -----------------------------------------

    def add_interest(self, turn: Turn, id: str, subscription: Subscription) -> None:
        self.consumer.merger.subscribe(turn, id, subscription)

    def remove_interest(self, turn: Turn, id: str) -> None:
        self.consumer.merger.unsubscribe(turn, id)

    def views(self) -> Iterator[ViewProgress]:
        return self.consumer.views()

    # --- events of this organisation --------------------------------------------------------------

    def diffuse(self, turn: Turn, logged: LoggedEvent) -> list[str]:
        """Sends a published event to the interested organisations and returns these."""
        return self.producer.diffuse(turn, logged)

    def forget(self, turn: Turn, key: EventKey) -> None:
        """Removes an event that has left the log."""
        self.producer.forget(turn, key)

    def redeliver(self, turn: Turn, number: int) -> None:
        """Sends a dead letter once more."""
        custody = self.forwarder.custody
        letter = custody.dead_letter(number)
        is_own = letter.source == self.me
        key = (letter.source, letter.event)
        if is_own and not self.producer.send_again(turn, letter.receiver, key):
            raise NotAllowed(
                f"{letter.receiver} is not a member any more, or has it by now, or "
                f"{letter.receiver} may not read it"
            )
        parcel = custody.take_dead_letter(turn, number)
        if not is_own:
            self.forwarder.promise(turn, parcel)

    def drop_dead_letter(self, turn: Turn, number: int) -> None:
        """Gives up a dead letter and declares the loss."""
        custody = self.forwarder.custody
        custody.dead_letter(number)
        discard(turn, custody.take_dead_letter(turn, number))

    # --- requests of other peers ------------------------------------------------------------------

    def handle_requests(
        self, turn: Turn, envelopes: Sequence[Envelope]
    ) -> list[Envelope | QnsError]:
        """Handles requests in order and returns their replies.

        The events of consecutive Notify requests are matched together.
        """
        accepted: Accepted = []
        replies: list[Envelope | QnsError] = []
        for envelope in envelopes:
            if type(envelope.body) is not Notify:
                self._offer(turn, accepted)
            begun = turn.stopwatch()
            try:
                replies.append(self._handle(turn, envelope, accepted))
            except QnsError as error:
                replies.append(error.with_traceback(None))  # which would hold the request
            turn.charge(envelope.sender, begun)
        self._offer(turn, accepted)
        return replies

    def _offer(self, turn: Turn, accepted: Accepted) -> None:
        """Matches the accepted events together; their producers share the cost."""
        sources, begun = [each.event.source for each in accepted], turn.stopwatch()
        self.intake.offer(turn, accepted)
        turn.charge_all(sources, begun)

    def _handle(self, turn: Turn, envelope: Envelope, accepted: Accepted) -> Envelope:
        sender, body = envelope.sender, envelope.body
        problem = validate_envelope(envelope)
        if problem is not None:
            fault = Fault(f"{self.me} was sent {problem}", permanent=True)
            return self.dialogue.envelope("", fault)
        if isinstance(body, OfferDocument):
            # The answer names the document from before the offer, which may be installed now.
            answer = self.dialogue.envelope("", Done())
            return answer._replace(body=self._offered(turn, sender, body))
        if sender == self.me and isinstance(body, FetchDocument):  # `qns peer check` reads it
            return self.dialogue.envelope("", Document(self.dialogue.document_xml))
        is_behind = envelope.document > self.consumer.federation.version
        if not self._knows(sender):
            # The sender may offer the newer document; its endpoint is not known here.
            reason = f"{sender} is not a member of the federation"
            fault = Fault(reason, permanent=not is_behind)
            return Envelope(self.me, self.consumer.federation.version, (), fault)
        self.dialogue.learn_from(turn, sender, envelope.document, envelope.reachability)
        if is_behind and not isinstance(body, _OF_ANY_DOCUMENT):
            fault = Fault(f"{self.me} has an older federation document and fetches the newer one")
            return self.dialogue.envelope(sender, fault, is_reply=True)
        if isinstance(body, ChangeSub) and envelope.document < self.consumer.federation.version:
            # Its view may lack what the consumer may read, or what is hosted, by the newer one.
            fault = Fault(f"{sender} has an older federation document")
            return self.dialogue.envelope(sender, fault, is_reply=True)
        if self.dialogue.is_closed and not isinstance(body, FetchDocument | Gossip):
            fault = Fault(f"the federation document of {self.me} has expired: it waits for another")
            return self.dialogue.envelope(sender, fault, is_reply=True)
        reply = self._reply(turn, sender, body, accepted)
        return self.dialogue.envelope(sender, reply, is_reply=True)

    def _offered(self, turn: Turn, sender: str, offer: OfferDocument) -> Done | Fault:
        try:
            self.install(turn, offer.xml, sender)
        except Busy as error:
            return Fault(str(error))
        except QnsError as error:
            return Fault(str(error), permanent=True)
        return Done()

    def _knows(self, other: str) -> bool:
        """True if the other is a member, or was one and still has a stream here."""
        return (
            other in self.consumer.federation
            or other in self.producer.streams
            or self.consumer.knows(other)
        )

    def _reply(self, turn: Turn, sender: str, body: Request | Reply, accepted: Accepted) -> Reply:
        match body:
            case Notify():
                return self._notified(turn, sender, body, accepted)
            case ChangeSub():
                return self.producer.change_sub(turn, sender, body)
            case Hello():
                self.dialogue.handle_hello(turn, sender, body)
                return self.dialogue.hello(sender)
            case PullGap():
                return self.producer.pull_gap(turn, sender, body)
            case Acknowledge():
                self.producer.update_standing(turn, sender, body.standing)
                return Done()
            case RelayAcknowledgement():
                return self._relay_acknowledgement(turn, sender, body)
            case Gossip():
                return Done()
            case FetchDocument():
                return Document(self.dialogue.document_xml)
            case _:
                return Fault(f"{type(body).__name__} is not a request", permanent=True)

    def _notified(self, turn: Turn, sender: str, notify: Notify, accepted: Accepted) -> Notified:
        outcomes = self.intake.accept_all(turn, sender, notify.items, accepted)
        incarnation = 0
        for item, outcome in zip(notify.items, outcomes, strict=True):
            if item.source == sender:
                incarnation = max(incarnation, item.producer_incarnation)
            elif outcome.taken and entry_of(item).receiver == self.me:
                self.consumer.acknowledge_later(turn, item.source, item.producer_incarnation)
        return Notified(outcomes, self._standing_after(sender, incarnation, notify))

    def _standing_after(self, sender: str, incarnation: int, notify: Notify) -> Standing | None:
        """Returns how far the stream of the sender has come; None if it has sent nothing of its
        own.

        An earlier incarnation that has no stream here owes nothing to this peer. All that it sends
        is acknowledged, because it cannot join again before that.
        """
        stream = self.consumer.streams.get((sender, incarnation))
        if stream is not None:
            return stream.standing
        if not incarnation or not self.consumer.has_returned(sender, incarnation):
            return None
        own = [
            (entry_of(item).epoch, item.last if isinstance(item, Skip) else item.entry.number)
            for item in notify.items
            if (item.source, item.producer_incarnation, entry_of(item).receiver)
            == (sender, incarnation, self.me)
        ]
        if not own:
            return None
        consumer = self.consumer
        epoch, last = max(epoch for epoch, _ in own), max(last for _, last in own)
        return Standing(incarnation, consumer.incarnation, consumer.epoch, epoch, last, ())

    def _relay_acknowledgement(
        self, turn: Turn, sender: str, carried: RelayAcknowledgement
    ) -> Done | Fault:
        path, consumer = carried.path, carried.consumer
        if not path or (path[0], path[-1]) != (consumer, sender) or self.me in path:
            reason = f"an acknowledgement of {consumer} has not come this way"
            return Fault(reason, permanent=True)
        flaw = self.consumer.seals.acknowledgement_flaw(turn.now, carried)
        if flaw is not None:
            self.consumer.seals.refuse(turn, sender, consumer, flaw)
            return Fault(flaw)
        if carried.producer == self.me:
            self.producer.update_standing(turn, consumer, carried.standing, brought_by=sender)
            return Done()
        members = self.consumer.federation
        if consumer not in members or carried.producer not in members:
            return Fault(f"an acknowledgement of {consumer} is not one between two members")
        if not self.forwarder.relay_standing(
            carried.producer,
            consumer,
            Carried(carried.standing, path, carried.proof, carried.seal),
            turn.now,
        ):
            return Fault(f"{self.me} knows no way to {carried.producer}")
        return Done()
