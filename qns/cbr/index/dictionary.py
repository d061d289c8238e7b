"""The dictionary index: the matching index in plain Python, used if numba is not installed.

A subscription is filed under the values that it lists for one attribute, or under a quality
dimension that it needs, or else under an attribute that it needs. Of several such places, the one
with the fewest other subscriptions is chosen. An event is compared with the subscriptions that are
filed under its values and attributes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from qns.cbr.domains import Key
from qns.cbr.event import Event
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.errors import DuplicateId, NameNotKnown

Id = TypeVar("Id", bound=Hashable)

MAX_LISTED = 16

_Place = tuple[str, str, Key | None]  # class, attribute, value; None for any value


class DictionaryIndex(Generic[Id]):
    """Holds subscriptions by id. `match` finds those that an event matches."""

    def __init__(self, subscriptions: Mapping[Id, Subscription] | None = None) -> None:
        self._subscriptions: dict[Id, Subscription] = {}
        self._filed: dict[_Place, dict[Id, Subscription]] = {}
        self._places: dict[Id, list[_Place]] = {}
        if subscriptions:
            self.insert_all(subscriptions.items())

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: Id) -> bool:
        return id in self._subscriptions

    def __getitem__(self, id: Id) -> Subscription:
        return self._subscriptions[self._known(id)]

    def insert(self, id: Id, subscription: Subscription) -> None:
        if id in self._subscriptions:
            raise DuplicateId(f"subscription {id} exists already", remedy="choose another id")
        self._subscriptions[id] = subscription
        self._places[id] = min(_choices(subscription), key=self._crowd)
        for place in self._places[id]:
            self._filed.setdefault(place, {})[id] = subscription

    def insert_all(self, items: Iterable[tuple[Id, Subscription]]) -> None:
        """Inserts all of them, or none if an id is in use or occurs twice."""
        listed: dict[Id, Subscription] = {}
        for id, subscription in items:
            if id in listed or id in self._subscriptions:
                raise DuplicateId(f"subscription {id} exists already", remedy="choose another id")
            listed[id] = subscription
        for id, subscription in listed.items():
            self.insert(id, subscription)

    def delete(self, id: Id) -> None:
        del self._subscriptions[self._known(id)]
        for place in self._places.pop(id):
            drawer = self._filed[place]
            del drawer[id]
            if not drawer:
                del self._filed[place]

    def match(self, event: Event) -> list[Id]:
        """Returns the ids of all subscriptions that the event matches, in no particular order."""
        path = event.data_class
        places: list[_Place] = [(path, "", None)]
        for attribute, key in event.values.items():
            places += [(path, attribute, key), (path, attribute, None)]
        return [
            id
            for place in places
            if place in self._filed
            for id, subscription in self._filed[place].items()
            if subscription.matches(event)
        ]

    def match_all(self, events: Sequence[Event]) -> list[list[Id]]:
        return [self.match(event) for event in events]

    def _crowd(self, places: list[_Place]) -> int:
        return max(len(self._filed.get(place, ())) for place in places)

    def _known(self, id: Id) -> Id:
        if id not in self._subscriptions:
            raise NameNotKnown("subscription", str(id), ())
        return id


def _choices(subscription: Subscription) -> Iterator[list[_Place]]:
    """Yields the ways to file a subscription. An event visits at most one place of each way."""
    attributes = subscription.constraints.items()
    choices = [(name, keys) for name, values in attributes if (keys := _listed(values)) is not None]
    needed = [name for name, values in attributes if isinstance(values, Region)]
    if not choices and not needed:  # data is nearly always present, so needing it selects little
        needed = [*subscription.constraints, ""][:1]
    for name, keys in choices:
        yield [(path, name, key) for path in subscription.scope for key in keys]
    for name in needed:
        yield [(path, name, None) for path in subscription.scope]


def _listed(values: ValueSet) -> list[Key] | None:
    """Returns the values of the set if they are few, else None."""
    if isinstance(values, Strings):
        few = values.listed is not None and len(values.listed) <= MAX_LISTED
        return list(values.listed or ()) if few else None
    spans = values.spans if isinstance(values, Intervals) else values.new.spans
    if sum(hi - lo + 1 for lo, hi in spans) > MAX_LISTED:
        return None
    return [key for lo, hi in spans for key in range(lo, hi + 1)]
