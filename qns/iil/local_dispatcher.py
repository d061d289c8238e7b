"""Local Dispatcher: delivers matched events to the users, each once (thesis 5.4.4, semantics §9).

A delivery is a numbered row in the queue of a subscription; its commit is the notification. Events
for a subscription that is paused, or pending at the producer, wait in a queue of their own and
become deliveries later. In a delivery group each event goes to one member. Of a long queue only the
first rows are in memory (`queue_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Final

from qns.iil.dropped_numbers import DroppedNumbers
from qns.iil.leases import Leases
from qns.iil.local_subscription_table import LocalSubscription, LocalSubscriptionTable
from qns.iil.queue_rows import QueueRows
from qns.peer.event_log import EventKey, EventLog, LoggedEvent
from qns.peer.outcomes import Incident, IncidentKind
from qns.peer.ports import Store
from qns.peer.row_view import RowView
from qns.peer.tables import DELIVERIES, QUEUED, DeliveryRow, QueuedRow
from qns.peer.turn import Turn

_ROWS_PER_ANSWER: Final = 500
"""As many rows of a long queue are read at once for a pull; most answers have fewer."""

IsPending = Callable[[str, str], bool]
"""True if the subscription is pending at the producer."""


@dataclass(slots=True, eq=False)
class _Queue:
    """The queue of one subscription: deliveries that can be read, and events that wait."""

    ready: QueueRows[DeliveryRow]
    waiting: QueueRows[QueuedRow]

    def __len__(self) -> int:
        return len(self.ready) + len(self.waiting)

    def rows(self) -> Iterator[DeliveryRow | QueuedRow]:
        """Yields every row; each may be removed when it has been yielded."""
        yield from self.ready.after(0)
        yield from self.waiting.after(0)


@dataclass(slots=True, eq=False)
class LocalDispatcher:
    table: LocalSubscriptionTable
    log: EventLog
    is_pending: IsPending
    lease_s: float
    longest_queue: float
    """The operator's limit: deliveries and waiting events of one subscription."""
    view: RowView
    """Where the rows of long queues are read."""
    unread_in_memory: float
    dropped: DroppedNumbers = field(default_factory=DroppedNumbers)
    _queues: dict[str, _Queue] = field(default_factory=dict)
    _last_member: dict[str, int] = field(default_factory=dict)
    """Delivery group -> the member (`created`) that received the last event: round robin."""
    _order: int = 0
    _leases: Leases = field(default_factory=Leases)

    # --- offering ---------------------------------------------------------------------------------

    def offer(self, turn: Turn, logged: LoggedEvent, matched: Iterable[str]) -> None:
        """Delivers an event to the subscriptions that it matches, or queues it for them."""
        groups: dict[str, list[LocalSubscription]] = {}
        for id in matched:
            subscription = self.table[id]
            if subscription.group:
                groups.setdefault(subscription.group, []).append(subscription)
            else:
                self._offer_one(turn, logged, subscription)
        for group, members in groups.items():
            self._offer_group(turn, logged, group, members)

    def catch_up(
        self, turn: Turn, subscription: LocalSubscription, source: str, late: Iterable[LoggedEvent]
    ) -> None:
        """Delivers held and late events, in order, to a subscription that became stable."""
        queue = self._queue(subscription.id)
        held = [row for row in queue.waiting.after(0) if row.held and row.source == source]
        events = {logged.key: logged for logged in late}
        for row in held:
            logged = self.log[row.source, row.event]
            events[logged.key] = logged
            self._unqueue(turn, row)
        for logged in sorted(events.values(), key=lambda each: each.position):
            if subscription.group:
                self._offer_group(turn, logged, subscription.group, [subscription])
            else:
                self._offer_one(turn, logged, subscription)
        if subscription.group and not subscription.is_paused:
            self._take_over(turn, subscription)

    def _offer_one(self, turn: Turn, logged: LoggedEvent, to: LocalSubscription) -> None:
        if self.is_pending(to.id, logged.event.source):
            self._enqueue(turn, logged, to, held=True)
        elif to.is_paused:
            self._enqueue(turn, logged, to, held=False)
        else:
            self._deliver(turn, logged, to, inf)

    def _offer_group(
        self, turn: Turn, logged: LoggedEvent, group: str, members: list[LocalSubscription]
    ) -> None:
        if group in logged.served:
            return
        source = logged.event.source
        stable = [each for each in members if not self.is_pending(each.id, source)]
        ready = [each for each in stable if not each.is_paused]
        queued = self._queued_in(group, logged)
        if ready:
            for row in queued:
                self._unqueue(turn, row)
            self._hand_out(turn, logged, group, ready)
        elif not queued:
            to = (stable or members)[0]
            self._enqueue(turn, logged, to, held=not stable)

    def _hand_out(
        self, turn: Turn, logged: LoggedEvent, group: str, members: list[LocalSubscription]
    ) -> None:
        if self.longest_queue < inf:  # a member whose queue is full would drop another event
            members = [each for each in members if self.depth(each.id) < self.longest_queue] or (
                members
            )
        last = self._last_member.get(group, 0)
        to = next((each for each in members if each.created > last), members[0])
        self._last_member[group] = to.created
        self._deliver(turn, logged, to, turn.now + self.lease_s)
        self.log.add_served(turn, logged, group)

    # --- pausing and ending -----------------------------------------------------------------------

    def resume(self, turn: Turn, subscription: LocalSubscription) -> None:
        """Delivers what collected in the pause; in a group, what collected at any paused member."""
        if subscription.group:
            self._take_over(turn, subscription)
            return
        for row in self._queue(subscription.id).waiting.after(0):
            if not row.held and self._unqueue(turn, row):
                self._deliver(turn, self.log[row.source, row.event], subscription, inf)

    def _take_over(self, turn: Turn, subscription: LocalSubscription) -> None:
        """Gives an active member the events that wait at the other members of its group."""
        rows = [
            row
            for member in self.table.members(subscription.group)
            for row in self._queue(member.id).waiting.after(0)
            if not self.is_pending(subscription.id, row.source)
        ]
        for row in sorted(rows, key=lambda row: row.order):
            logged = self.log[row.source, row.event]
            matches = subscription.subscription.matches(logged.event)
            if matches and self._unqueue(turn, row):
                self._hand_out(turn, logged, subscription.group, [subscription])

    def count_dropped(self, subscription: LocalSubscription) -> int:
        """Returns how many events no other member could receive if the subscription ended."""
        queue = self._queue(subscription.id)
        if not subscription.group:
            return len(queue)
        return sum(
            not self._others(subscription, self.log[row.source, row.event]) for row in queue.rows()
        )

    def end(self, turn: Turn, subscription: LocalSubscription) -> None:
        """Removes its queue; in a group, unacknowledged events pass to other members."""
        for row in self._queue(subscription.id).rows():
            logged = self.log[row.source, row.event] if subscription.group else None
            self._remove(turn, row)
            if logged is not None:
                if isinstance(row, DeliveryRow):
                    self._lapse(turn, subscription, logged)
                others = self._others(subscription, logged)
                if others:
                    self._offer_group(turn, logged, subscription.group, others)
        del self._queues[subscription.id]
        self.dropped.remove(turn, subscription.id)

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self, id: str, after: int, limit: int, most_bytes: int
    ) -> list[tuple[int, LoggedEvent]]:
        """Returns deliveries after a number, oldest first; changes nothing."""
        found: list[tuple[int, LoggedEvent]] = []
        for row in islice(self._queue(id).ready.after(after, _ROWS_PER_ANSWER), limit):
            logged = self.log[row.source, row.event]
            most_bytes -= len(logged.xml)
            if found and most_bytes < 0:
                break
            found.append((row.number, logged))
        return found

    def acknowledge(self, turn: Turn, id: str, upto: int) -> int:
        """Removes the deliveries up to a number; returns how many there were."""
        ready = self._queue(id).ready
        count = 0
        for row in ready.upto(upto):
            self._remove(turn, row)
            count += 1
        ready.first()  # is read next: from the disk, if memory has no more rows
        self.dropped.acknowledge(turn, id, upto)
        turn.record("ack", sub=id, upto=upto, count=count)
        return count

    def depth(self, id: str) -> int:
        return len(self._queue(id))

    def find(self, id: str, key: EventKey) -> DeliveryRow | QueuedRow | None:
        """Returns where an event is in the queue of a subscription; None if it is not there."""
        queue = self._queue(id)
        return queue.ready.find(*key) or queue.waiting.find(*key)

    def oldest_unread(self, id: str) -> DeliveryRow | None:
        """Returns the oldest delivery that the user has not acknowledged."""
        return self._queue(id).ready.first()

    # --- leases -----------------------------------------------------------------------------------

    def next_lease_end(self) -> float:
        return self._leases.next_end()

    def end_leases(self, turn: Turn) -> None:
        """Passes on the events that members of groups have not acknowledged in time."""
        while (run := self._leases.take(turn.now)) is not None:
            queue = self._queues.get(run.subscription)
            rows = [] if queue is None else queue.ready.between(run.first, run.last)
            longest, next_end = turn.now + self.lease_s, inf
            for row in rows:
                end = row.lease_until
                if end <= run.end or end > longest:  # the clock may have been set back
                    end = self._pass_on(turn, self.table[run.subscription], row)
                next_end = min(next_end, end)
            if next_end < inf:
                self._leases.add_again(run, next_end)

    def _pass_on(self, turn: Turn, member: LocalSubscription, row: DeliveryRow) -> float:
        """Passes a delivery to another member; returns the end of its lease if none can get it."""
        logged = self.log[row.source, row.event]
        others = [
            each
            for each in self._others(member, logged)
            if not each.is_paused and not self.is_pending(each.id, row.source)
        ]
        if not others:  # no other member can receive it
            later = row._replace(lease_until=turn.now + self.lease_s)
            self._queue(member.id).ready.replace(later)
            turn.put(DELIVERIES, later)
            return later.lease_until
        self._remove(turn, row)
        self._lapse(turn, member, logged)
        self._hand_out(turn, logged, member.group, others)
        return inf

    def _lapse(self, turn: Turn, member: LocalSubscription, logged: LoggedEvent) -> None:
        source, event = logged.key
        turn.report(
            IncidentKind.LAPSE, sub=member.id, group=member.group, source=source, event=event
        )
        self.log.remove_served(turn, logged, member.group)

    def _others(self, member: LocalSubscription, logged: LoggedEvent) -> list[LocalSubscription]:
        """Returns the other members of the member's group that match the event."""
        return [
            each
            for each in (self.table.members(member.group) if member.group else ())
            if each is not member and each.subscription.matches(logged.event)
        ]

    # --- rows -------------------------------------------------------------------------------------

    def recover_from(self, store: Store, now: float) -> None:
        longest = now + self.lease_s  # the clock may have been set back
        for delivery in store.rows(DELIVERIES):
            is_too_long = longest < delivery.lease_until < inf
            recovered = delivery._replace(lease_until=longest) if is_too_long else delivery
            is_in_memory = self._queue(delivery.subscription).ready.add(recovered)
            if recovered.lease_until < inf:
                self._leases.add(recovered, is_in_memory=is_in_memory)
            self.log.recover_queued((delivery.source, delivery.event))
        for queued in store.rows(QUEUED):
            self._queue(queued.subscription).waiting.add(queued)
            self._order = max(self._order, queued.order)
            self.log.recover_queued((queued.source, queued.event))
        self.dropped.recover_from(store)

    def _queue(self, id: str) -> _Queue:
        found = self._queues.get(id)
        if found is None:
            view, most = self.view, self.unread_in_memory
            found = self._queues[id] = _Queue(
                QueueRows(DELIVERIES, id, view, most), QueueRows(QUEUED, id, view, most)
            )
        return found

    def _queued_in(self, group: str, logged: LoggedEvent) -> list[QueuedRow]:
        """Returns the row of an event that waits at a member of the group, if there is one."""
        if not logged.queued:
            return []
        members = self.table.members(group)
        found = (self._queue(member.id).waiting.find(*logged.key) for member in members)
        return [row for row in found if row is not None]

    def _deliver(
        self, turn: Turn, logged: LoggedEvent, to: LocalSubscription, lease_until: float
    ) -> None:
        """Adds a delivery to the queue. It is the hottest function here, so it makes few calls."""
        source, event = logged.key
        number = self.table.next_delivery(turn, to)
        row = DeliveryRow(to.id, number, source, event, lease_until, turn.now)
        queue = self._queue(to.id)
        logged.queued += 1
        turn.transaction.put(DELIVERIES, row)
        is_in_memory = queue.ready.add(row)
        if lease_until < inf:
            self._leases.add(row, is_in_memory=is_in_memory)
        turn.records.append(
            {
                "do": "ntfy",
                "sub": to.id,
                "group": to.group,
                "source": source,
                "event": event,
                "number": number,
            }
        )
        outcomes = turn.outcomes
        outcomes.deliveries.append(row)
        outcomes.published_us.append(logged.event.published_us)
        if self.longest_queue < inf and len(queue) > self.longest_queue:
            self._shorten(turn, to, queue)

    def _shorten(self, turn: Turn, to: LocalSubscription, queue: _Queue) -> None:
        """Drops what the user would read first, until the queue has the longest allowed length.

        An event that waits gets a number when it is dropped: numbers are dense, so that the reader
        learns of everything that is missing.
        """
        while len(queue) > self.longest_queue:
            row = queue.ready.first() or queue.waiting.first()
            assert row is not None
            self._remove(turn, row)
            if isinstance(row, DeliveryRow):
                number = row.number
            else:
                number = self.table.next_delivery(turn, to)
            to.dropped += 1
            turn.record(
                "overflow",
                sub=to.id,
                group=to.group,
                source=row.source,
                event=row.event,
                number=number,
            )
            turn.outcomes.overflows.append(to.id)
            if self.dropped.add(turn, to.id, number):  # one report until the reader acknowledges
                about = {"sub": to.id, "number": number, "limit": self.longest_queue}
                turn.outcomes.incidents.append(Incident(IncidentKind.OVERFLOW, about))
        self.table.counted(to)

    def _remove(self, turn: Turn, row: DeliveryRow | QueuedRow) -> None:
        queue = self._queue(row.subscription)
        if isinstance(row, DeliveryRow):
            queue.ready.remove(row)
            turn.delete(DELIVERIES, row.subscription, row.number)
        else:
            queue.waiting.remove(row)
            turn.delete(QUEUED, row.subscription, row.order)
        self.log.dequeue((row.source, row.event))

    def _enqueue(
        self, turn: Turn, logged: LoggedEvent, to: LocalSubscription, *, held: bool
    ) -> None:
        self._order += 1
        row = QueuedRow(to.id, self._order, *logged.key, int(held))
        queue = self._queue(to.id)
        logged.queued += 1
        turn.put(QUEUED, row)
        queue.waiting.add(row)
        if len(queue) > self.longest_queue:
            self._shorten(turn, to, queue)

    def _unqueue(self, turn: Turn, row: QueuedRow) -> bool:
        """Removes an event that waits; returns False if the limit has dropped it meanwhile."""
        if self._queue(row.subscription).waiting.get(row.order) is None:
            return False
        self._remove(turn, row)
        return True
