"""Event log: the events that this peer published or received and still needs.

An event is kept while it is available to late subscribers (semantics §8) or while somebody holds
it: a consumer that has not acknowledged, a child in a diffusion tree, a user who has not read it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

from qns.cbr.event import Event
from qns.tables import EVENTS, EventRow
from qns.turn import Turn

EventKey = tuple[str, str]
"""(source, id)"""

Position = tuple[int, int, int]


@dataclass(slots=True, eq=False)
class KnownEvent:
    event: Event
    xml: bytes
    """The exact bytes that its producer wrote."""
    position: Position
    """Incarnation, epoch and sequence: its place in its producer's publication order."""
    expires_at: float
    taken: bool = False
    """Whether it has been offered to the local users."""
    holders: int = 0
    key: EventKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = (self.event.source, self.event.id)

    def row(self) -> EventRow:
        return EventRow(*self.key, *self.position, self.expires_at, int(self.taken), self.xml)


class EventLog:
    def __init__(self) -> None:
        self._events: dict[EventKey, KnownEvent] = {}
        self._by_source: dict[str, dict[EventKey, KnownEvent]] = {}
        self._expiries: list[tuple[float, EventKey]] = []
        self._unneeded: set[EventKey] = set()

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, key: EventKey) -> bool:
        return key in self._events

    def __getitem__(self, key: EventKey) -> KnownEvent:
        return self._events[key]

    def get(self, key: EventKey) -> KnownEvent | None:
        return self._events.get(key)

    def recover(self, known: KnownEvent) -> None:
        self._keep(known, -inf)

    def add(self, turn: Turn, known: KnownEvent) -> None:
        self._keep(known, turn.now)
        turn.put(EVENTS, known.row())

    def take(self, turn: Turn, known: KnownEvent) -> None:
        known.taken = True
        turn.put(EVENTS, known.row())

    def hold(self, key: EventKey) -> None:
        self._events[key].holders += 1

    def release(self, key: EventKey) -> None:
        known = self._events[key]
        known.holders -= 1
        if not known.holders:
            self._unneeded.add(key)

    def available(self, source: str, now: float) -> list[KnownEvent]:
        """What late subscribers still get from this producer, in publication order."""
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
        """This producer's events of these classes are not available any more."""
        ended = frozenset(classes)
        for key, known in self._by_source.get(source, {}).items():
            if known.event.data_class not in ended:
                continue
            known.expires_at = -inf
            self._unneeded.add(key)
            turn.put(EVENTS, known.row())

    def next_expiry(self) -> float:
        return self._expiries[0][0] if self._expiries else inf

    def collect(self, turn: Turn) -> Iterable[EventKey]:
        """Forgets what has expired and nobody holds; tells what it forgot."""
        while self._expiries and self._expiries[0][0] <= turn.now:
            self._unneeded.add(heapq.heappop(self._expiries)[1])
        if not self._unneeded:
            return ()
        gone = [key for key in self._unneeded if self._is_unneeded(key, turn.now)]
        self._unneeded.clear()
        gone.sort()
        for key in gone:
            del self._events[key]
            del self._by_source[key[0]][key]
            turn.delete(EVENTS, *key)
        return gone

    def _is_unneeded(self, key: EventKey, now: float) -> bool:
        known = self._events.get(key)
        return known is not None and not known.holders and known.expires_at <= now

    def _keep(self, known: KnownEvent, now: float) -> None:
        key = known.key
        self._events[key] = known
        of_source = self._by_source.get(key[0])
        if of_source is None:
            of_source = self._by_source[key[0]] = {}
        of_source[key] = known
        self._unneeded.add(key)  # until somebody holds it
        if now < known.expires_at < inf:
            heapq.heappush(self._expiries, (known.expires_at, key))

    def __iter__(self) -> Iterator[KnownEvent]:
        return iter(self._events.values())
