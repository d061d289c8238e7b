"""Local Dispatcher: brings matched events to the users, each once (thesis 5.4.4, semantics §9).

A delivery is a numbered row in the subscription's queue; its commit is the notification. Events for
a paused subscription, or for one that still waits for its producer's backlog, are queued apart and
become deliveries later. Of a delivery group each event goes to one member.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf

from qns.event_log import EventKey, EventLog, KnownEvent
from qns.iil.subscriptions import LocalSubscription, LocalSubscriptionTable
from qns.tables import DELIVERIES, QUEUED, SERVED, DeliveryRow, QueuedRow, ServedRow
from qns.turn import Turn

IsWaiting = Callable[[str, str], bool]
"""Whether a subscription still waits for a producer."""


@dataclass(slots=True, eq=False)
class _Queue:
    """What one subscription has: deliveries to be read, and events that wait."""

    ready: OrderedDict[int, DeliveryRow] = field(default_factory=OrderedDict)
    """By number. Deliveries go at its beginning, where a dict would look at all that ever went."""
    waiting: dict[int, QueuedRow] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class LocalDispatcher:
    table: LocalSubscriptionTable
    log: EventLog
    is_waiting: IsWaiting
    lease_s: float
    longest_queue: int
    _queues: dict[str, _Queue] = field(default_factory=dict)
    _served: dict[EventKey, set[str]] = field(default_factory=dict)
    """Available event -> the delivery groups that have had it."""
    _turns: dict[str, int] = field(default_factory=dict)
    """Whose turn it is in each delivery group."""
    _order: int = 0
    _leases: list[tuple[float, str, int]] = field(default_factory=list)

    # --- offering ---------------------------------------------------------------------------------

    def offer(self, turn: Turn, known: KnownEvent, matched: Iterable[str]) -> None:
        """An event that has come, for all the subscriptions that it matches."""
        groups: dict[str, list[LocalSubscription]] = {}
        for id in matched:
            subscription = self.table[id]
            if subscription.group:
                groups.setdefault(subscription.group, []).append(subscription)
            else:
                self._offer_one(turn, known, subscription)
        for group, members in groups.items():
            self._offer_group(turn, known, group, members)

    def catch_up(
        self, turn: Turn, subscription: LocalSubscription, source: str, late: Iterable[KnownEvent]
    ) -> None:
        """It is stable at a producer now: what was held, and what it came late for, in order."""
        queue = self._queue(subscription.id)
        held = [row for row in queue.waiting.values() if row.held and row.source == source]
        events = {known.key: known for known in late}
        for row in held:
            known = self.log[row.source, row.event]
            events[known.key] = known
            self._unqueue(turn, row)
        for known in sorted(events.values(), key=lambda each: each.position):
            if subscription.group:
                self._offer_group(turn, known, subscription.group, [subscription])
            else:
                self._offer_one(turn, known, subscription)
        if subscription.group and not subscription.is_paused:
            self._take_over(turn, subscription)

    def _offer_one(self, turn: Turn, known: KnownEvent, to: LocalSubscription) -> None:
        if self.is_waiting(to.id, known.event.source):
            self._enqueue(turn, known, to, held=True)
        elif to.is_paused:
            self._enqueue(turn, known, to, held=False)
        else:
            self._deliver(turn, known, to, inf)

    def _offer_group(
        self, turn: Turn, known: KnownEvent, group: str, members: list[LocalSubscription]
    ) -> None:
        if group in self._served.get(known.key, ()):
            return
        source = known.event.source
        stable = [each for each in members if not self.is_waiting(each.id, source)]
        ready = [each for each in stable if not each.is_paused]
        queued = self._queued_in(group, known.key)
        if ready:
            for row in queued:
                self._unqueue(turn, row)
            self._hand_out(turn, known, group, ready)
        elif not queued:
            to = (stable or members)[0]
            self._enqueue(turn, known, to, held=not stable)

    def _hand_out(
        self, turn: Turn, known: KnownEvent, group: str, members: list[LocalSubscription]
    ) -> None:
        last = self._turns.get(group, 0)
        to = next((each for each in members if each.created > last), members[0])
        self._turns[group] = to.created
        self._deliver(turn, known, to, turn.now + self.lease_s)
        self._served.setdefault(known.key, set()).add(group)
        turn.put(SERVED, ServedRow(group, *known.key))

    # --- the life of a subscription ---------------------------------------------------------------

    def resume(self, turn: Turn, subscription: LocalSubscription) -> None:
        """Delivers what gathered in the pause; of a group, what gathered at any paused member."""
        if subscription.group:
            self._take_over(turn, subscription)
            return
        for row in list(self._queue(subscription.id).waiting.values()):
            if not row.held:
                self._unqueue(turn, row)
                self._deliver(turn, self.log[row.source, row.event], subscription, inf)

    def _take_over(self, turn: Turn, subscription: LocalSubscription) -> None:
        """A member that may be served gets what waits at members of its group that may not."""
        rows = [
            row
            for member in self.table.members(subscription.group)
            for row in self._queue(member.id).waiting.values()
            if not self.is_waiting(subscription.id, row.source)
        ]
        for row in sorted(rows, key=lambda row: row.order):
            known = self.log[row.source, row.event]
            if subscription.subscription.matches(known.event):
                self._unqueue(turn, row)
                self._hand_out(turn, known, subscription.group, [subscription])

    def waste(self, subscription: LocalSubscription) -> int:
        """How many events would be dropped with it, because nobody else may have them."""
        queue = self._queue(subscription.id)
        rows: list[DeliveryRow | QueuedRow] = [*queue.ready.values(), *queue.waiting.values()]
        return sum(not self._others(subscription, self.log[row.source, row.event]) for row in rows)

    def end(self, turn: Turn, subscription: LocalSubscription) -> None:
        """Its queue goes; of a group, what it has not acknowledged passes to others."""
        queue = self._queues.pop(subscription.id, _Queue())
        for ready in queue.ready.values():
            turn.delete(DELIVERIES, subscription.id, ready.number)
        for waiting in queue.waiting.values():
            turn.delete(QUEUED, subscription.id, waiting.order)
        rows: list[DeliveryRow | QueuedRow] = [*queue.ready.values(), *queue.waiting.values()]
        for row in rows:
            known = self.log[row.source, row.event]
            if subscription.group and isinstance(row, DeliveryRow):
                self._lapse(turn, subscription, known)
            others = self._others(subscription, known)
            if others:
                self._offer_group(turn, known, subscription.group, others)
            self.log.release(known.key)

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self, id: str, after: int, limit: int, most_bytes: int
    ) -> list[tuple[int, KnownEvent]]:
        """Deliveries beyond a number, oldest first; reading alone changes nothing."""
        found: list[tuple[int, KnownEvent]] = []
        for number, row in self._queue(id).ready.items():  # they came in this order
            if len(found) >= limit:
                break
            if number > after:
                known = self.log[row.source, row.event]
                most_bytes -= len(known.xml)
                if found and most_bytes < 0:
                    break
                found.append((number, known))
        return found

    def acknowledge(self, turn: Turn, id: str, upto: int) -> int:
        """The user has these for good; how many there were."""
        ready = self._queue(id).ready
        done = list(takewhile(lambda number: number <= upto, ready))
        for number in done:
            self._remove(turn, ready[number])
        return len(done)

    def depth(self, id: str) -> int:
        queue = self._queue(id)
        return len(queue.ready) + len(queue.waiting)

    # --- leases and collection --------------------------------------------------------------------

    def next_lapse(self) -> float:
        return self._leases[0][0] if self._leases else inf

    def lapse(self, turn: Turn) -> None:
        """Passes on what members of groups have not acknowledged in time."""
        while self._leases and self._leases[0][0] <= turn.now:
            _, id, number = heapq.heappop(self._leases)
            row = self._queues[id].ready.get(number) if id in self._queues else None
            if row is not None and row.lease_until <= turn.now:
                self._pass_on(turn, self.table[id], row)

    def _pass_on(self, turn: Turn, member: LocalSubscription, row: DeliveryRow) -> None:
        known = self.log[row.source, row.event]
        others = [
            each
            for each in self._others(member, known)
            if not each.is_paused and not self.is_waiting(each.id, row.source)
        ]
        if not others:  # nobody to pass it to: it stays where it is
            later = row._replace(lease_until=turn.now + self.lease_s)
            self._keep(later)
            turn.put(DELIVERIES, later)
            return
        self.log.hold(known.key)
        self._remove(turn, row)
        self._lapse(turn, member, known)
        self._hand_out(turn, known, member.group, others)
        self.log.release(known.key)

    def _lapse(self, turn: Turn, member: LocalSubscription, known: KnownEvent) -> None:
        source, event = known.key
        turn.record("lapse", sub=member.id, group=member.group, source=source, event=event)
        self._served.get(known.key, set()).discard(member.group)
        turn.delete(SERVED, member.group, source, event)

    def _others(self, member: LocalSubscription, known: KnownEvent) -> list[LocalSubscription]:
        """The members of its group who may have the event as well."""
        return [
            each
            for each in (self.table.members(member.group) if member.group else ())
            if each is not member and each.subscription.matches(known.event)
        ]

    def forget(self, turn: Turn, key: EventKey) -> None:
        """The event is gone from the log."""
        for group in self._served.pop(key, ()):
            turn.delete(SERVED, group, *key)

    # --- rows -------------------------------------------------------------------------------------

    def recover_delivery(self, row: DeliveryRow) -> None:
        self._keep(row)
        self.log.hold((row.source, row.event))

    def recover_queued(self, row: QueuedRow) -> None:
        self._queue(row.subscription).waiting[row.order] = row
        self._order = max(self._order, row.order)
        self.log.hold((row.source, row.event))

    def recover_served(self, row: ServedRow) -> None:
        self._served.setdefault((row.source, row.event), set()).add(row.delivery_group)

    def _queue(self, id: str) -> _Queue:
        found = self._queues.get(id)
        if found is None:
            found = self._queues[id] = _Queue()
        return found

    def _queued_in(self, group: str, key: EventKey) -> list[QueuedRow]:
        return [
            row
            for member in self.table.members(group)
            for row in self._queue(member.id).waiting.values()
            if (row.source, row.event) == key
        ]

    def _deliver(
        self, turn: Turn, known: KnownEvent, to: LocalSubscription, lease_until: float
    ) -> None:
        source, event = known.key
        to.delivered += 1
        row = DeliveryRow(to.id, to.delivered, source, event, lease_until)
        ready = self._keep(row).ready
        self.log.hold(known.key)
        turn.put(DELIVERIES, row)
        turn.records.append(
            {"do": "ntfy", "sub": to.id, "group": to.group, "source": source, "event": event}
        )
        if len(ready) > self.longest_queue:
            self._remove(turn, ready[next(iter(ready))])
            to.dropped += 1
        self.table.counted(to)

    def _keep(self, row: DeliveryRow) -> _Queue:
        queue = self._queue(row.subscription)
        queue.ready[row.number] = row
        if row.lease_until < inf:
            heapq.heappush(self._leases, (row.lease_until, row.subscription, row.number))
        return queue

    def _remove(self, turn: Turn, row: DeliveryRow) -> None:
        del self._queue(row.subscription).ready[row.number]
        turn.delete(DELIVERIES, row.subscription, row.number)
        self.log.release((row.source, row.event))

    def _enqueue(self, turn: Turn, known: KnownEvent, to: LocalSubscription, *, held: bool) -> None:
        self._order += 1
        row = QueuedRow(to.id, self._order, *known.key, int(held))
        self._queue(to.id).waiting[row.order] = row
        self.log.hold(known.key)
        turn.put(QUEUED, row)

    def _unqueue(self, turn: Turn, row: QueuedRow) -> None:
        if self._queue(row.subscription).waiting.pop(row.order, None):
            turn.delete(QUEUED, row.subscription, row.order)
            self.log.release((row.source, row.event))
