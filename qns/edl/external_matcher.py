"""External Matcher: to which organisations does an event have to be sent? (thesis 5.4.4)"""

from __future__ import annotations

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.ports import Index


class ExternalMatcher:
    def __init__(self, index: Index[tuple[str, str]]) -> None:
        self._index = index

    def insert(self, consumer: str, element: str, subscription: Subscription) -> None:
        self._index.insert((consumer, element), subscription)

    def delete(self, consumer: str, element: str) -> None:
        self._index.delete((consumer, element))

    def interested(self, event: Event) -> list[str]:
        """Each organisation once, however many of its elements match; in a stable order."""
        return sorted({consumer for consumer, _ in self._index.match(event)})
