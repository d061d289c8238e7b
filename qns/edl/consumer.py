"""Consumer side of the External Diffusion Layer: from the producers' streams to this organisation.

The Merger tells producers what to send; what comes is put in order, stream by stream, and handed
inwards in one go with the promise to forward it (thesis 5.4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qns.d2q.event_xml import read_event
from qns.d2q.schema import Schema
from qns.edl.forwarder import Forwarder
from qns.edl.inbound import InboundStream, Place
from qns.edl.intake import take_run
from qns.edl.link import Parcel
from qns.edl.merger import Merger
from qns.edl.messages import (
    ChangeSub,
    Entry,
    Hello,
    Item,
    Notification,
    Outcome,
    Pull,
    Pulled,
    Skip,
    Standing,
    SubChanged,
)
from qns.errors import DocumentError, DuplicateId, QnsError
from qns.event_log import EventLog, KnownEvent
from qns.federation.document import Federation
from qns.tables import EarlyRow
from qns.tuning import Tuning
from qns.turn import Turn

TAKEN = Outcome(True)


@dataclass(frozen=True, slots=True)
class Inward:
    """What the peer does with the news: hand the event to the users, settle who waits."""

    offer: Callable[[Turn, KnownEvent], None]
    offer_later: Callable[[Sequence[KnownEvent]], None]
    offer_now: Callable[[Turn], None]
    advanced: Callable[[Turn, str, int], None]
    """A producer's stream has come to this number."""
    confirmed: Callable[[Turn, str, int, int], None]
    """A producer has the view of this version; its backlog ends with this number."""
    rewound: Callable[[Turn, str], None]
    """A producer was restored: whether it has our view must be asked again."""
    waits_for: Callable[[str], int]
    """How many subscriptions are not stable yet at a producer."""

    @classmethod
    def deaf(cls) -> Inward:
        """Before the peer is joined together."""
        return cls(_ignore, _ignore, _ignore, _ignore, _ignore, _ignore, lambda _: 0)


def _ignore(*_: object) -> None:
    pass


@dataclass(slots=True, eq=False)
class Consumer:
    me: str
    joined: int
    epoch: int
    log: EventLog
    tuning: Tuning
    schema: Schema
    merger: Merger
    forwarder: Forwarder
    inward: Inward
    federation: Federation
    streams: dict[tuple[str, int], InboundStream] = field(default_factory=dict)
    confirmed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Producer -> (version of the view in force there, number that ends its backlog)."""
    ahead: int = 0
    """An epoch of this consumer that a producer knows and the consumer does not."""

    def stream(self, producer: str, joined: int) -> InboundStream:
        key = (producer, joined)
        if key not in self.streams:
            self.streams[key] = InboundStream(producer, joined, self.joined, self.epoch)
        return self.streams[key]

    def current(self, producer: str) -> InboundStream:
        """The stream of the producer's present incarnation."""
        return self.stream(producer, self.federation[producer].joined)

    def standing(self, producer: str) -> Standing:
        if producer in self.federation:
            return self.current(producer).standing
        former = [joined for name, joined in self.streams if name == producer]
        return self.stream(producer, max(former, default=0)).standing

    def ask(self, producer: str) -> None:
        """Says hello to the producer, if both are members."""
        if producer in self.merger.views:
            self.forwarder.link(producer).wants_hello = True

    def pull(self, turn: Turn, producer: str) -> Pull | None:
        """Asks the producer for what is missing before an early entry, if anything still is."""
        for (name, _), stream in self.streams.items():
            if name == producer and stream.gap is not None:
                self.watch_gap(turn, stream)
                return Pull(stream.standing, stream.gap)
        return None

    def backlog_end(self, producer: str) -> int | None:
        """The number that completes the newest view's backlog, if the view is in force there."""
        version, upto = self.confirmed.get(producer, (-1, 0))
        return upto if version == self.merger.views[producer].version else None

    def follow(self, turn: Turn, old: Federation) -> None:
        """Who left may still owe events; the former self of one who came back does not."""
        for name, organisation in old.organisations.items():
            if name not in self.federation and name != self.me:
                self.stream(name, organisation.joined).keep(turn)
        for (name, joined), stream in self.streams.items():
            if self._has_returned(name, joined):
                self._give_up(turn, stream)

    def _give_up(self, turn: Turn, stream: InboundStream) -> None:
        """What is missing before the early entries will not come any more."""
        for row in stream.pop_all(turn):
            self.log.release((stream.producer, row.event))
        self.watch_gap(turn, stream)

    def start(self, turn: Turn) -> None:
        for stream in self.streams.values():
            self.watch_gap(turn, stream)

    def leave(self, turn: Turn) -> None:
        """This organisation is not a member any more: what it still waits for will not come."""
        for stream in self.streams.values():
            self._give_up(turn, stream)
        self.confirmed.clear()

    def start_afresh(self, turn: Turn, joined: int) -> None:
        """This consumer is a new incarnation: every producer begins a new stream for it."""
        self.joined = joined
        for name in list(self.merger.views):
            self.merger.drop(turn, name)
        for stream in self.streams.values():
            for row in stream.end(turn):
                self.log.release((stream.producer, row.event))
        self.streams.clear()
        self.confirmed.clear()

    # --- notify -----------------------------------------------------------------------------------

    def accept_all(self, turn: Turn, sender: str, items: Sequence[Item]) -> tuple[Outcome, ...]:
        outcomes: list[Outcome] = []
        while len(outcomes) < len(items):
            outcomes += [TAKEN] * take_run(self, turn, sender, items[len(outcomes) :])
            if len(outcomes) < len(items):
                outcomes.append(self.accept(turn, sender, items[len(outcomes)]))
        return tuple(outcomes)

    def accept(self, turn: Turn, sender: str, item: Item) -> Outcome:
        """Takes an item in; everything that it changes is in the turn's transaction."""
        self.inward.offer_now(turn)  # those of before come first
        entry = item.entry if isinstance(item, Notification) else item.first
        wrong = self._refusal(sender, item, entry)
        if wrong is not None:
            return wrong
        if entry.joined < self.joined or self.me not in self.federation:
            # For a former self: nothing is owed to it any more, only to others.
            if isinstance(item, Skip):
                return TAKEN
            return self._take_in(turn, self.stream(item.source, item.joined), item, Place.OBSOLETE)
        stream = self.stream(item.source, item.joined)
        self._learn(turn, stream, stream.learn_from(turn, entry))
        place = stream.place(entry.epoch, entry.number)
        if place is Place.EARLY and self._has_returned(item.source, item.joined):
            place = Place.OBSOLETE  # what is missing before it was lost with a former self
        if place is Place.UNKNOWN:
            self.ask(item.source)
            return Outcome(False, f"{self.me} does not know this epoch of {item.source} yet")
        if isinstance(item, Skip):
            if place is not Place.OBSOLETE:
                self._skip(turn, stream, item)
            return TAKEN
        return self._take_in(turn, stream, item, place)

    def _has_returned(self, source: str, joined: int) -> bool:
        return source in self.federation and joined < self.federation[source].joined

    def _refusal(self, sender: str, item: Item, entry: Entry) -> Outcome | None:
        """What is wrong with an item before anything is done with it."""
        source = item.source
        if entry.receiver != self.me:
            return Outcome(False, f"this is for {entry.receiver}, not for {self.me}", True)
        if source not in self.federation and (source, item.joined) not in self.streams:
            return Outcome(False, f"{self.me} does not know {source}", True)
        if entry.joined > self.joined:
            return Outcome(False, f"{self.me} has not joined again yet")
        if isinstance(item, Skip):
            if sender != source:
                return Outcome(False, f"{sender} cannot skip events of {source}", True)
            return None
        if not item.path or (item.path[0], item.path[-1]) != (source, sender):
            return Outcome(False, f"{item.event} of {source} has not come this way", True)
        below = [name for child in entry.children for name in child.receivers()]
        carried = {*item.path, self.me}
        if self.me in item.path or carried & set(below) or len(set(below)) < len(below):
            return Outcome(False, f"{item.event} of {source} goes in a circle", True)
        return None

    def _take_in(
        self, turn: Turn, stream: InboundStream, item: Notification, place: Place
    ) -> Outcome:
        entry = item.entry
        new = place in (Place.NEXT, Place.EARLY)
        if not new and not entry.children:
            return TAKEN
        if place is Place.EARLY and len(stream.early) >= self.tuning.most_early:
            return Outcome(False, f"{self.me} holds back too many entries of {item.source}")
        if entry.children and len(self.forwarder.custody) >= self.tuning.most_custody:
            return Outcome(False, f"{self.me} forwards too much already")
        if new and len(self.log) >= self.tuning.most_events:
            return Outcome(False, f"{self.me} holds too many events")
        try:
            known = self._known(turn, item)
        except QnsError as error:
            return Outcome(False, str(error), True)
        for child in self._members(entry.children):
            parcel = Parcel(known.key, item.joined, child, item.path, None)
            self.forwarder.promise(turn, parcel)
        if place is Place.EARLY:
            if entry.number not in stream.early:
                row = EarlyRow(
                    stream.producer, stream.joined, entry.number, entry.epoch, item.event
                )
                stream.hold_back(turn, row)
                self.log.hold(known.key)
                turn.record("early", source=item.source, number=entry.number, event=item.event)
            self.watch_gap(turn, stream)
        elif place is Place.NEXT:
            self._take(turn, stream, entry.epoch, entry.number, known)
            self._drain(turn, stream)
        return TAKEN

    def _members(self, entries: tuple[Entry, ...]) -> list[Entry]:
        """The entries of members; in place of one that left, those below it."""
        found, waiting = [], list(entries)
        while waiting:
            entry = waiting.pop()
            name = entry.receiver
            if name in self.federation and self.federation[name].joined == entry.joined:
                found.append(entry)
            else:
                waiting.extend(entry.children)
        return found

    def _known(self, turn: Turn, item: Notification) -> KnownEvent:
        known = self.log.get((item.source, item.event))
        if known is None:
            event = read_event(item.xml, self.schema)
            if (event.source, event.id) != (item.source, item.event):
                raise DocumentError(f"the notification of {item.event} carries event {event.id}")
            position = (item.joined, item.epoch, item.sequence)
            known = KnownEvent(event, item.xml, position, turn.now + item.remaining_s)
            self.log.add(turn, known)
        elif known.xml != item.xml:
            raise DuplicateId(f"{item.source} has published another event with id {item.event}")
        return known

    def _take(
        self, turn: Turn, stream: InboundStream, epoch: int, number: int, known: KnownEvent
    ) -> None:
        stream.advance(turn, number)
        stream.record_taken(turn, epoch, number, known.event.id)
        if not known.taken:  # a restored producer may send again what it does not remember
            self.log.take(turn, known)
            self.inward.offer(turn, known)

    def _skip(self, turn: Turn, stream: InboundStream, skip: Skip) -> None:
        first = skip.first.number
        if first > stream.last + 1 or skip.last <= stream.last:
            return
        turn.record(
            "skip",
            source=stream.producer,
            joined=stream.joined,
            epoch=skip.first.epoch,
            first=stream.last + 1,
            last=skip.last,
            why=skip.reason,
            own=self.joined,
        )
        stream.advance(turn, skip.last)
        for row in stream.pop_passed(turn):
            self.log.release((stream.producer, row.event))
        self._drain(turn, stream)

    def _drain(self, turn: Turn, stream: InboundStream) -> None:
        while (row := stream.pop_next(turn)) is not None:
            known = self.log[stream.producer, row.event]
            self._take(turn, stream, row.epoch, row.number, known)
            self.log.release(known.key)
        self.watch_gap(turn, stream)
        self.inward.advanced(turn, stream.producer, stream.last)

    def pulled(self, turn: Turn, producer: str, pull: Pull, reply: Pulled) -> None:
        stream = self.stream(producer, pull.standing.joined)
        if pull.standing.own == self.joined:
            self._learn(turn, stream, stream.learn(turn, reply.epoch, reply.fences))
            self.watch_gap(turn, stream)
        for item in reply.items:
            self.accept(turn, producer, item)
        self.acknowledge_later(turn, producer)

    def watch_gap(self, turn: Turn, stream: InboundStream) -> None:
        link = self.forwarder.link(stream.producer)
        if stream.gap is None:
            link.pull_at, link.pulls = None, 0
        elif link.pull_at is None:
            link.pulls += 1
            link.pull_at = turn.now + self.tuning.pull_after_s * min(link.pulls, 8)

    def acknowledge_later(self, turn: Turn, source: str) -> None:
        link = self.forwarder.link(source)
        if link.acknowledge_at is None:
            link.acknowledge_at = turn.now + self.tuning.acknowledge_after_s

    # --- views and hellos -------------------------------------------------------------------------

    def change_sub(self, producer: str, epoch: int) -> ChangeSub | None:
        """What the producer has to be told, if anything."""
        call = self.merger.change_sub(producer)
        if call is None:
            return None
        joined = self.federation[producer].joined
        return ChangeSub(joined, self.joined, epoch, *call)

    def hello_from(self, turn: Turn, producer: str, hello: Hello) -> None:
        """The producer tells its epoch, its fences, and which view of ours it has."""
        if producer not in self.merger.views or hello.joined != self.federation[producer].joined:
            return
        stream = self.current(producer)
        if hello.epoch < stream.epoch or hello.standing.joined != self.joined:
            return
        self._learn(turn, stream, stream.learn(turn, hello.epoch, hello.fences))
        held = hello.held_version, hello.held_digest
        if hello.held_epoch > self.epoch:  # of a life of which nothing is left here
            self.ahead = max(self.ahead, hello.held_epoch)
        elif hello.held_epoch < self.epoch and self.merger.looks_like(producer, *held):
            self.ask(producer)  # a former life told it: is it ours?
        elif self.merger.compare(producer, *held):
            self._confirm(turn, producer, hello.held_version, hello.number)

    def sub_changed(self, turn: Turn, producer: str, call: ChangeSub, reply: SubChanged) -> None:
        if producer not in self.merger.views or call.own != self.joined:
            return
        joined = self.federation[producer].joined
        stream = self.current(producer)
        if not call.joined == reply.joined == joined or reply.epoch < stream.epoch:
            self.merger.failed(producer)
            self.ask(producer)
            return
        self._learn(turn, stream, stream.learn(turn, reply.epoch, reply.fences))
        if reply.version == call.version:
            self.merger.told(producer, call.version)
            self._confirm(turn, producer, call.version, reply.upto)
        else:
            self.merger.tell_all(producer)

    def _confirm(self, turn: Turn, producer: str, version: int, upto: int) -> None:
        self.confirmed[producer] = (version, upto)
        self.inward.confirmed(turn, producer, version, upto)
        self.inward.advanced(turn, producer, self.current(producer).last)

    def _learn(self, turn: Turn, stream: InboundStream, cut: list[EarlyRow] | None) -> None:
        """The producer was restored, if anything was cut off."""
        if cut is None:
            return
        for row in cut:
            self.log.release((stream.producer, row.event))
        self.confirmed.pop(stream.producer, None)
        if stream.producer in self.merger.views:
            self.merger.views[stream.producer].asked = False
        self.ask(stream.producer)
        self.inward.rewound(turn, stream.producer)
