"""Stability: which subscriptions still wait for which producer (semantics §9, FIFO).

A subscription is stable at a producer when the view that covers it is in force there and the
backlog that came with it is complete here. Until then its events from that producer are held, so
that they reach the user in publication order.
"""

from __future__ import annotations

from qns.tables import WAITING, WaitingRow
from qns.turn import Turn


class Stability:
    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, WaitingRow]] = {}
        """Producer -> subscription -> what it waits for."""

    def recover(self, row: WaitingRow) -> None:
        self._waiting.setdefault(row.producer, {})[row.subscription] = row

    def is_waiting(self, subscription: str, producer: str) -> bool:
        return subscription in self._waiting.get(producer, ())

    def waits_for(self, producer: str) -> int:
        """How many subscriptions wait for this producer."""
        return len(self._waiting.get(producer, ()))

    def pending(self, subscription: str) -> list[str]:
        """The producers for which it waits."""
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
        """Waits, anew if it did already, for this version of the producer's view."""
        before = self._waiting.get(producer, {}).get(subscription)
        late = late or (before is not None and bool(before.late))
        self._put(turn, WaitingRow(subscription, producer, version, until, int(late)))

    def confirm(self, turn: Turn, producer: str, version: int, upto: int) -> None:
        """That version is in force, and its backlog ends with that number."""
        for row in list(self._waiting.get(producer, {}).values()):
            if row.until is None and row.version <= version:
                self._put(turn, row._replace(until=upto))

    def stable(self, turn: Turn, producer: str, last: int) -> list[WaitingRow]:
        """Those that need wait no longer, now that number `last` is here."""
        waiting = self._waiting.get(producer)
        if not waiting:
            return []
        done = [row for row in waiting.values() if row.until is not None and row.until <= last]
        for row in done:
            self._drop(turn, row.subscription, producer)
        return done

    def forget(self, turn: Turn, subscription: str) -> None:
        for producer in self.pending(subscription):
            self._drop(turn, subscription, producer)

    def forget_producer(self, turn: Turn, producer: str) -> list[WaitingRow]:
        """The producer left: there is nothing to wait for."""
        rows = list(self._waiting.get(producer, {}).values())
        for row in rows:
            self._drop(turn, row.subscription, producer)
        return rows

    def _put(self, turn: Turn, row: WaitingRow) -> None:
        self._waiting.setdefault(row.producer, {})[row.subscription] = row
        turn.put(WAITING, row)

    def _drop(self, turn: Turn, subscription: str, producer: str) -> None:
        del self._waiting[producer][subscription]
        turn.delete(WAITING, subscription, producer)
