"""Stability: which subscriptions are pending at which producer (semantics §9, FIFO).

A subscription is stable at a producer when the view that covers it is in force there and the
backlog of that view is complete here. Until then it is pending and its events from that producer
are held, so that they reach the user in publication order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from qns.peer.ports import Store
from qns.peer.tables import WAITING, WaitingRow
from qns.peer.turn import Turn


class Stability:
    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, WaitingRow]] = {}
        """Producer -> subscription -> what the subscription waits for."""
        self._since: dict[str, dict[str, float]] = {}
        """Producer -> subscription -> since when it is pending, in that order."""

    def recover_from(self, store: Store) -> None:
        for row in store.rows(WAITING):
            self.recover(row)

    def recover(self, row: WaitingRow) -> None:
        self._waiting.setdefault(row.producer, {})[row.subscription] = row
        self._since.setdefault(row.producer, {})[row.subscription] = 0.0

    def is_pending(self, subscription: str, producer: str) -> bool:
        return subscription in self._waiting.get(producer, ())

    def has_pending(self, producer: str) -> bool:
        """True if a subscription is pending at this producer."""
        return bool(self._waiting.get(producer))

    def pending_at(self, producer: str) -> int:
        """Returns how many subscriptions are pending at this producer."""
        return len(self._waiting.get(producer, ()))

    def longest_pending(self) -> Iterator[tuple[str, int, str, float]]:
        """Yields producers with the number of subscriptions, the longest pending one and its time.

        The time is 0 if the subscription was pending before the last start.
        """
        for producer, since in self._since.items():
            for oldest, at in islice(since.items(), 1):
                yield producer, len(since), oldest, at

    def pending(self, subscription: str) -> list[str]:
        """Returns the producers at which the subscription is pending."""
        return sorted(
            producer for producer, waiting in self._waiting.items() if subscription in waiting
        )

    def wait(
        self,
        turn: Turn,
        subscription: str,
        producer: str,
        version: int,
        until: int | None,
        *,
        late: bool,
    ) -> None:
        """Makes the subscription wait for this version of the view, also if it waits already."""
        before = self._waiting.get(producer, {}).get(subscription)
        late = late or (before is not None and bool(before.late))
        self._put(turn, WaitingRow(subscription, producer, version, until, int(late)))

    def confirm(self, turn: Turn, producer: str, version: int, upto: int) -> None:
        """Notes that this version is in force and that its backlog ends with number `upto`."""
        for row in list(self._waiting.get(producer, {}).values()):
            if row.until is None and row.version <= version:
                self._put(turn, row._replace(until=upto))

    def void(self, turn: Turn, producer: str, first: int) -> bool:
        """Forgets where backlogs end that end with number `first` or a later one.

        Returns True if there are any.
        """
        rows = list(self._waiting.get(producer, {}).values())
        rows = [row for row in rows if row.until is not None and row.until >= first]
        for row in rows:
            self._put(turn, row._replace(until=None))
        return bool(rows)

    def pop_stable(self, turn: Turn, producer: str, last: int) -> list[WaitingRow]:
        """Removes and returns the rows whose backlog is complete with number `last`."""
        waiting = self._waiting.get(producer)
        if not waiting:
            return []
        done = [row for row in waiting.values() if row.until is not None and row.until <= last]
        for row in done:
            self._drop(turn, row.subscription, producer)
        return done

    def forget(self, turn: Turn, subscription: str) -> None:
        """Removes a subscription that has ended."""
        for producer in self.pending(subscription):
            self._drop(turn, subscription, producer)

    def pop_producer(self, turn: Turn, producer: str) -> list[WaitingRow]:
        """Removes and returns the rows of a producer that has left."""
        rows = list(self._waiting.get(producer, {}).values())
        for row in rows:
            self._drop(turn, row.subscription, producer)
        return rows

    def _put(self, turn: Turn, row: WaitingRow) -> None:
        self._waiting.setdefault(row.producer, {})[row.subscription] = row
        self._since.setdefault(row.producer, {}).setdefault(row.subscription, turn.now)
        turn.put(WAITING, row)

    def _drop(self, turn: Turn, subscription: str, producer: str) -> None:
        del self._waiting[producer][subscription]
        del self._since[producer][subscription]
        turn.delete(WAITING, subscription, producer)
