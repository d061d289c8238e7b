"""Event log: the events that this peer published or received and still needs.

An event is kept while it is available to late subscribers (semantics §8), while it is owed to a
consumer that has not acknowledged it, while it is in the queue of a user, or while it has other
holders: a child in a diffusion tree, an entry that is held back. Memory has the events that are
available and, up to a limit, the others. Those beyond the limit are only in the store and are read
when they are sent or delivered; who needs them is then found in the store as well.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Protocol

from qns.cbr.event import Event
from qns.d2q.event_xml import read_event
from qns.d2q.schema import Schema
from qns.peer.bloom_filter import BloomFilter
from qns.peer.past_events import PastEvents
from qns.peer.ports import Store
from qns.peer.row_view import RowView
from qns.peer.tables import DELIVERIES, EVENTS, QUEUED, SERVED, EventRow, ServedRow
from qns.peer.turn import Turn

EventKey = tuple[str, str]
"""(source, id)"""

Position = tuple[int, int, int]


@dataclass(slots=True, eq=False)
class LoggedEvent:
    event: Event
    xml: bytes
    """The exact bytes that its producer wrote."""
    position: Position
    """Incarnation, epoch and sequence: the place in the publication order of its producer."""
    expires_at: float
    taken: bool = False
    """True if it has been offered to the local users."""
    holders: int = 0
    """Children and other holders that are in memory themselves."""
    owed: int = 0
    """Consumers that have not acknowledged it."""
    queued: float = 0
    """Rows that it has in the queues of users: unread deliveries, and events that wait. It is
    infinite if the event was loaded from the store, which then tells whether there are any."""
    served: frozenset[str] = frozenset()
    """The delivery groups that have received it."""
    offered_to: int = -1
    """The newest subscription (`created`) when it was offered to the local users; -1 if it was not,
    or before this start, or if this organisation published it."""
    is_repeated: bool = False
    """True until the repetition by a producer that went back in time is offered to the users."""
    key: EventKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = (self.event.source, self.event.id)

    def row(self) -> EventRow:
        return EventRow(*self.key, *self.position, self.expires_at, int(self.taken), self.xml)


class CountOwed(Protocol):
    """Returns to how many consumers an event is owed that is only in the store.

    The producer sets it when it has recovered its streams, because the log is built before it.
    """

    def __call__(self, key: EventKey, /) -> int: ...


def _count_nothing(_: EventKey, /) -> int:
    """Returns 0: a log without a producer owes nothing."""
    return 0


class EventLog:
    def __init__(
        self,
        view: RowView | None = None,
        schema: Schema | None = None,
        most_in_memory: float = inf,
        most_remembered: int = 0,
    ) -> None:
        self.schema = schema
        self.count_owed: CountOwed = _count_nothing
        self.past = PastEvents(most_remembered)
        self._view = view
        self._most_in_memory = most_in_memory
        self._events: OrderedDict[EventKey, LoggedEvent] = OrderedDict()
        """The events in memory; those that came or were needed first are in front."""
        self._on_disk = 0
        """The number of events that are only in the store."""
        self._maybe_on_disk = BloomFilter()
        self._held_on_disk: dict[EventKey, int] = {}
        """The holders of events that are only in the store; users' queues do not count."""
        self._served_rows = 0
        """The number of rows in the table `served`."""
        self._is_checked = True
        """False until the events that are only in the store have been checked after a start."""
        self._added = 0
        """Events that have come into memory since `trim` was called."""
        self._by_source: dict[str, dict[EventKey, LoggedEvent]] = {}
        self._expiries: list[tuple[float, EventKey]] = []
        self._unneeded: set[EventKey] = set()

    def __len__(self) -> int:
        return len(self._events) + self._on_disk

    @property
    def in_memory(self) -> int:
        """The number of events that are in memory, or that have a holder in memory."""
        return len(self._events) + len(self._held_on_disk)

    def __contains__(self, key: EventKey) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: EventKey) -> LoggedEvent:
        logged = self.get(key)
        if logged is None:
            raise KeyError(key)
        return logged

    def get(self, key: EventKey) -> LoggedEvent | None:
        logged = self._events.get(key)
        if logged is None and self._on_disk and key in self._maybe_on_disk:
            logged = self._load(key)
        return logged

    def recover_from(self, store: Store, now: float) -> None:
        """Loads the events of the store, except those beyond the limit that are not available."""
        for row in store.rows(EVENTS):
            if row.expires_at > now or len(self._events) < self._most_in_memory:
                self.recover(self._logged(row))
            else:
                self._note_on_disk((row.source, row.id))
                self._is_checked = False
        for served in store.rows(SERVED):
            self._served_rows += 1
            logged = self._events.get((served.source, served.event))
            if logged is not None:
                logged.served |= {served.delivery_group}

    def recover(self, logged: LoggedEvent) -> None:
        self._keep(logged, -inf)

    def add(self, turn: Turn, logged: LoggedEvent) -> None:
        self._keep(logged, turn.now)
        turn.put(EVENTS, logged.row())

    def mark_taken(self, turn: Turn, logged: LoggedEvent) -> None:
        logged.taken = True
        turn.put(EVENTS, logged.row())

    def hold(self, key: EventKey) -> None:
        """Adds a holder: the event is kept until every holder has released it."""
        logged = self._events.get(key)
        if logged is not None:
            logged.holders += 1
        elif self._on_disk and key in self._maybe_on_disk:
            self._held_on_disk[key] = self._held_on_disk.get(key, 0) + 1
        else:
            raise KeyError(key)

    def release(self, key: EventKey) -> None:
        """Removes a holder."""
        logged = self._events.get(key)
        if logged is not None:
            logged.holders -= 1
            left = logged.holders
        else:
            left = self._held_on_disk[key] = self._held_on_disk[key] - 1
            if not left:
                del self._held_on_disk[key]
        if not left:
            self._unneeded.add(key)

    def owe(self, key: EventKey) -> None:
        """Notes that the event is owed to one more consumer."""
        logged = self._events.get(key)
        if logged is not None:  # otherwise this is counted when it is loaded
            logged.owed += 1

    def settle(self, key: EventKey) -> None:
        """Notes that the event is owed to one consumer less."""
        logged = self._events.get(key)
        if logged is not None:
            logged.owed -= 1
        if logged is None or not logged.owed:
            self._unneeded.add(key)

    def recover_queued(self, key: EventKey) -> None:
        """Counts a row that the event has in the queue of a user."""
        logged = self._events.get(key)
        if logged is not None:
            logged.queued += 1
        elif not self._on_disk or key not in self._maybe_on_disk:
            raise KeyError(key)

    def dequeue(self, key: EventKey) -> None:
        """Notes that the event has one row less in the queues of users, after it was deleted."""
        logged = self._events.get(key)
        if logged is not None:
            logged.queued -= 1
        if logged is None or logged.queued in (0, inf):
            self._unneeded.add(key)

    def add_served(self, turn: Turn, logged: LoggedEvent, group: str) -> None:
        """Notes that a delivery group has received the event."""
        if group not in logged.served:
            logged.served |= {group}
            self._served_rows += 1
            turn.put(SERVED, ServedRow(group, *logged.key))

    def remove_served(self, turn: Turn, logged: LoggedEvent, group: str) -> None:
        """Notes that a delivery group has not received the event any more."""
        if group in logged.served:
            logged.served -= {group}
            self._served_rows -= 1
            turn.delete(SERVED, group, *logged.key)

    def available(self, source: str, now: float) -> list[LoggedEvent]:
        """Returns the events of this producer that late subscribers get, in publication order."""
        found = [
            each
            for each in self._by_source.get(source, {}).values()
            if each.taken and each.event.available_s and each.expires_at >= now
        ]
        found.sort(key=lambda each: each.position)
        return found

    def sources(self) -> list[str]:
        return list(self._by_source)

    def expire(self, turn: Turn, source: str, classes: Iterable[str]) -> None:
        """Ends the availability of this producer's events of these classes."""
        ended = frozenset(classes)
        for key, logged in self._by_source.get(source, {}).items():
            if logged.event.data_class not in ended:
                continue
            logged.expires_at = -inf
            self._unneeded.add(key)
            turn.put(EVENTS, logged.row())

    def next_expiry(self) -> float:
        return self._expiries[0][0] if self._expiries else inf

    def collect(self, turn: Turn) -> Iterable[EventKey]:
        """Removes the events that have expired and have no holder; returns their keys."""
        while self._expiries and self._expiries[0][0] <= turn.now:
            self._unneeded.add(heapq.heappop(self._expiries)[1])
        if not self._is_checked:
            self._check_unneeded()
        if not self._unneeded:
            return ()
        gone = [key for key in self._unneeded if self._is_unneeded(key, turn.now)]
        self._unneeded.clear()
        gone.sort()
        for key in gone:
            logged = self._events.get(key)
            if logged is not None:
                served: Iterable[str] = logged.served
                if logged.offered_to >= 0:
                    self.past.remember(*key, logged.xml, logged.offered_to, logged.position)
                self._drop(key)
            else:
                served = self._served_on_disk(key)
                self._forget_on_disk()
            for group in served:
                self._served_rows -= 1
                turn.delete(SERVED, group, *key)
            turn.delete(EVENTS, *key)
        return gone

    def trim(self, now: float) -> None:
        """Drops events from memory that are not available, if there are more than the limit.

        Called at the end of a turn, when nothing refers to the events any more. It looks at a few
        more events than have come, so that its cost does not depend on the number of events.
        """
        excess = min(len(self._events) - self._most_in_memory, 2 * self._added + 1)
        self._added = 0
        if excess <= 0:
            return
        for key in list(islice(self._events, int(excess))):
            logged = self._events[key]
            if logged.expires_at <= now:
                self._drop(key)
                self._note_on_disk(key)
                if logged.holders:
                    self._held_on_disk[key] = logged.holders
            else:
                self._events.move_to_end(key)

    def _is_unneeded(self, key: EventKey, now: float) -> bool:
        logged = self._events.get(key)
        if logged is not None:
            is_held = logged.holders or logged.owed or 0 < logged.queued < inf
            if is_held or logged.expires_at > now:
                return False
            return not logged.queued or not self._is_queued(key)
        if not self._on_disk or key not in self._maybe_on_disk:
            return False
        assert self._view is not None
        row = self._view.get(EVENTS, key)
        if row is None or row.expires_at > now:
            return False
        return key not in self._held_on_disk and not self._is_needed_on_disk(key)

    def _check_unneeded(self) -> None:
        """Finds events that expired while the peer was down and that nobody needs."""
        assert self._view is not None
        self._is_checked = True
        for row in self._view.rows(EVENTS):
            key = (row.source, row.id)
            is_held = key in self._events or key in self._held_on_disk
            if not is_held and not self._is_needed_on_disk(key):
                self._unneeded.add(key)

    # --- memory and store -------------------------------------------------------------------------

    def _load(self, key: EventKey) -> LoggedEvent | None:
        assert self._view is not None
        row = self._view.get(EVENTS, key)
        if row is None:
            return None
        logged = self._logged(row)
        logged.owed = self.count_owed(key)
        logged.queued = inf
        logged.served = self._served_on_disk(key)
        logged.holders = self._held_on_disk.pop(key, 0)
        self._put(logged)
        self._forget_on_disk()
        return logged

    def _is_needed_on_disk(self, key: EventKey) -> bool:
        """True if an event that is only in the store is owed or in the queue of a user."""
        return self._is_queued(key) or self.count_owed(key) > 0

    def _is_queued(self, key: EventKey) -> bool:
        """True if the store has a row of the event in the queue of a user."""
        assert self._view is not None
        return self._view.has_event(DELIVERIES, *key) or self._view.has_event(QUEUED, *key)

    def _served_on_disk(self, key: EventKey) -> frozenset[str]:
        """Returns the delivery groups that have received an event that is only in the store."""
        if not self._served_rows:
            return frozenset()
        assert self._view is not None
        found = self._view.find(SERVED, "event", key[1])
        return frozenset(row.delivery_group for row in found if row.source == key[0])

    def _logged(self, row: EventRow) -> LoggedEvent:
        assert self.schema is not None
        event = read_event(row.xml, self.schema)
        position = (row.joined, row.epoch, row.sequence)
        return LoggedEvent(event, row.xml, position, row.expires_at, bool(row.taken))

    def _note_on_disk(self, key: EventKey) -> None:
        self._on_disk += 1
        self._maybe_on_disk.add(key)

    def _forget_on_disk(self) -> None:
        self._on_disk -= 1
        if not self._on_disk:
            self._maybe_on_disk.clear()

    def _drop(self, key: EventKey) -> None:
        del self._events[key]
        del self._by_source[key[0]][key]

    def _keep(self, logged: LoggedEvent, now: float) -> None:
        self._put(logged)
        self._unneeded.add(logged.key)  # until it has a holder
        if now < logged.expires_at < inf:
            heapq.heappush(self._expiries, (logged.expires_at, logged.key))

    def _put(self, logged: LoggedEvent) -> None:
        key = logged.key
        self._events[key] = logged
        self._added += 1
        of_source = self._by_source.get(key[0])
        if of_source is None:
            of_source = self._by_source[key[0]] = {}
        of_source[key] = logged

    def holders(self) -> dict[EventKey, int]:
        """Returns the number of holders of every event that has one, without users' queues."""
        in_memory = {each.key: each.holders for each in self._events.values() if each.holders}
        return in_memory | self._held_on_disk

    def __iter__(self) -> Iterator[LoggedEvent]:
        """Yields the events in memory."""
        return iter(self._events.values())
