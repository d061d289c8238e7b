"""Producer side of the External Diffusion Layer: from a published event to the consumers.

External Merge Table -> External Matcher -> a number in each interested consumer's stream -> Tree
Builder -> Forwarder; and the streams, until everything is acknowledged (thesis 5.4.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from qns.cbr.index import DictionaryIndex
from qns.edl.external_table import ExternalMergeTable
from qns.edl.forwarder import Forwarder
from qns.edl.link import Parcel
from qns.edl.messages import (
    ChangeSub,
    Entry,
    Fault,
    Fence,
    Hello,
    Item,
    Notification,
    Pull,
    Pulled,
    SendAll,
    Skip,
    Standing,
    SubChanged,
)
from qns.edl.outbound import OutboundStream
from qns.edl.tree_builder import Tree, TreeBuilder
from qns.errors import QnsError
from qns.event_log import EventKey, EventLog, KnownEvent
from qns.federation.document import Federation
from qns.tuning import Tuning
from qns.turn import Turn


@dataclass(slots=True, eq=False)
class Producer:
    me: str
    joined: int
    epoch: int
    log: EventLog
    tuning: Tuning
    table: ExternalMergeTable
    trees: TreeBuilder
    forwarder: Forwarder
    streams: dict[str, OutboundStream] = field(default_factory=dict)
    resending: dict[str, int] = field(default_factory=dict)
    """Consumer -> the next number to be sent to it directly."""

    lost: dict[str, Fence] = field(default_factory=dict)
    """Consumer -> the newest epoch it knows of a life that this producer has no memory of, and the
    number from which on what it has may be of that life."""

    def is_drained(self, federation: Federation) -> bool:
        """Whether nothing is owed to those who are members, as the members that they are."""
        return all(
            each.acknowledged == each.number
            for name, each in self.streams.items()
            if name in federation and federation[name].joined == each.joined
        )

    def start(self, turn: Turn) -> None:
        """What is owed is sent at the latest after the usual time, whoever says hello or not."""
        for stream in self.streams.values():
            if stream.acknowledged < stream.number:
                stream.resend_at = turn.now + self.tuning.resend_after_s

    def follow(self, turn: Turn, federation: Federation) -> None:
        """The document in force: who joins gets a stream, who leaves is owed nothing."""
        members = federation.organisations
        for name, stream in list(self.streams.items()):
            if name not in members or members[name].joined != stream.joined:
                stream.end(turn, self.log)
                self.table.forget(turn, name)
                self.forwarder.drop_all(turn, name)
                self.resending.pop(name, None)
                del self.streams[name]
                self._resend_all(turn)  # what the leaver had in custody is sent directly
        for name, organisation in members.items():
            if name != self.me and name not in self.streams and self.me in members:
                stream = OutboundStream(self.me, name, organisation.joined)
                self.streams[name] = stream
                stream.put(turn)
                if self.epoch > 1:  # an earlier life, since forgotten, may have had this stream
                    stream.raise_fence(turn, self.epoch)
        self.trees.follow({name: each.capability for name, each in members.items()})

    def start_afresh(self, turn: Turn, joined: int) -> None:
        """This producer is a new incarnation: its former streams are no more."""
        self.joined = joined
        for name, stream in self.streams.items():
            stream.end(turn, self.log)
            self.table.forget(turn, name)
        self.streams.clear()
        self.resending.clear()

    # --- events -----------------------------------------------------------------------------------

    def diffuse(self, turn: Turn, known: KnownEvent) -> list[str]:
        """Numbers the event for every interested consumer and sends it along a tree."""
        interested = self.table.matcher.interested(known.event)
        if not interested:
            return []
        numbers = {name: self._give(turn, self.streams[name], known) for name in interested}
        for name, children in self.trees.tree(tuple(interested)):
            entry = self._entry(name, children, numbers)
            self.forwarder.send(turn, Parcel(known.key, self.joined, entry, (), None))
        return interested

    def _give(self, turn: Turn, stream: OutboundStream, known: KnownEvent) -> int:
        number = stream.give(turn, self.epoch, known.key, self.log)
        if stream.resend_at is None:
            stream.resend_at = turn.now + self.tuning.resend_after_s
        if number - stream.acknowledged > self.tuning.most_owed:
            stream.drop_oldest(turn, self.log)
        return number

    def _entry(self, name: str, children: Tree, numbers: dict[str, int]) -> Entry:
        below = tuple(self._entry(child, further, numbers) for child, further in children)
        return self.streams[name].entry(numbers[name], self.epoch, below)

    def forget(self, turn: Turn, key: EventKey) -> None:
        """The event is gone from the log."""
        if key[0] == self.me:
            for stream in self.streams.values():
                stream.forget(turn, key)

    # --- changeSub --------------------------------------------------------------------------------

    def change_sub(
        self, turn: Turn, consumer: str, change: ChangeSub
    ) -> SubChanged | SendAll | Fault:
        stream = self.streams.get(consumer)
        if stream is None or (change.joined, change.own) != (self.joined, stream.joined):
            return Fault(f"{consumer} or {self.me} has left the federation, or come back to it")
        held = (stream.view_epoch, stream.version)
        if (change.epoch, change.version) < held:
            return Fault("this change is older than the view in force", permanent=True)
        if held == (change.epoch, change.version) and (
            self.table.digest(consumer) == change.digest
        ):
            return self._standing(stream)
        if change.base is not None and held != (change.epoch, change.base):
            return SendAll()
        try:
            added = self.table.apply(turn, consumer, change)
        except QnsError as error:
            return Fault(str(error), permanent=True)
        if added is None:
            return SendAll()
        stream.view_epoch, stream.version = change.epoch, change.version
        stream.put(turn)
        wanted = DictionaryIndex(dict(enumerate(added)))
        for known in self.log.available(self.me, turn.now) if added else ():
            if known.key not in stream.numbers and wanted.match(known.event):
                self._send_alone(turn, stream, known)
        return self._standing(stream)

    def send_again(self, turn: Turn, consumer: str, key: EventKey) -> bool:
        """An event that the consumer refused, under a new number; whether there was any to send."""
        stream, known = self.streams.get(consumer), self.log.get(key)
        if stream is None or known is None or key in stream.numbers:
            return False
        self._send_alone(turn, stream, known)
        return True

    def _send_alone(self, turn: Turn, stream: OutboundStream, known: KnownEvent) -> None:
        """A late subscriber's event: to this consumer only, so without a tree."""
        entry = stream.entry(self._give(turn, stream, known), self.epoch)
        self.forwarder.send(turn, Parcel(known.key, self.joined, entry, (), None))

    def _standing(self, stream: OutboundStream) -> SubChanged:
        return SubChanged(
            stream.version, self.epoch, stream.number, self.joined, tuple(stream.fences)
        )

    # --- acknowledgements, gaps, resending --------------------------------------------------------

    def stands(
        self, turn: Turn, consumer: str, standing: Standing, *, afresh: bool = False
    ) -> None:
        """The consumer says where it is; after a hello it gets at once what it misses."""
        stream = self.streams.get(consumer)
        if stream is None or (standing.joined, standing.own) != (self.joined, stream.joined):
            return
        lost = stream.lost_life(turn, standing, self.epoch) if afresh else None
        if lost is not None:
            self.lost[consumer] = lost
            return
        if standing.consumer_epoch < stream.consumer_epoch:  # a late word of its former life
            return
        afresh |= standing.consumer_epoch > stream.consumer_epoch  # a new life of the consumer
        stream.consumer_epoch = standing.consumer_epoch
        stream.stands(turn, standing, self.log, afresh=afresh)
        if stream.acknowledged == stream.number:
            stream.resend_at = None
            self.resending.pop(consumer, None)
            return
        if afresh:
            self._resend(turn, stream)
        elif stream.resend_at is None:
            stream.resend_at = turn.now + self.tuning.resend_after_s

    def hello_from(self, turn: Turn, consumer: str, hello: Hello) -> None:
        stream = self.streams.get(consumer)
        if stream is None or hello.joined != stream.joined or hello.standing.joined != self.joined:
            return
        digest = self.table.digest(consumer)
        if hello.epoch > stream.view_epoch and (
            (hello.version, hello.digest) == (stream.version, digest)
        ):
            stream.view_epoch = hello.epoch  # the same view, told by the consumer's new life
            stream.put(turn)
        self.stands(turn, consumer, hello.standing, afresh=True)

    def pull(self, turn: Turn, consumer: str, pull: Pull) -> Pulled | Fault:
        stream = self.streams.get(consumer)
        standing = pull.standing
        if stream is None or (standing.joined, standing.own) != (self.joined, stream.joined):
            return Fault(f"{self.me} has no such stream for {consumer}")
        self.stands(turn, consumer, standing)
        first = standing.last + 1
        last = min(pull.upto, stream.number, first + self.tuning.notifications_per_call - 1)
        items = self.items(turn, stream, first, last)
        return Pulled(tuple(items), self.epoch, tuple(stream.fences))

    def items(self, turn: Turn, stream: OutboundStream, first: int, last: int) -> list[Item]:
        """These numbers, as notifications, or as skips where the event is gone.

        The first of them, that is, if all would be too much for one call.
        """
        items: list[Item] = []
        room = self.tuning.bytes_per_call
        for number in range(first, last + 1):
            row = stream.rows.get(number)
            entry = stream.entry(number, self.epoch)
            if row is not None:
                known = self.log[self.me, row.event]
                room -= len(known.xml)
                if items and room < 0:
                    break
                joined, epoch, sequence = known.position
                remaining_s = max(0.0, known.expires_at - turn.now)
                items.append(
                    Notification(
                        *(self.me, joined, epoch, sequence, row.event, known.xml, remaining_s),
                        *(entry, (self.me,)),
                    )
                )
            elif items and isinstance(items[-1], Skip):
                skip = items[-1]
                items[-1] = Skip(self.me, self.joined, skip.first, number, skip.reason)
            else:
                items.append(Skip(self.me, self.joined, entry, number, "no longer kept"))
        return items

    def due(self, turn: Turn) -> None:
        """Sends directly what has not been acknowledged for too long."""
        for stream in self.streams.values():
            if stream.resend_at is not None and stream.resend_at <= turn.now:
                self._resend(turn, stream)

    def next_due(self) -> float:
        return min(
            (each.resend_at for each in self.streams.values() if each.resend_at is not None),
            default=inf,
        )

    def next_items(self, turn: Turn, consumer: str) -> list[Item]:
        """The next batch of what is being sent once more."""
        first = self.resending.get(consumer)
        stream = self.streams.get(consumer)
        if first is None or stream is None:
            return []
        first = max(first, stream.acknowledged + 1)
        last = min(stream.number, first + self.tuning.notifications_per_call - 1)
        items = self.items(turn, stream, first, last)
        if items:
            end = items[-1]
            last = end.last if isinstance(end, Skip) else end.entry.number
        if last < stream.number:
            self.resending[consumer] = last + 1
        else:
            del self.resending[consumer]
        return items

    def refused(self, turn: Turn, consumer: str, item: Item, reason: str) -> None:
        """The consumer will never take this event: a dead letter, and a skip in its stream."""
        stream = self.streams.get(consumer)
        if stream is None or not isinstance(item, Notification) or item.source != self.me:
            return
        entry = item.entry
        row = stream.rows.get(entry.number)
        if row is None or row.event != item.event or entry.number <= stream.acknowledged:
            return
        parcel = Parcel((self.me, item.event), self.joined, entry.alone(), (), None)
        self.forwarder.custody.refuse(turn, parcel, reason)
        stream.drop(turn, entry.number, self.log)
        self._resend(turn, stream)

    def abandon(self, turn: Turn, consumer: str) -> None:
        """Gives up what is owed to a consumer, and says so."""
        stream = self.streams.get(consumer)
        if stream is not None:
            for number in stream.unacknowledged():
                if number in stream.rows:
                    stream.drop(turn, number, self.log)
            stream.acknowledged = stream.number
            stream.resend_at = None
            stream.put(turn)
            self.resending.pop(consumer, None)

    def _resend(self, turn: Turn, stream: OutboundStream) -> None:
        stream.resends += 1
        pause_s = self.tuning.resend_after_s * min(stream.resends, 4)
        stream.resend_at = turn.now + pause_s
        self.resending[stream.consumer] = stream.acknowledged + 1
        self.forwarder.bypass(turn, stream.consumer)

    def _resend_all(self, turn: Turn) -> None:
        for stream in self.streams.values():
            if stream.acknowledged < stream.number:
                self._resend(turn, stream)
