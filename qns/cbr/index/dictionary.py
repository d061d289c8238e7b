"""The dictionary index: the matching index in plain Python, for where numba is not installed.

A subscription that lists the values of some attribute is filed under each of them, the attribute
with the fewest listed values first; any other is filed under its scope alone. An event looks under
its own values and asks each subscription that it finds there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from qns.cbr.domains import Key
from qns.cbr.event import Event
from qns.cbr.intervals import Intervals
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.errors import DuplicateId, NameNotKnown

Id = TypeVar("Id", bound=Hashable)

MAX_LISTED = 64

_Place = tuple[str, str, Key]  # class, attribute, value; ("", "") for none


class DictionaryIndex(Generic[Id]):
    """Subscriptions by id; `match` tells which of them an event matches."""

    def __init__(self, subscriptions: Mapping[Id, Subscription] | None = None) -> None:
        self._subscriptions: dict[Id, Subscription] = {}
        self._filed: dict[_Place, dict[Id, Subscription]] = {}
        if subscriptions:
            self.insert_all(subscriptions.items())

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: Id) -> bool:
        return id in self._subscriptions

    def __getitem__(self, id: Id) -> Subscription:
        subscription = self._subscriptions.get(id)
        if subscription is None:
            raise NameNotKnown("subscription", str(id), ())
        return subscription

    def insert(self, id: Id, subscription: Subscription) -> None:
        if id in self._subscriptions:
            raise DuplicateId(f"subscription {id} exists already", remedy="choose another id")
        self._subscriptions[id] = subscription
        for place in _places(subscription):
            self._filed.setdefault(place, {})[id] = subscription

    def insert_all(self, items: Iterable[tuple[Id, Subscription]]) -> None:
        """Inserts many at once: all of them, or none if an id is taken."""
        listed: dict[Id, Subscription] = {}
        for id, subscription in items:
            if id in listed or id in self._subscriptions:
                raise DuplicateId(f"subscription {id} exists already", remedy="choose another id")
            listed[id] = subscription
        for id, subscription in listed.items():
            self.insert(id, subscription)

    def delete(self, id: Id) -> None:
        for place in _places(self[id]):
            drawer = self._filed[place]
            del drawer[id]
            if not drawer:
                del self._filed[place]
        del self._subscriptions[id]

    def match(self, event: Event) -> list[Id]:
        """The ids of all subscriptions that the event matches, in no particular order."""
        path = event.data_class
        found = [
            id
            for id, subscription in self._filed.get((path, "", ""), {}).items()
            if subscription.matches(event)
        ]
        for attribute, key in event.values.items():
            for id, subscription in self._filed.get((path, attribute, key), {}).items():
                if subscription.matches(event):
                    found.append(id)
        return found

    def match_all(self, events: Sequence[Event]) -> list[list[Id]]:
        return [self.match(event) for event in events]


def _places(subscription: Subscription) -> list[_Place]:
    best: tuple[str, list[Key]] | None = None
    for attribute, values in subscription.constraints.items():
        keys = _listed(values)
        if keys is not None and (best is None or len(keys) < len(best[1])):
            best = attribute, keys
    if best is None:
        return [(path, "", "") for path in subscription.scope]
    return [(path, best[0], key) for path in subscription.scope for key in best[1]]


def _listed(values: ValueSet) -> list[Key] | None:
    """The values of a set that lists a few, else None."""
    if isinstance(values, Strings):
        few = values.listed is not None and len(values.listed) <= MAX_LISTED
        return list(values.listed or ()) if few else None
    spans = values.spans if isinstance(values, Intervals) else values.new.spans
    if sum(hi - lo + 1 for lo, hi in spans) > MAX_LISTED:
        return None
    return [key for lo, hi in spans for key in range(lo, hi + 1)]
