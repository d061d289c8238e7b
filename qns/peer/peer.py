"""Peer: one organisation's Quality Notification Service, without any I/O (thesis 5.4).

A batch of inputs and the time go in; a transaction, requests to other peers, answers and a wake-up
time come out. The peer hands each input to the layer that handles it: the Internal Interface Layer
serves the users, the External Diffusion Layer exchanges messages with other peers. Whoever drives
the peer commits the transaction before anything else leaves (`gateway.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, Final

from qns.cbr.subscription import Subscription
from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.requests import Send
from qns.edl.seals import Sealer
from qns.errors import Busy, NotAllowed, QnsError
from qns.federation.acceptance import Freshness, freshness
from qns.federation.document import Federation
from qns.federation.roots import Anchor
from qns.federation.roots_xml import write_expires
from qns.federation.source_warnings import source_warnings
from qns.iil.layer import InternalInterfaceLayer
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Answer,
    DropDeadLetter,
    InstallDocument,
    ListSubscriptions,
    Ok,
    Pause,
    Publish,
    Published,
    PullDeliveries,
    RedeliverDeadLetter,
    Renew,
    Resume,
    Subscribe,
    Subscribed,
    Subscriptions,
    Unsubscribe,
)
from qns.peer.event_log import EventLog
from qns.peer.identity import Identity
from qns.peer.inputs import Answered, Effects, Input, Output, Outputs, Received
from qns.peer.outcomes import NONE, IncidentKind
from qns.peer.publications import Publications
from qns.peer.reconfiguration import install_document
from qns.peer.row_view import RowView
from qns.peer.status import PeerStatus
from qns.peer.turn import Stopwatch, Turn, no_stopwatch

_LARGEST_EPOCH: Final = 2**52
"""Upper bound on a plausible epoch; a larger claim is ignored."""

_CALLED_WITHIN_GOSSIPS: Final = 3
"""A peer that is at its endpoint is called within as many intervals of gossip."""


@dataclass(slots=True, eq=False)
class Peer:
    identity: Identity
    federation: Federation
    log: EventLog
    view: RowView
    iil: InternalInterfaceLayer
    edl: ExternalDiffusionLayer
    publications: Publications
    anchor: Anchor | None = None
    """From here on the peer trusts signed documents."""
    sealer: Sealer | None = None
    """Seals what leaves this peer; None if it has no seal certificate."""
    stopwatch: Stopwatch = no_stopwatch
    """Measures what the requests of each member cost."""
    setback: IncidentKind | None = None
    """OWN_LOSS or OWN_COPY if this peer has found that its store is behind its own past, OWN_TWIN
    if another peer seems to run as this organisation."""
    is_fenced: bool = False
    """True if this peer has found a twin: it only serves readers until it is started again."""
    _called_at: float = 0.0
    """When another peer last called, or the start."""
    _is_new: bool = False
    """True if the store was created by this start."""
    _handlers: dict[type, Callable[[Turn, Any], Answer | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.edl.install = partial(install_document, self)
        self._handlers = {
            Subscribe: self._subscribe,
            Unsubscribe: partial(self.iil.unsubscribe, interest=self.edl),
            Renew: self.iil.renew,
            Pause: self.iil.pause,
            Resume: self.iil.resume,
            ListSubscriptions: self._list_subscriptions,
            PullDeliveries: self.iil.pull,
            AcknowledgeDeliveries: self.iil.acknowledge,
            Publish: self._publish,
            InstallDocument: self._install_document,
            RedeliverDeadLetter: self._redeliver,
            DropDeadLetter: self._drop_dead_letter,
            Answered: self._handle_answer,
        }

    @property
    def me(self) -> str:
        return self.identity.organisation

    @property
    def _silence_s(self) -> float:
        """A peer that is at its endpoint is called within this time."""
        return _CALLED_WITHIN_GOSSIPS * self.edl.tuning.gossip_every_s

    @property
    def is_member(self) -> bool:
        return self.me in self.federation

    @property
    def status(self) -> PeerStatus:
        return PeerStatus(
            self.identity,
            self.federation,
            self.log,
            self.iil,
            self.edl,
            self.setback,
            self.is_fenced,
            self.sealer,
        )

    # --- turns ------------------------------------------------------------------------------------

    def start(self, turn: Turn, *, restored: bool, is_new: bool = False) -> None:
        """Begins to work after the store was opened, or created if `is_new`."""
        self.view.begin(turn.transaction)
        turn.record("start", epoch=self.identity.epoch, restored=restored)
        self._is_new, self._called_at = is_new, turn.now
        if restored:
            self._report_setback(turn)
        self.apply_document(turn, self.federation, self.federation)
        self.edl.start(turn, restored=restored)

    def turn(self, inputs: Sequence[Input], now: float) -> tuple[Turn, Effects]:
        """Handles a batch of inputs in order."""
        turn = Turn(now, self.stopwatch)
        self.view.begin(turn.transaction)
        self._check_age(turn)
        self.iil.end_expired(turn, interest=self.edl)
        answers: Outputs = []
        for kind, batch in groupby(inputs, type):
            if kind is Received and self.is_fenced:
                answers += [_fenced_out(self.me) for _ in batch]
            elif kind is Received:
                self._called_at = turn.now
                envelopes = [each.envelope for each in batch if isinstance(each, Received)]
                answers += self.edl.handle_requests(turn, envelopes)
            else:
                answers += [self._answer(turn, each) for each in batch]
        return turn, self.finish(turn, answers)

    def _answer(self, turn: Turn, input: Input) -> Output:
        try:
            return self._handlers[type(input)](turn, input)
        except QnsError as error:
            return error.with_traceback(None)  # which would hold the request

    def finish(self, turn: Turn, answers: Outputs) -> Effects:
        """Does what is due by now, and collects what the turn makes visible."""
        self._check_age(turn)  # the turn may have installed a document
        self.iil.end_expired(turn, interest=self.edl)
        self.iil.end_leases(turn)
        alone_s = turn.now - self._called_at
        self.edl.requests.handle_due(turn, is_alone=alone_s > 2 * self._silence_s)
        self._find_twin(turn)
        self._follow_newest_epoch(turn)
        self._notice_setback(turn)
        for key in self.log.collect(turn):
            self.edl.forget(turn, key)
        self.iil.put_counters(turn)
        if self.edl.consumer.evidence is not None:
            self.edl.consumer.evidence.delete_old(turn)
        wake_at = min(self.iil.next_due(), self.log.next_expiry())
        sends: list[Send] = []
        if not self.is_fenced:
            sends += self.edl.requests.next_sends(turn)
            wake_at = min(wake_at, self.edl.requests.next_due())
        self.log.trim(turn.now)
        outcomes = turn.outcomes if turn.has_outcomes else NONE
        return Effects(answers, sends, turn.records, outcomes, wake_at, turn.costs)

    def _find_twin(self, turn: Turn) -> None:
        """Gives way to another peer that runs as this organisation and is called by members."""
        if self.is_fenced or not self.edl.suggests_twin:
            return
        called_at = self._called_at
        if self.edl.proves_twin(turn.now, called_at=called_at, silence_s=self._silence_s):
            self.is_fenced = True
            self._report_setback(turn)

    def _follow_newest_epoch(self, turn: Turn) -> None:
        """Begins an epoch after the newest one that others know, if this disk has lost it."""
        newest = self.edl.newest_forgotten_epoch()
        if self.identity.epoch <= newest < _LARGEST_EPOCH:
            epoch = self.identity.begin_epoch_after(turn, newest)
            turn.record("start", epoch=epoch, restored=True)
            self._report_setback(turn)
            self.iil.epoch = epoch
            self.edl.begin_epoch(turn, epoch)

    def _notice_setback(self, turn: Turn) -> None:
        """Reports that the store went back in time, if only another member shows it."""
        member = self.edl.setback_proved_by
        if member and self.setback is None:
            self._report_setback(turn, shown_by=member)
            self.edl.doubt_views(turn)

    def _report_setback(self, turn: Turn, **fields: str) -> None:
        self.setback = IncidentKind.OWN_LOSS if self._is_new else IncidentKind.OWN_COPY
        if self.edl.suggests_twin:
            self.setback = IncidentKind.OWN_TWIN
        turn.warn(self.setback, epoch=self.identity.epoch, **fields)

    # --- inputs that concern both layers ----------------------------------------------------------

    def _subscribe(self, turn: Turn, request: Subscribe) -> Subscribed:
        self._require_membership()
        answer, subscription = self.iil.subscribe(turn, request, interest=self.edl)
        return replace(answer, warnings=self._warnings(subscription))

    def _list_subscriptions(self, turn: Turn, request: ListSubscriptions) -> Subscriptions:
        found = self.iil.list_subscriptions(turn, request).subscriptions
        table = self.iil.table
        return Subscriptions(
            tuple(
                replace(each, warnings=self._warnings(table[each.id].subscription))
                for each in found
            )
        )

    def _warnings(self, subscription: Subscription) -> tuple[str, ...]:
        return source_warnings(subscription, self.edl.producer.readers.mapper, self.me)

    def _publish(self, turn: Turn, request: Publish) -> Published:
        self._require_membership()
        logged = self.publications.accept(turn, request.event, self.federation)
        if logged is None:
            return Published(request.event.id, (), again=True)
        self.iil.offer(turn, (logged,))
        return Published(request.event.id, tuple(self.edl.diffuse(turn, logged)))

    def _redeliver(self, turn: Turn, request: RedeliverDeadLetter) -> Ok:
        self.edl.redeliver(turn, request.number)
        return Ok()

    def _drop_dead_letter(self, turn: Turn, request: DropDeadLetter) -> Ok:
        self.edl.drop_dead_letter(turn, request.number)
        return Ok()

    def _handle_answer(self, turn: Turn, answered: Answered) -> None:
        envelope = answered.envelope
        document = self.edl.requests.handle_answer(
            turn, answered.number, envelope, answered.problem
        )
        if document is None or envelope is None:
            return
        sender, version, reason = envelope.sender, envelope.document, "it is not what was claimed"
        try:
            install_document(self, turn, document, sender)
        except QnsError as error:  # it may not follow, or has to wait
            reason = str(error)
        if self.edl.dialogue.reject_document(sender, version, reason):
            turn.warn(IncidentKind.DOCUMENT, sender=sender, document=version, reason=reason)

    def _install_document(self, turn: Turn, request: InstallDocument) -> Ok:
        install_document(self, turn, request.xml)
        return Ok()

    def apply_document(self, turn: Turn, old: Federation, new: Federation) -> None:
        """Makes both layers follow the document that is in force from now on."""
        self.federation = new
        if new.schema != old.schema:
            self.log.schema = new.schema
            self.edl.apply_schema(new.schema)
            self.iil.apply_schema(turn, new.schema, interest=self.edl)
        self.edl.apply_document(turn, old, new)
        self.iil.apply_document(turn, old, new, interest=self.edl)

    def _check_age(self, turn: Turn) -> None:
        """Closes the peer if the grace of its document is over, and opens it again."""
        grace_s = self.edl.tuning.document_grace_s
        age = freshness(self.federation, turn.now, grace_s)
        self.edl.dialogue.is_closed = age is Freshness.CLOSED

    def _require_membership(self) -> None:
        if self.is_fenced:
            raise _fenced_out(self.me)
        if self.edl.dialogue.is_closed and self.federation.expires is not None:
            raise Busy(
                f"the federation document of {self.me} expired at "
                f"{write_expires(self.federation.expires)}, and the grace is over",
                remedy="the operator puts a fresh document in force: qns federation publish",
            )
        if not self.is_member:
            raise NotAllowed(
                f"{self.me} is not a member of the federation {self.federation.name}",
                remedy="a newer federation document can let it in",
            )


def _fenced_out(me: str) -> Busy:
    return Busy(
        f"another peer runs as {me}, with a copy of this store",
        remedy="its operator stops one of the two and starts the other again",
    )
