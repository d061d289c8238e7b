"""External Matcher: finds the organisations to which an event has to be sent (thesis 5.4.4).

Changing the index takes longer than everything else that a change of a view needs. So elements are
put into the index before they are in force, and leave it when they are not in force any more, a few
in each turn. Such idle elements make no organisation interested.
"""

from __future__ import annotations

from collections.abc import Iterable

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.peer.ports import Index

_Key = tuple[str, str]
"""Consumer and element."""


class ExternalMatcher:
    def __init__(self, index: Index[_Key]) -> None:
        self._index = index
        self._idle: dict[_Key, Subscription] = {}
        """What is in the index and not in force."""
        self._waste: dict[_Key, None] = {}
        """Those of the idle elements that leave the index, the next one last."""

    @property
    def has_waste(self) -> bool:
        return bool(self._waste)

    def prepare(self, consumer: str, element: str, subscription: Subscription) -> None:
        """Puts an element into the index that is about to be in force."""
        key = consumer, element
        self._enter(key, subscription)
        self._idle[key] = subscription

    def insert(self, consumer: str, element: str, subscription: Subscription) -> None:
        """Puts an element in force; this is quick if it is prepared."""
        key = consumer, element
        self._enter(key, subscription)
        self._idle.pop(key, None)

    def delete(self, consumer: str, element: str, subscription: Subscription) -> None:
        """Ends an element that is in force."""
        key = consumer, element
        self._idle[key] = subscription
        self._waste[key] = None

    def drop(self, consumer: str, elements: Iterable[str]) -> None:
        """Ends elements that are prepared."""
        for element in elements:
            self._waste[consumer, element] = None

    def clean(self, most: int) -> None:
        """Takes some of the elements that have ended out of the index."""
        for _ in range(min(most, len(self._waste))):
            key, _ = self._waste.popitem()
            self._index.delete(key)
            del self._idle[key]

    def interested(self, event: Event) -> list[str]:
        """Returns the organisations of which at least one element matches, sorted by name."""
        found: Iterable[_Key] = self._index.match(event)
        if self._idle:
            found = (key for key in found if key not in self._idle)
        return sorted({consumer for consumer, _ in found})

    def _enter(self, key: _Key, subscription: Subscription) -> None:
        """Puts an element into the index, unless it is there, idle."""
        held = self._idle.get(key)
        self._waste.pop(key, None)
        if held is not None and held is not subscription and held != subscription:
            self._index.delete(key)
            del self._idle[key]
            held = None
        if held is None:
            self._index.insert(key, subscription)
