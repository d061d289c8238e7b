"""Diffusion: the receivers of an event, by the External Merge Tables and by the users.

The tables of all producers are one index, in which the sources of a row are the producers that hold
it. So an event matches only rows of its own producer, and five hundred tables that differ in few
rows need little more memory than one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from qns.cbr.delta import Delta
from qns.cbr.event import Event
from qns.cbr.index import MatchingIndex
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.pipeline.workload.scenario import Hosts


class Audience(NamedTuple):
    """Receivers of some events: a row for each event, a column for each organisation."""

    users: Any
    """The number of users that are notified."""
    interested: Any
    """True if the event is sent to the organisation; never true for its publisher."""


class Diffusion:
    """The current users of a federation and the current tables of its producers."""

    def __init__(self, organisations: Iterable[str]) -> None:
        self.names: tuple[str, ...] = tuple(sorted(organisations))
        """In the order of tree builders; the number of an organisation is its place here."""
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self._users = _Filed()
        self._rows = _Filed()

    def add_users(self, organisation: str, subscriptions: Iterable[Subscription]) -> list[int]:
        """Adds subscriptions of users; returns a handle for each."""
        return self._users.add(self.numbers[organisation], subscriptions)

    def remove_users(self, handles: Iterable[int]) -> None:
        self._users.remove(handles)

    def add_rows(
        self, consumer: str, rows: Iterable[tuple[Subscription, Iterable[str]]]
    ) -> list[int]:
        """Adds rows of the consumer to the tables of these producers; a handle for each row."""
        entered = (replace(row, sources=frozenset(holders)) for row, holders in rows)
        return self._rows.add(self.numbers[consumer], entered)

    def remove_rows(self, handles: Iterable[int]) -> None:
        self._rows.remove(handles)

    def audience(self, events: Sequence[Event]) -> Audience:
        """The receivers of these events if they are published now."""
        many = len(self.names)
        users = self._users.found(events, many)
        interested = self._rows.found(events, many) > 0
        publishers = [self.numbers[event.source] for event in events]
        wanted = users > 0
        wanted[np.arange(len(events)), publishers] = False
        wrong = np.argwhere(wanted != interested)
        if len(wrong):  # a merge subscription matches exactly its members' events (semantics §6)
            event, organisation = wrong[0]
            raise AssertionError(
                f"the table of {events[event].source} is wrong about "
                f"{self.names[organisation]} for event {events[event].id}"
            )
        return Audience(users, interested)


def external_rows(
    merge_set: Iterable[Subscription], consumer: str, hosts: Hosts
) -> dict[Subscription, list[str]]:
    """The consumer's rows in the tables of all others, each with the producers that hold it.

    Producers that host the same classes have the same view, except for elements that name them.
    """
    unnamed: list[Subscription] = []
    naming: dict[str, set[Subscription]] = {}
    for element in merge_set:
        if element.sources is None:
            unnamed.append(element)
        for source in element.sources or ():
            naming.setdefault(source, set()).add(element)
    alike: dict[frozenset[str], list[str]] = {}
    for producer, classes in hosts.items():
        if producer != consumer:
            alike.setdefault(frozenset(classes), []).append(producer)
    rows: dict[Subscription, list[str]] = {}
    for hosted, producers in alike.items():
        view = ProducerView("", hosted, unnamed)
        common, lacking = view.subscriptions, dict[Subscription, set[str]]()
        for producer in producers:
            if producer in naming:
                view.producer = producer
                elements = frozenset(naming[producer])
                change = view.update(Delta(added=elements))
                view.update(Delta(removed=elements))
                for row in change.added:
                    rows.setdefault(row, []).append(producer)
                for row in change.removed:
                    lacking.setdefault(row, set()).add(producer)
        for row in common:
            without = lacking.get(row, set())
            if holders := [each for each in producers if each not in without]:
                rows.setdefault(row, []).extend(holders)
    return rows


class _Filed:
    """Subscriptions in an index, each with the number of its organisation."""

    def __init__(self) -> None:
        self._index: MatchingIndex[int] = MatchingIndex()
        self._organisations = array("q")  # handle -> number of the organisation

    def add(self, organisation: int, subscriptions: Iterable[Subscription]) -> list[int]:
        first = len(self._organisations)
        items = list(enumerate(subscriptions, start=first))
        self._index.insert_all(items)
        self._organisations.extend([organisation] * len(items))
        return [handle for handle, _ in items]

    def remove(self, handles: Iterable[int]) -> None:
        for handle in handles:
            self._index.delete(handle)

    def found(self, events: Sequence[Event], many: int) -> Any:
        """For each event and organisation the number of matching subscriptions."""
        matched = self._index.match_all(events)
        sizes = np.fromiter(map(len, matched), np.int64, len(matched))
        handles = np.fromiter(chain.from_iterable(matched), np.int64, int(sizes.sum()))
        if not len(handles):
            return np.zeros((len(events), many), np.int64)
        organisations = np.frombuffer(self._organisations, np.int64)[handles]
        places = np.repeat(np.arange(len(events)) * many, sizes) + organisations
        return np.bincount(places, minlength=len(events) * many).reshape(len(events), many)
