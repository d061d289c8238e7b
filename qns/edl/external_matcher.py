"""External Matcher: finds the organisations to which an event has to be sent (thesis 5.4.4)."""

from __future__ import annotations

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.peer.ports import Index


class ExternalMatcher:
    def __init__(self, index: Index[tuple[str, str]]) -> None:
        self._index = index

    def insert(self, consumer: str, element: str, subscription: Subscription) -> None:
        self._index.insert((consumer, element), subscription)

    def delete(self, consumer: str, element: str) -> None:
        self._index.delete((consumer, element))

    def interested(self, event: Event) -> list[str]:
        """Returns the organisations of which at least one element matches, sorted by name."""
        return sorted({consumer for consumer, _ in self._index.match(event)})
