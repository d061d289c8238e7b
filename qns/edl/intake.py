"""Intake: accepts notifications and skips, and puts every producer's stream in order.

Nearly all notifications come straight from their producer, each the next one of its stream, new and
without a subtree. `_accept_run` accepts a whole call of these with few checks and matches them
together with those of the next calls. The first item that differs in any way ends the run, and
`_accept` handles it: it knows every case.

Accepted events are collected in a list that the caller owns, `accepted`. Only `Intake.offer` passes
them to the users' side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qns.d2q.event_xml import read_event
from qns.edl.inbound_stream import InboundStream, Place
from qns.edl.item_checks import TAKEN, check_item
from qns.edl.link import Parcel
from qns.edl.messages import (
    Entry,
    GapPulled,
    Item,
    Notification,
    Outcome,
    PullGap,
    Skip,
    entry_of,
)
from qns.errors import DocumentError, DuplicateId, NotAllowed, QnsError, shorten
from qns.peer.event_log import LoggedEvent
from qns.peer.outcomes import IncidentKind
from qns.peer.past_events import EVERYONE, content_of
from qns.peer.tables import EVENTS, EarlyRow
from qns.peer.turn import Turn

if TYPE_CHECKING:
    from qns.edl.consumer import Consumer

Accepted = list[LoggedEvent]
"""Events that are accepted but not offered to the users yet, in order."""


@dataclass(slots=True, eq=False)
class Intake:
    consumer: Consumer

    def accept_all(
        self, turn: Turn, sender: str, items: Sequence[Item], accepted: Accepted
    ) -> tuple[Outcome, ...]:
        """Accepts the items of one Notify; returns one outcome for each."""
        self.consumer.seals.begin_request()
        outcomes: list[Outcome] = []
        while len(outcomes) < len(items):
            outcomes += [TAKEN] * self._accept_run(turn, sender, items, len(outcomes), accepted)
            if len(outcomes) < len(items):
                item = items[len(outcomes)]
                outcomes.append(self._accept(turn, sender, item, accepted))
        return tuple(outcomes)

    def gap_pulled(self, turn: Turn, producer: str, pull: PullGap, reply: GapPulled) -> None:
        """Accepts the items with which a producer closes a gap."""
        consumer = self.consumer
        stream = consumer.stream(producer, pull.standing.producer_incarnation)
        if pull.standing.consumer_incarnation == consumer.incarnation:
            consumer.learn(turn, stream, reply.epoch, reply.fences)
            consumer.watch_gap(turn, stream)
        consumer.seals.begin_request()
        accepted: Accepted = []
        for item in reply.items:
            self._accept(turn, producer, item, accepted)
        self.offer(turn, accepted)
        consumer.acknowledge_later(turn, producer, pull.standing.producer_incarnation)

    def offer(self, turn: Turn, accepted: Accepted) -> None:
        """Offers the accepted events to the users, before a later item changes their side."""
        if accepted:
            self.consumer.sink.offer(turn, accepted)
            accepted.clear()

    # --- the fast path ----------------------------------------------------------------------------

    def _accept_run(
        self, turn: Turn, sender: str, items: Sequence[Item], start: int, accepted: Accepted
    ) -> int:
        """Accepts the items from `start` on as long as they are ordinary; returns how many."""
        stream = self._ordinary_stream(sender)
        rest = (items[place] for place in range(start, len(items))) if start else items
        run = [] if stream is None else self._log_run(turn, stream, rest)
        if stream is None or not run:
            return 0
        for logged in run:
            stream.advance(turn, stream.last + 1, logged.position, is_new=True)
            stream.record_taken(turn, stream.epoch, stream.last, logged.event.id)
        stream.put(turn)
        self.consumer.watch_gap(turn, stream)
        accepted += run
        return len(run)

    def _ordinary_stream(self, sender: str) -> InboundStream | None:
        """Returns the stream of the sender if the fast path may be used, otherwise None.

        Both are members, no entry is held back, no subscription is pending at the sender, no fence
        of a later epoch is known, and no number was accepted before the stream was set back.
        """
        consumer = self.consumer
        federation = consumer.federation
        if sender == consumer.me or sender not in federation or consumer.me not in federation:
            return None
        stream = consumer.streams.get((sender, federation[sender].incarnation))
        if stream is None or stream.early or stream.is_repeating:
            return None
        if consumer.sink.has_pending(sender):
            return None
        newest = stream.fences.newest
        return None if newest is not None and newest.epoch > stream.epoch else stream

    def _log_run(
        self, turn: Turn, stream: InboundStream, items: Iterable[Item]
    ) -> list[LoggedEvent]:
        """Adds the events of the first items that are ordinary to the log and returns them."""
        consumer = self.consumer
        me, my_incarnation = consumer.me, consumer.incarnation
        log, schema = consumer.log, consumer.schema
        producer, its_incarnation = stream.producer, stream.producer_incarnation
        epoch, last = stream.epoch, stream.last
        most, path_from_producer = consumer.tuning.most_events, (stream.producer,)
        offered_to, past = consumer.sink.newest_subscription(), log.past.repeatable(producer)
        seals, evidence = None, None
        if consumer.seals.requires(producer):
            seals, evidence = consumer.seals, consumer.evidence
        found: list[LoggedEvent] = []
        for item in items:
            if type(item) is not Notification:
                break
            source, incarnation, published_in, sequence, id, xml, remaining_s, entry, path, _ = item
            receiver, receiver_incarnation, numbered_in, number, _, _, children, _, _ = entry
            last += 1
            if (
                source != producer
                or incarnation != its_incarnation
                or path != path_from_producer
                or receiver != me
                or receiver_incarnation != my_incarnation
                or numbered_in != epoch
                or number != last
                or children
                or (source, id) in log
                or id in past
                or log.in_memory >= most
                or (seals is not None and seals.flaw(turn.now, producer, item) is not None)
            ):
                break
            try:
                event = read_event(xml, schema)
            except QnsError:
                break
            if event.id != id or event.source != source:
                break
            if consumer.is_foreign(source, incarnation, event.data_class):
                break
            position = (incarnation, published_in, sequence)
            logged = LoggedEvent(event, xml, position, turn.now + remaining_s, taken=True)
            logged.offered_to = offered_to
            log.add(turn, logged)
            if evidence is not None:
                evidence.keep(turn, item)
            found.append(logged)
        return found

    # --- every case -------------------------------------------------------------------------------

    def _accept(self, turn: Turn, sender: str, item: Item, accepted: Accepted) -> Outcome:
        """Accepts one item; the turn's transaction has everything that it changes."""
        self.offer(turn, accepted)  # earlier events are offered before the item changes anything
        consumer = self.consumer
        entry = entry_of(item)
        verdict = check_item(turn, consumer, sender, item)
        if verdict is not None:
            return verdict
        if entry.receiver != consumer.me:
            return self._relay(turn, sender, item)
        if (
            entry.incarnation < consumer.incarnation
            or consumer.me not in consumer.federation
            or not consumer.has_stream(item.source, item.producer_incarnation)
        ):
            # Nothing is owed to, or by, an earlier incarnation. But something may be owed to the
            # subtree.
            if isinstance(item, Skip):
                return TAKEN
            return self._take_in(turn, None, item, Place.OBSOLETE, accepted)
        stream = consumer.stream(item.source, item.producer_incarnation)
        consumer.handle_epoch(turn, stream, stream.learn_from(turn, entry))
        place = stream.place(entry.epoch, entry.number)
        if place is Place.EARLY and consumer.has_returned(item.source, item.producer_incarnation):
            place = Place.OBSOLETE  # the earlier incarnation will not send what is missing
        if place is Place.UNKNOWN:
            consumer.want_hello(item.source)
            return Outcome(False, f"{consumer.me} does not know this epoch of {item.source} yet")
        if isinstance(item, Skip):
            if place is not Place.OBSOLETE:
                self._skip(turn, stream, item, accepted)
            return TAKEN
        return self._take_in(turn, stream, item, place, accepted)

    def _relay(self, turn: Turn, sender: str, item: Item) -> Outcome:
        """Takes custody of an item for another receiver, whom its sender does not reach."""
        consumer, forwarder = self.consumer, self.consumer.forwarder
        receiver = entry_of(item).receiver
        entries = self._members((entry_of(item),))
        if not entries:
            return Outcome(False, f"{shorten(receiver)} is not a member as {consumer.me} sees it")
        if isinstance(item, Skip):
            forwarder.relay_skip(turn, sender, item)
            return TAKEN
        if len(forwarder.custody) >= consumer.tuning.most_custody:
            return Outcome(False, f"{consumer.me} forwards too much already")
        if consumer.log.in_memory >= consumer.tuning.most_events:
            return Outcome(False, f"{consumer.me} holds too many events")
        try:
            logged = self._log(turn, item)
        except QnsError as error:
            return Outcome(False, str(error), True)
        incarnation = item.producer_incarnation
        for entry in entries:
            parcel = Parcel(logged.key, incarnation, entry, item.path, None, item.seal)
            forwarder.relay(turn, parcel)
        return TAKEN

    def _take_in(
        self,
        turn: Turn,
        stream: InboundStream | None,
        item: Notification,
        place: Place,
        accepted: Accepted,
    ) -> Outcome:
        consumer, forwarder = self.consumer, self.consumer.forwarder
        me, tuning, entry = consumer.me, consumer.tuning, item.entry
        is_new = place in (Place.NEXT, Place.EARLY)
        if not is_new and not entry.children:
            return TAKEN
        if stream and place is Place.EARLY and len(stream.early) >= tuning.most_early:
            return Outcome(False, f"{me} holds back too many entries of {item.source}")
        if entry.children and len(forwarder.custody) >= tuning.most_custody:
            return Outcome(False, f"{me} forwards too much already")
        if is_new and consumer.log.in_memory >= tuning.most_events:
            return Outcome(False, f"{me} holds too many events")
        try:
            logged = self._log(turn, item)
        except QnsError as error:
            return Outcome(False, str(error), True)
        for child in self._members(entry.children):
            parcel = Parcel(
                logged.key, item.producer_incarnation, child, item.path, None, item.seal
            )
            forwarder.promise(turn, parcel)
        if stream and place is Place.EARLY:
            self._hold_back(turn, stream, item)
        elif stream and place is Place.NEXT:
            self._keep_evidence(turn, item)
            self._take(turn, stream, entry.epoch, entry.number, logged, accepted)
            self._take_early(turn, stream, accepted)
        return TAKEN

    def _hold_back(self, turn: Turn, stream: InboundStream, item: Notification) -> None:
        entry = item.entry
        if entry.number not in stream.early:
            row = EarlyRow(
                stream.producer,
                stream.producer_incarnation,
                entry.number,
                entry.epoch,
                item.event,
            )
            stream.hold_back(turn, row)
            self._keep_evidence(turn, item)
            self.consumer.log.hold((item.source, item.event))
            turn.record("early", source=item.source, number=entry.number, event=item.event)
        self.consumer.watch_gap(turn, stream)

    def _keep_evidence(self, turn: Turn, item: Notification) -> None:
        if self.consumer.evidence is not None:
            self.consumer.evidence.keep(turn, item)

    def _members(self, entries: tuple[Entry, ...]) -> list[Entry]:
        """Returns the entries of members; those below an organisation that left replace it."""
        federation = self.consumer.federation
        found, waiting = [], list(entries)
        while waiting:
            entry = waiting.pop()
            name = entry.receiver
            if name in federation and federation[name].incarnation == entry.incarnation:
                found.append(entry)
            else:
                waiting.extend(entry.children)
        return found

    def _log(self, turn: Turn, item: Notification) -> LoggedEvent:
        """Returns the logged event of a notification; adds it to the log if it is new."""
        log = self.consumer.log
        logged = log.get((item.source, item.event))
        position = (item.producer_incarnation, item.epoch, item.sequence)
        if logged is None:
            event = read_event(item.xml, self.consumer.schema)
            if (event.source, event.id) != (item.source, item.event):
                raise DocumentError(f"the notification of {item.event} carries event {event.id}")
            if self.consumer.is_foreign(item.source, item.producer_incarnation, event.data_class):
                raise NotAllowed(f"{item.source} has never hosted {event.data_class}")
            logged = LoggedEvent(event, item.xml, position, turn.now + item.remaining_s)
            log.add(turn, logged)
        elif logged.xml != item.xml and content_of(logged.xml) != content_of(item.xml):
            raise DuplicateId(f"{item.source} has published another event with id {item.event}")
        elif position != logged.position:  # its producer went back and has published it again
            logged.position, logged.is_repeated = position, logged.taken
            turn.put(EVENTS, logged.row())  # children of this peer get the new position too
        return logged

    def _take(
        self,
        turn: Turn,
        stream: InboundStream,
        epoch: int,
        number: int,
        logged: LoggedEvent,
        accepted: Accepted,
    ) -> None:
        log, sink = self.consumer.log, self.consumer.sink
        is_again = stream.was_accepted(number, logged.position)
        before: int | None
        if logged.taken:
            before = logged.offered_to if logged.is_repeated else EVERYONE
        else:
            before = log.past.find(*logged.key, logged.xml, logged.position)
            if before is None and is_again:  # an available event that had come would be in the log
                is_again = logged.expires_at <= turn.now
                before = EVERYONE if is_again else None
        stream.advance(turn, number, logged.position, is_new=not is_again)
        stream.put(turn)
        stream.record_taken(turn, epoch, number, logged.event.id)
        if not logged.taken:
            log.mark_taken(turn, logged)
        elif not logged.is_repeated:
            return  # the second number of an event that was sent again
        logged.is_repeated = False
        logged.offered_to = sink.newest_subscription()
        if before is None:
            accepted.append(logged)
        else:  # a restored producer has sent the event before, under another number
            self.offer(turn, accepted)
            sink.offer_again(turn, logged, before)

    def _skip(self, turn: Turn, stream: InboundStream, skip: Skip, accepted: Accepted) -> None:
        first = skip.first.number
        if first > stream.last + 1 or skip.last <= stream.last:
            return
        turn.report(
            IncidentKind.SKIP,
            source=stream.producer,
            joined=stream.producer_incarnation,
            epoch=skip.first.epoch,
            first=stream.last + 1,
            last=skip.last,
            why=skip.reason,
            own=self.consumer.incarnation,
        )
        for row in stream.skip_to(turn, skip.last):
            self.consumer.log.release((stream.producer, row.event))
        self._take_early(turn, stream, accepted)

    def _take_early(self, turn: Turn, stream: InboundStream, accepted: Accepted) -> None:
        """Takes the early entries whose number is next, then reports how far the stream is."""
        consumer = self.consumer
        while (row := stream.pop_next(turn)) is not None:
            logged = consumer.log[stream.producer, row.event]
            self._take(turn, stream, row.epoch, row.number, logged, accepted)
            consumer.log.release(logged.key)
        consumer.watch_gap(turn, stream)
        self.offer(turn, accepted)
        view = consumer.view_progress(stream.producer)
        consumer.sink.stream_advanced(turn, stream.producer, stream.last, view)
