"""Producer side of the External Diffusion Layer: from a published event to the consumers.

External Merge Table -> External Matcher -> a number in the stream of each interested consumer ->
Tree Builder -> Forwarder. The streams last until every number is acknowledged (thesis 5.4.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qns.cbr.index import DictionaryIndex
from qns.edl.claims import Claims
from qns.edl.external_merge_table import ExternalMergeTable
from qns.edl.forwarder import Forwarder
from qns.edl.link import Parcel
from qns.edl.messages import (
    ChangeSub,
    Entry,
    Fault,
    GapPulled,
    Hello,
    Item,
    Notification,
    PullGap,
    SendAll,
    Standing,
    SubChanged,
)
from qns.edl.outbound_stream import OutboundStream
from qns.edl.owed_events import count_owed, forget_event, recover_streams
from qns.edl.readers import Readers
from qns.edl.relays import Relays
from qns.edl.resending import Resending
from qns.edl.tree_builder import Tree, TreeBuilder
from qns.edl.uncompared_views import UncomparedViews
from qns.errors import Busy, QnsError
from qns.federation.document import Federation
from qns.peer.event_log import EventKey, EventLog, LoggedEvent
from qns.peer.ports import Store
from qns.peer.row_view import RowView
from qns.peer.tuning import Tuning
from qns.peer.turn import Turn


@dataclass(slots=True, eq=False)
class Producer:
    me: str
    incarnation: int
    epoch: int
    log: EventLog
    view: RowView
    tuning: Tuning
    table: ExternalMergeTable
    trees: TreeBuilder
    forwarder: Forwarder
    relays: Relays
    claims: Claims
    readers: Readers
    streams: dict[str, OutboundStream] = field(default_factory=dict)
    """Consumer -> the stream to it."""
    step_backs: dict[str, int] = field(default_factory=dict)
    """Consumer that knows an epoch that this producer has forgotten -> the number from which on
    the consumer has to step back."""
    uncompared: UncomparedViews = field(default_factory=UncomparedViews)
    resending: Resending = field(init=False)

    def __post_init__(self) -> None:
        self.resending = Resending(self)

    # --- start, documents and epochs --------------------------------------------------------------

    def recover_from(self, store: Store) -> None:
        most = self.tuning.owed_in_memory
        self.streams.update(recover_streams(self.me, store, self.log, self.view, most))
        self.log.count_owed = self._count_owed
        self.table.recover_from(store)

    def start(self, turn: Turn) -> None:
        """Announces where this epoch begins, and sets the time of resending what is owed."""
        self.uncompared.start(turn.now + self.tuning.compare_within_s)
        for name, stream in self.streams.items():
            self.uncompared.doubt(name, turn.now, is_lost=stream.is_view_lost)
            if stream.fences.newest is None or stream.fences.newest.epoch < self.epoch:
                stream.raise_fence(turn, self.epoch)
            if stream.owes:
                stream.resend_at = turn.now + self.tuning.resend_after_s

    def apply_document(self, turn: Turn, old: Federation, new: Federation) -> None:
        """Ends the streams of organisations that left, and begins those of new members."""
        members = new.organisations
        for name, stream in list(self.streams.items()):
            if name not in members or members[name].incarnation != stream.consumer_incarnation:
                self._end_stream(turn, stream)
                self.forwarder.drop_receiver(turn, name)
                self.resending.resend_all(turn)  # the one that left may have had events in custody
        for name, organisation in members.items():
            if name != self.me and name not in self.streams and self.me in members:
                incarnation, most = organisation.incarnation, self.tuning.owed_in_memory
                stream = self.streams[name] = OutboundStream(
                    self.me, name, incarnation, self.view, most
                )
                stream.put(turn)
                if self.epoch > 1:  # an earlier epoch that was lost may have had this stream
                    stream.raise_fence(turn, self.epoch)
                    self.uncompared.doubt(name, turn.now)
        self.trees.apply_document(old, new)
        if self.readers.apply_document(turn, old, new, self.streams):
            self.forwarder.recall_own()
            self.resending.resend_all(turn)
        if self.readers.gained:
            self._send_gained(turn)

    def _send_gained(self, turn: Turn) -> None:
        """Sends the available events that consumers may read only since the newest document."""
        for logged in self.log.available(self.me, turn.now):
            data_class = logged.event.data_class
            for name in self.readers.who_gained(data_class, self._wanting(turn, logged)):
                if self.streams[name].owed.number_of(logged.event.id) is None:
                    self._send_alone(turn, self.streams[name], logged)

    def begin_incarnation(self, turn: Turn, incarnation: int) -> None:
        """Ends every stream: this organisation has joined again."""
        self.incarnation = incarnation
        for stream in list(self.streams.values()):
            self._end_stream(turn, stream)

    def _end_stream(self, turn: Turn, stream: OutboundStream) -> None:
        stream.end(turn, self.log)
        self.table.forget(turn, stream.consumer)
        self.uncompared.remove(stream.consumer)
        del self.streams[stream.consumer]

    def begin_epoch(self, turn: Turn, epoch: int) -> None:
        """Begins an epoch after a restore: raises a fence in every stream."""
        self.epoch = epoch
        for name, stream in self.streams.items():
            stream.restore(turn, epoch, self.step_backs.pop(name, None))
        self.uncompared.lose_all(turn, self.streams)

    # --- events -----------------------------------------------------------------------------------

    def diffuse(self, turn: Turn, logged: LoggedEvent) -> list[str]:
        """Numbers the event for every interested consumer and sends it along a tree.

        Returns the interested organisations, with those that have not compared their view.
        """
        wanting = self._wanting(turn, logged)
        interested = self.readers.among(wanting, logged.event.data_class)
        if not interested:
            return []
        numbers = {name: self._number(turn, self.streams[name], logged) for name in interested}
        for name, children in self.trees.tree(tuple(interested)):
            self._send(turn, logged, self._entry(name, children, numbers))
        return interested

    def _wanting(self, turn: Turn, logged: LoggedEvent) -> list[str]:
        """Returns the consumers that want the event, or of which that is not known."""
        wanting = self.table.matcher.interested(logged.event)
        if self.uncompared:
            wanting = sorted(self.uncompared.at(turn.now).union(wanting))
        return wanting

    def _number(self, turn: Turn, stream: OutboundStream, logged: LoggedEvent) -> int:
        number = stream.assign_number(turn, self.epoch, logged.key, self.log)
        if stream.resend_at is None:
            stream.resend_at = turn.now + self.tuning.resend_after_s
        stream.keep_within(turn, self.log, self.tuning.most_owed, self.tuning.most_owed_bytes)
        return number

    def _entry(self, name: str, children: Tree, numbers: dict[str, int]) -> Entry:
        below = tuple(self._entry(child, further, numbers) for child, further in children)
        return self.streams[name].entry(numbers[name], self.epoch, below)

    def _send(self, turn: Turn, logged: LoggedEvent, entry: Entry) -> None:
        """Sends an event, or leaves it to the stream: of a consumer that is away or far behind."""
        stream = self.streams[entry.receiver]
        is_near = stream.owed.is_in_memory(entry.number)
        if is_near and entry.receiver not in self.forwarder.reachability.unreachable():
            self.forwarder.send(turn, Parcel(logged.key, self.incarnation, entry, (), None))
            return
        for child in entry.children:
            self._send(turn, logged, child)
        stream.resend_from(entry.number)

    def forget(self, turn: Turn, key: EventKey) -> None:
        """Removes an event that has left the log from every stream."""
        if key[0] == self.me:
            forget_event(turn, self.streams, self.view, key[1])

    def _count_owed(self, key: EventKey) -> int:
        """Returns to how many consumers an event is owed, also if it is only in the store."""
        return count_owed(self.streams, self.view, key[1]) if key[0] == self.me else 0

    # --- changeSub --------------------------------------------------------------------------------

    def change_sub(
        self, turn: Turn, consumer: str, change: ChangeSub
    ) -> SubChanged | SendAll | Fault:
        stream = self._stream(consumer, change)
        if stream is None:
            return Fault(f"{consumer} or {self.me} has left the federation, or come back to it")
        held = (stream.view_epoch, stream.version)
        if (change.epoch, change.version) < held:
            return Fault("this change is older than the view in force", permanent=True)
        if held == (change.epoch, change.version) and (
            self.table.digest(consumer) == change.digest
        ):
            return self._sub_changed(stream)
        if change.base is not None and held != (change.epoch, change.base):
            return SendAll()
        try:
            added = self.table.apply(turn, consumer, change)
        except QnsError as error:
            return Fault(str(error), permanent=not isinstance(error, Busy))
        if added is None:
            return SendAll()
        stream.view_epoch, stream.version = change.epoch, change.version
        stream.put(turn)
        if consumer in self.uncompared:  # the change may be older than this start: compare again
            self.forwarder.link(consumer).wants_hello = True
        available = list(self.log.available(self.me, turn.now)) if added else []
        wanted = DictionaryIndex(dict(enumerate(added)) if available else {})
        for logged in available:
            is_sent = stream.owed.number_of(logged.event.id) is not None
            may_read = self.readers.may_read(consumer, logged.event.data_class)
            if not is_sent and may_read and wanted.match(logged.event):
                self._send_alone(turn, stream, logged)
        return self._sub_changed(stream)

    def send_again(self, turn: Turn, consumer: str, key: EventKey) -> bool:
        """Sends a rejected event under a new number; returns False if there is none to send."""
        stream, logged = self.streams.get(consumer), self.log.get(key)
        if stream is None or logged is None or stream.owed.number_of(key[1]) is not None:
            return False
        if not self.readers.may_read(consumer, logged.event.data_class):
            return False
        self._send_alone(turn, stream, logged)
        return True

    def _send_alone(self, turn: Turn, stream: OutboundStream, logged: LoggedEvent) -> None:
        """Sends an event to one consumer only, without a tree."""
        self._send(turn, logged, stream.entry(self._number(turn, stream, logged), self.epoch))

    def _sub_changed(self, stream: OutboundStream) -> SubChanged:
        return SubChanged(
            stream.version, self.epoch, stream.number, self.incarnation, tuple(stream.fences)
        )

    def _stream(self, consumer: str, claimed: Standing | ChangeSub) -> OutboundStream | None:
        """Returns the stream to the consumer, if the message has the present incarnations."""
        stream = self.streams.get(consumer)
        if stream is None or claimed.producer_incarnation != self.incarnation:
            return None
        return stream if claimed.consumer_incarnation == stream.consumer_incarnation else None

    # --- acknowledgements -------------------------------------------------------------------------

    def update_standing(
        self,
        turn: Turn,
        consumer: str,
        standing: Standing,
        *,
        from_hello: bool = False,
        brought_by: str = "",
    ) -> None:
        """Takes over the standing of the consumer; after a hello, resends what it lacks.

        `brought_by` is the member that relays it, if the consumer has not sent it itself.
        """
        stream, teller = self._stream(consumer, standing), brought_by or consumer
        if stream is None:
            return
        lost = stream.find_lost_epoch(standing, self.epoch)
        if lost is not None:
            is_believed = self.claims.believe(turn, teller, lost.epoch, self.epoch)
            if is_believed or not brought_by:  # if ignored, it counts when an epoch begins anyway
                first = self.step_backs.get(consumer, lost.first)
                self.step_backs[consumer] = min(first, lost.first)
            return
        if stream.has_forgotten(standing):
            self.claims.prove_setback(teller)
        self.claims.note(teller, standing.epoch)
        if standing.consumer_epoch < stream.consumer_epoch:  # a stale message
            return
        # Within one epoch of each end, a consumer never falls back: such a hello was delayed. The
        # first message of an epoch shows where its fences have left the stream, hello or not.
        may_fall_back = standing.epoch > stream.confirmed
        if standing.consumer_epoch > stream.consumer_epoch:  # the consumer has restarted
            from_hello = may_fall_back = True
            stream.consumer_epoch = standing.consumer_epoch
            stream.put(turn)
        before = stream.acknowledged
        stream.update_standing(turn, standing, self.log, may_fall_back=may_fall_back)
        if stream.acknowledged > before:
            self.relays.prove(consumer)
        if not stream.owes:
            stream.catch_up()
        elif from_hello:
            self.resending.resend(turn, stream)
        elif stream.resend_at is None:
            stream.resend_at = turn.now + self.tuning.resend_after_s

    def handle_hello(self, turn: Turn, consumer: str, hello: Hello) -> None:
        stream = self.streams.get(consumer)
        if (
            stream is None
            or hello.incarnation != stream.consumer_incarnation
            or hello.standing.producer_incarnation != self.incarnation
        ):
            return
        held = stream.version, self.table.digest(consumer)
        if (hello.version, hello.digest) == held and hello.standing.epoch == self.epoch:
            self.uncompared.remove(consumer)  # a hello with this epoch was sent after the start
            if hello.epoch > stream.view_epoch:  # the same view, in the consumer's new epoch
                stream.view_epoch = hello.epoch
                stream.put(turn)
        self.update_standing(turn, consumer, hello.standing, from_hello=True)

    def pull_gap(self, turn: Turn, consumer: str, pull: PullGap) -> GapPulled | Fault:
        stream = self._stream(consumer, pull.standing)
        if stream is None:
            return Fault(f"{self.me} has no such stream for {consumer}")
        self.update_standing(turn, consumer, pull.standing)
        first = pull.standing.last + 1
        last = min(pull.upto, stream.number, first + self.tuning.notifications_per_call - 1)
        items = tuple(self.resending.items(turn, stream, first, last))
        return GapPulled(items, self.epoch, tuple(stream.fences))

    # --- events that are given up -----------------------------------------------------------------

    def handle_rejection(self, turn: Turn, consumer: str, item: Item, reason: str) -> None:
        """Makes a dead letter of an event that the consumer rejected, and a skip in its stream."""
        stream = self.streams.get(consumer)
        if stream is None or not isinstance(item, Notification) or item.source != self.me:
            return
        entry = item.entry
        row = stream.owed.get(entry.number)
        if row is None or row.event != item.event or entry.number <= stream.acknowledged:
            return
        parcel = Parcel((self.me, item.event), self.incarnation, entry.alone(), (), None)
        self.forwarder.custody.reject(turn, parcel, reason)
        stream.drop(turn, row, self.log)
        self.resending.resend(turn, stream)

    def abandon(self, turn: Turn, consumer: str) -> None:
        """Gives up everything that is owed to a consumer, as declared skips."""
        if (stream := self.streams.get(consumer)) is not None:
            stream.abandon(turn, self.log)
