"""Consumer side of the External Diffusion Layer: what this organisation wants from producers.

The Merger decides which view each producer gets; the Consumer sends it, and compares with the
producer's hello what both sides have. The streams from the producers are filled by the Intake
(thesis 5.4.4).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from qns.d2q.schema import Schema
from qns.edl.claims import Claims
from qns.edl.evidence_keeper import EvidenceKeeper
from qns.edl.forwarder import Forwarder
from qns.edl.inbound_stream import InboundStream, NewEpoch
from qns.edl.link import Carried
from qns.edl.merge_subscriptions_table import ViewState
from qns.edl.merger import Merger
from qns.edl.messages import ChangeSub, Fence, Hello, PullGap, Standing, SubChanged
from qns.edl.seals import Seals
from qns.federation.document import Federation
from qns.peer.event_log import EventLog
from qns.peer.layers import DeliverySink, ViewProgress
from qns.peer.ports import Store
from qns.peer.tables import ACCEPTED, EARLY, INBOUND, INBOUND_FENCES, EarlyRow
from qns.peer.tuning import Tuning
from qns.peer.turn import Turn

_MOST_PULL_PAUSES = 8
"""The pause before the next pull of a gap grows up to this many times the first one."""


@dataclass(slots=True, eq=False)
class Consumer:
    me: str
    incarnation: int
    epoch: int
    log: EventLog
    tuning: Tuning
    schema: Schema
    merger: Merger
    forwarder: Forwarder
    claims: Claims
    sink: DeliverySink
    federation: Federation
    seals: Seals
    evidence: EvidenceKeeper | None = None
    """Keeps the evidence of accepted events; None if the operator does not want it."""
    streams: dict[tuple[str, int], InboundStream] = field(default_factory=dict)
    """(producer, its incarnation) -> the stream from it."""
    confirmed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Producer -> (version of the view in force there, number that ends its backlog)."""
    testimonies: dict[str, Standing] = field(default_factory=dict)
    """Producer that went back in time -> the standing before its stream was set back. The next
    hello has it instead of the present one, so that the producer learns what it has forgotten."""
    set_back_at: dict[str, float] = field(default_factory=dict)
    """Producer -> when its stream was last set back, since the start."""

    # --- streams ----------------------------------------------------------------------------------

    def stream(self, producer: str, incarnation: int) -> InboundStream:
        key = (producer, incarnation)
        found = self.streams.get(key)
        if found is None:
            found = InboundStream(producer, incarnation, self.incarnation, self.epoch)
            self.streams[key] = found
        return found

    def current(self, producer: str) -> InboundStream:
        """Returns the stream of the producer's present incarnation."""
        return self.stream(producer, self.federation[producer].incarnation)

    def standing(self, producer: str) -> Standing:
        if producer in self.federation:
            return self.current(producer).standing
        former = [incarnation for name, incarnation in self.streams if name == producer]
        return self.stream(producer, max(former, default=0)).standing

    def standing_for_hello(self, producer: str) -> Standing:
        """Returns the testimony that is due to the producer, or the present standing."""
        testimony, present = self.testimonies.get(producer), self.standing(producer)
        if testimony is None or testimony[:2] != present[:2]:  # of another incarnation
            return present
        return testimony._replace(consumer_epoch=self.epoch)

    def hello_answered(self, producer: str, hello: Hello) -> None:
        """Makes a hello with the present standing due after one with a testimony."""
        testimony = self.testimonies.get(producer)
        if testimony is not None and hello.standing[3:] == testimony[3:]:
            del self.testimonies[producer]
            self.want_hello(producer)

    def knows(self, producer: str) -> bool:
        """True if there is a stream from any incarnation of the producer."""
        return any(name == producer for name, _ in self.streams)

    def has_returned(self, producer: str, incarnation: int) -> bool:
        """True if the producer has a later incarnation than this one."""
        return producer in self.federation and incarnation < self.federation[producer].incarnation

    def is_to_come(self, producer: str, incarnation: int) -> bool:
        """True if the producer is a member and does not have this incarnation yet."""
        return producer in self.federation and incarnation > self.federation[producer].incarnation

    def has_stream(self, producer: str, incarnation: int) -> bool:
        """True if the document has or had this incarnation, as far as this peer knows."""
        is_present = producer in self.federation and (
            incarnation == self.federation[producer].incarnation
        )
        return is_present or (producer, incarnation) in self.streams

    def is_foreign(self, producer: str, incarnation: int, data_class: str) -> bool:
        """True if the document says that the producer has never hosted the class.

        It does not say that of former incarnations.
        """
        member = self.federation.organisations.get(producer)
        if member is None or member.incarnation != incarnation:
            return False
        return data_class not in member.hosts and data_class not in member.hosted

    # --- start, documents and epochs --------------------------------------------------------------

    def recover_from(self, store: Store) -> None:
        self.seals.recover_from(store)
        if self.evidence is not None:
            self.evidence.recover_from(store)
        for row in store.rows(INBOUND):
            stream = self.stream(row.producer, row.producer_joined)
            stream.epoch, stream.last = row.epoch, row.last
            stream.reached = max(row.reached, row.last)  # older stores have no `reached`
            stream.accepted.epoch, stream.accepted.sequence = row.published_in, row.sequence
        for accepted in store.rows(ACCEPTED):
            stream = self.stream(accepted.producer, accepted.producer_joined)
            stream.accepted.recover(accepted.published_in, accepted.sequence)
        for fence in sorted(store.rows(INBOUND_FENCES)):
            self.stream(fence.producer, fence.producer_joined).recover_fence(fence)
        for early in store.rows(EARLY):
            self.stream(early.producer, early.producer_joined).early[early.number] = early
            self.log.hold((early.producer, early.event))

    def start(self, turn: Turn) -> None:
        for stream in self.streams.values():
            self.watch_gap(turn, stream)

    def apply_document(self, turn: Turn, old: Federation, new: Federation) -> None:
        """Keeps the streams of organisations that left, because they may still owe events.

        So may the earlier incarnation of an organisation that came back. It joins as the new one
        only when everything is acknowledged.
        """
        for name in list(self.confirmed):
            left = name not in new or self.me not in new
            if left or new[name].incarnation != old[name].incarnation:
                del self.confirmed[name]
        for name, organisation in old.organisations.items():
            is_present = name in new and new[name].incarnation == organisation.incarnation
            if name != self.me and not is_present:
                self.stream(name, organisation.incarnation).put(turn)
        for (name, incarnation), stream in self.streams.items():
            if self.has_returned(name, incarnation):
                self._release(stream, stream.pop_all(turn))
                self.watch_gap(turn, stream)

    def leave(self, turn: Turn) -> None:
        """Gives up the missing events: this organisation is not a member any more."""
        for stream in self.streams.values():
            self._release(stream, stream.pop_all(turn))
            self.watch_gap(turn, stream)
        self.confirmed.clear()

    def begin_incarnation(self, turn: Turn, incarnation: int) -> None:
        """Ends every stream and view: this organisation has joined again."""
        self.incarnation = incarnation
        for name in list(self.merger.table):
            self.merger.table.drop(turn, name)
        for stream in self.streams.values():
            self._release(stream, stream.end(turn))
        self.streams.clear()
        self.confirmed.clear()

    def begin_epoch(self, epoch: int) -> None:
        """Begins an epoch after a restore."""
        self.epoch = epoch
        for stream in self.streams.values():
            stream.consumer_epoch = epoch

    # --- views ------------------------------------------------------------------------------------

    def views(self) -> Iterator[ViewProgress]:
        """Yields the progress of every view."""
        for producer in self.merger.table:
            progress = self.view_progress(producer)
            assert progress is not None
            yield progress

    def view_progress(self, producer: str) -> ViewProgress | None:
        """Returns the progress of one view; None if the producer has left."""
        view = self.merger.table.get(producer)
        if view is None:
            return None
        incarnation = self.federation[producer].incarnation
        stream = self.streams.get((producer, incarnation))
        version, upto = self.confirmed.get(producer, (-1, 0))
        return ViewProgress(
            producer,
            incarnation,
            stream.epoch if stream is not None else 0,
            self.merger.hosted(producer),
            view.version,
            upto if version == view.version else None,
            stream.last if stream is not None else 0,
        )

    def want_hello(self, producer: str) -> None:
        """Makes a hello to the producer due, if both are members."""
        if producer in self.merger.table:
            self.forwarder.link(producer).wants_hello = True

    def change_sub(self, producer: str) -> ChangeSub | None:
        """Returns the next ChangeSub for the producer; None if none is due."""
        view = self.merger.table.get(producer)
        if view is None or view.state is not ViewState.STALE:
            return None
        incarnation = self.federation[producer].incarnation
        return self.merger.change_sub(producer, incarnation, self.incarnation, self.epoch)

    def change_sub_failed(self, producer: str) -> None:
        """Makes the content of an unanswered ChangeSub due again."""
        view = self.merger.table.get(producer)
        if view is not None:
            view.fail()

    def send_all(self, producer: str) -> None:
        """Makes a ChangeSub with the whole view due."""
        view = self.merger.table.get(producer)
        if view is not None:
            view.send_all()

    def sub_changed(self, turn: Turn, producer: str, call: ChangeSub, reply: SubChanged) -> None:
        """Handles the reply that a view is in force."""
        view = self.merger.table.get(producer)
        if view is None or call.consumer_incarnation != self.incarnation:
            return
        incarnation = self.federation[producer].incarnation
        stream = self.current(producer)
        is_same = call.producer_incarnation == reply.producer_incarnation == incarnation
        if not is_same or reply.epoch < stream.epoch:
            view.fail()
            self.want_hello(producer)
            return
        self.learn(turn, stream, reply.epoch, reply.fences)
        if reply.version == call.version:
            view.confirm(call.version)
            self._confirm(turn, producer, call.version, reply.upto)
        else:
            view.send_all()

    def handle_hello(self, turn: Turn, producer: str, hello: Hello) -> None:
        """Compares the view that the producer has, and takes over its epoch and fences."""
        view = self.merger.table.get(producer)
        if view is None or hello.incarnation != self.federation[producer].incarnation:
            return
        stream = self.current(producer)
        if hello.epoch < stream.epoch or hello.standing.producer_incarnation != self.incarnation:
            return
        self.learn(turn, stream, hello.epoch, hello.fences)
        if hello.held_version > view.version:  # this peer has forgotten that version
            self.claims.prove_setback(producer)
            self.unconfirm_view(turn, producer)  # what is stable by an old store may not be so
        if hello.held_epoch > self.epoch:  # this peer has forgotten that epoch
            self.claims.believe(turn, producer, hello.held_epoch, self.epoch)
        elif hello.held_epoch < self.epoch and view.matches(hello.held_version, hello.held_digest):
            self.want_hello(producer)  # sent in an earlier epoch: the next hello confirms it
        elif view.compare(hello.held_version, hello.held_digest):
            self._confirm(turn, producer, hello.held_version, hello.number)

    def _confirm(self, turn: Turn, producer: str, version: int, upto: int) -> None:
        self.confirmed[producer] = (version, upto)
        self.forwarder.link(producer).change_accepted()
        view = self.view_progress(producer)
        assert view is not None
        self.sink.view_confirmed(turn, version, upto, view)

    # --- epochs of producers ----------------------------------------------------------------------

    def learn(
        self, turn: Turn, stream: InboundStream, epoch: int, fences: Collection[Fence]
    ) -> None:
        """Takes over the epoch and the fences of a producer."""
        self.handle_epoch(turn, stream, stream.learn(turn, epoch, fences))

    def handle_epoch(self, turn: Turn, stream: InboundStream, learned: NewEpoch | None) -> None:
        """Compares the view again if a new epoch shows that the producer has forgotten something.

        If it sets the stream back, the producer may have forgotten any view. Otherwise it may have
        forgotten a backlog that it announced, if that ends with a number of the new epoch.
        """
        producer = stream.producer
        if learned is None or learned.first is None:
            return
        self._release(stream, learned.cut_off)
        if learned.sets_back:
            self.log.past.producer_went_back(producer)
            self.set_back_at[producer] = turn.now
            self.testimonies.setdefault(producer, learned.before)
        _, announced = self.confirmed.get(producer, (-1, 0))
        has_forgotten = self.sink.void_backlogs(turn, producer, learned.first)
        if not (learned.sets_back or has_forgotten or announced >= learned.first):
            return
        self.confirmed.pop(producer, None)
        view = self.merger.table.get(producer)
        if view is not None:
            view.lose()
            self.want_hello(producer)
            if learned.sets_back:
                self.unconfirm_view(turn, producer)

    def unconfirm_view(self, turn: Turn, producer: str) -> None:
        """Makes every subscription pending at a producer whose stored view is not known."""
        view = self.view_progress(producer)
        if view is not None:
            self.sink.view_unconfirmed(turn, view)

    def _release(self, stream: InboundStream, rows: Iterable[EarlyRow]) -> None:
        for row in rows:
            self.log.release((stream.producer, row.event))

    # --- gaps and acknowledgements ----------------------------------------------------------------

    def watch_gap(self, turn: Turn, stream: InboundStream) -> None:
        """Sets the time at which a gap is pulled; clears it if there is none."""
        link = self.forwarder.link(stream.producer)
        if not stream.early:
            link.pull_at, link.pulls = None, 0
        elif link.pull_at is None:
            link.pulls += 1
            pauses = min(link.pulls, _MOST_PULL_PAUSES)
            link.pull_at = turn.now + self.tuning.pull_after_s * pauses

    def pull_gap(self, turn: Turn, producer: str) -> PullGap | None:
        """Returns the request for the numbers that are missing; None if none are."""
        for (name, _), stream in self.streams.items():
            if name == producer and stream.gap is not None:
                self.watch_gap(turn, stream)
                return PullGap(stream.standing, stream.gap)
        return None

    def acknowledge_later(self, turn: Turn, source: str, incarnation: int) -> None:
        """Makes an acknowledgement due; through another peer if the producer is unreachable."""
        forwarder, at = self.forwarder, turn.now + self.tuning.acknowledge_after_s
        if not self.has_stream(source, incarnation):
            return
        if not forwarder.reachability.is_connected(source) and (
            forwarder.relay_standing(
                source, self.me, Carried(self.stream(source, incarnation).standing), at
            )
        ):
            return
        link = forwarder.link(source)
        if link.acknowledge_at is None:
            link.acknowledge_at = at
