"""The compiled matching index: finds the matches among very many subscriptions in microseconds.

Every constraint becomes a closed interval of keys on a **field** (an attribute, or the previous
value of a quality dimension); strings become codes. Subscriptions of the same scope form a
**partition**, and an event visits the partitions whose scope holds its class. Inside a partition a
subscription is filed under the one of its constraints that the fewest events are expected to meet:
preferably a rare value that it pins, else an attribute that it needs. So an event looks only under
its own values and attributes. An insertion appends a row; a deletion moves the last row into the
place of the deleted one.

Conditions that one interval cannot express (several intervals, a least change) are **extra** checks
of the rows that pass. A string pattern is a **residual** check, which is made here in Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from qns.cbr.event import Event
from qns.cbr.index.fields import UNKNOWN_CODE, Codes, Fields
from qns.cbr.index.layout import (
    EXTRA_BIT,
    HANDLE_MASK,
    KIND_CHANGE,
    KIND_SPANS,
    RESIDUAL_BIT,
    SOURCES_SHIFT,
    VALUE_WORDS,
)
from qns.cbr.index.tables import Tables, grown
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription
from qns.errors import DuplicateId, NameNotKnown

Id = TypeVar("Id", bound=Hashable)

MAX_POINTS = 16
"""A subscription that pins no value but lists at most this many is filed once under each."""


class CompiledIndex(Generic[Id]):
    """Holds subscriptions by id. `match` finds those that an event matches."""

    def __init__(self, subscriptions: Mapping[Id, Subscription] | None = None) -> None:
        self._handles: dict[Id, int] = {}
        self._copies: dict[Id, tuple[int, ...]] = {}  # further handles of the same subscription
        self._ids: Any = np.empty(64, object)  # handle -> id; an array allows many lookups at once
        self._subscriptions: list[Subscription | None] = []  # handle -> subscription
        self._free_handles: list[int] = []
        self._residuals: set[int] = set()  # handles with a string pattern
        self._parts: dict[frozenset[str], int] = {}
        self._classes: dict[str, int] = {}
        # Number 0 stands for no restriction, and for organisations that no subscription names.
        self._source_sets: Codes[frozenset[str]] = Codes(first=1)
        self._sources: Codes[str] = Codes(first=1)
        self._fields = Fields()
        self._known_fields = 0
        self._tables = Tables()
        self._lock = Lock()  # the compiled loops release the GIL
        if subscriptions:
            self.insert_all(subscriptions.items())

    def __len__(self) -> int:
        return len(self._handles)

    def __contains__(self, id: Id) -> bool:
        return id in self._handles

    def __getitem__(self, id: Id) -> Subscription:
        handle = self._handles.get(id)
        subscription = None if handle is None else self._subscriptions[handle]
        if subscription is None:
            raise NameNotKnown("subscription", str(id), ())
        return subscription

    @property
    def memory_bytes(self) -> int:
        """The size of the arrays: all of the index except subscriptions, ids and strings.

        Benchmarks report it, and a test checks that it does not grow under churn.
        """
        return self._tables.nbytes

    # -- changing -------------------------------------------------------------------------------

    def insert(self, id: Id, subscription: Subscription) -> None:
        self.insert_all(((id, subscription),))

    def insert_all(self, items: Iterable[tuple[Id, Subscription]]) -> None:
        """Inserts many at once: all of them, or none if one cannot be inserted."""
        with self._lock:
            rows = array("q")
            entered: list[Id] = []
            try:
                for id, subscription in items:
                    if id in self._handles:
                        raise DuplicateId(
                            f"subscription {id} exists already", remedy="choose another id"
                        )
                    self._encode(id, subscription, rows)
                    entered.append(id)
                self._place(rows)
            except BaseException:
                for id in entered:
                    self._leave(id)
                raise

    def delete(self, id: Id) -> None:
        with self._lock:
            for handle in self._all_handles(id):
                self._tables.delete(handle)
            self._leave(id)

    # -- matching -------------------------------------------------------------------------------

    def match(self, event: Event) -> list[Id]:
        """Returns the ids of all subscriptions that the event matches, in no particular order."""
        with self._lock:
            handles, _ = self._tables.match(self.encode((event,)), 1)
            if self._residuals and len(handles) and handles.min() < 0:
                return self._settle(event, handles.tolist())
            ids: list[Id] = self._ids[handles].tolist()
            return ids

    def match_all(self, events: Sequence[Event]) -> list[list[Id]]:
        """Returns `match` of each event, with one call of the compiled loop."""
        with self._lock:
            handles, ends = self._tables.match(self.encode(events), len(events))
            if self._residuals and len(handles) and handles.min() < 0:
                return [
                    self._settle(event, handles[start:end].tolist())
                    for event, start, end in zip(events, [0, *ends], ends, strict=False)
                ]
            ids = self._ids[handles].tolist()
            return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def match_handles(self, events: Sequence[Event]) -> tuple[Any, list[int]]:
        """Returns all handles that the events match, and where those of each event end.

        A negative handle is the complement of one whose string patterns are not checked yet.
        Benchmarks measure the compiled loop with it, without the cost of ids.
        """
        with self._lock:
            handles, ends = self._tables.match(self.encode(events), len(events))
            return handles.copy(), ends

    def encode(self, events: Iterable[Event]) -> array[int]:
        """Returns the events as the compiled loop reads them. Valid until the next change."""
        words = array("q")
        add = words.append
        classes, sources = self._classes, self._sources.of
        attributes, previous_fields = self._fields.entries, self._fields.previous
        for event in events:
            number = classes.get(event.data_class, -1)
            add(number)
            add(sources.get(event.source, 0))
            length_at = len(words)
            add(0)
            if number < 0:
                continue  # no subscription is about this class
            for name, key in event.values.items():
                entry = attributes.get(name)
                if entry is not None:
                    add(entry.number)
                    add(entry.code(key) if isinstance(key, str) else key)
            for name, old in event.previous.items():
                field = previous_fields.get(name)
                if field is not None:
                    add(field)
                    add(old)
            words[length_at] = (len(words) - length_at) // VALUE_WORDS
        return words

    def _settle(self, event: Event, handles: list[int]) -> list[Id]:
        """Checks the string patterns of the handles that need it. Returns the ids that match."""
        confirmed: list[Id] = []
        for handle in handles:
            if handle >= 0:
                confirmed.append(self._ids[handle])
            else:
                subscription = self._subscriptions[~handle]
                assert subscription is not None
                if subscription.matches(event):
                    confirmed.append(self._ids[~handle])
        return confirmed

    # -- encoding -------------------------------------------------------------------------------

    def _encode(self, id: Id, subscription: Subscription, rows: array[int]) -> None:
        """Turns a subscription into rows: one, or one for each value that it lists."""
        part = self._part(subscription.scope)
        flags = self._source_set(subscription.sources) << SOURCES_SHIFT
        intervals: list[tuple[int, int, int]] = []  # field, lo, hi
        checks: list[list[int]] = []
        points: list[tuple[int, list[int]]] = []
        pinned = False
        for name, values in subscription.constraints.items():
            entry = self._fields.of(name)
            field = entry.number
            spans: Sequence[tuple[int, int]]
            if isinstance(values, Strings):
                if values.listed is not None:
                    spans = sorted((code, code) for code in map(entry.use, values.listed))
                else:
                    spans = _around(sorted(map(entry.use, values.excluded)))
                    if values.has_patterns:
                        flags |= RESIDUAL_BIT
            elif isinstance(values, Intervals):
                spans = values.spans
            else:
                spans = values.new.spans
                self._encode_previous(name, field, values, intervals, checks)
            lo, hi = spans[0][0], spans[-1][1]
            if len(spans) > 1:
                checks.append([KIND_SPANS, field, len(spans), *chain.from_iterable(spans)])
                if len(spans) <= MAX_POINTS and all(a == b for a, b in spans):
                    points.append((len(intervals), [a for a, _ in spans]))
            elif lo == hi:
                pinned = True
            intervals.append((field, lo, hi))
        copies = [intervals]
        if points and not pinned:
            place, keys = min(points, key=lambda each: len(each[1]))
            field = intervals[place][0]
            copies = [
                [*intervals[:place], (field, key, key), *intervals[place + 1 :]] for key in keys
            ]
        handles = [self._new_handle(id, subscription) for _ in copies]
        for handle, copy in zip(handles, copies, strict=True):
            self._add_row(handle | flags, part, copy, checks, rows)
        self._handles[id] = handles[0]
        if len(handles) > 1:
            self._copies[id] = tuple(handles[1:])
        if flags & RESIDUAL_BIT:
            self._residuals.update(handles)

    def _encode_previous(
        self,
        name: str,
        field: int,
        values: Region,
        intervals: list[tuple[int, int, int]],
        checks: list[list[int]],
    ) -> None:
        if values.previous is None:
            return
        previous = self._fields.of_previous(name)
        spans = values.previous.spans
        intervals.append((previous, values.previous.lowest, values.previous.highest))
        if len(spans) > 1:
            checks.append([KIND_SPANS, previous, len(spans), *chain.from_iterable(spans)])
        if values.change:
            checks.append([KIND_CHANGE, field, previous, values.change])

    def _add_row(
        self,
        meta: int,
        part: int,
        intervals: list[tuple[int, int, int]],
        checks: list[list[int]],
        rows: array[int],
    ) -> None:
        if checks:
            words = list(chain.from_iterable(checks))
            self._tables.store_extra(meta & HANDLE_MASK, len(checks), words)
            meta |= EXTRA_BIT
        intervals.sort()  # so that rows with the same attributes share a group
        rows.extend((part, meta, len(intervals), *chain.from_iterable(intervals)))

    def _place(self, rows: array[int]) -> None:
        if len(self._fields) > self._known_fields:
            self._tables.fit_fields(self._fields.bits, self._fields.weights)
            self._known_fields = len(self._fields)
        self._tables.place(rows)

    def _new_handle(self, id: Id, subscription: Subscription) -> int:
        if self._free_handles:
            handle = self._free_handles.pop()
            self._ids[handle] = id
            self._subscriptions[handle] = subscription
            return handle
        handle = len(self._subscriptions)
        self._subscriptions.append(subscription)
        self._tables.fit_handles(handle + 1)
        if handle >= len(self._ids):
            self._ids = grown(self._ids, handle + 1)
        self._ids[handle] = id
        return handle

    def _part(self, scope: frozenset[str]) -> int:
        part = self._parts.get(scope)
        if part is None:
            part = self._parts[scope] = len(self._parts)
            for path in sorted(scope):
                number = self._classes.setdefault(path, len(self._classes))
                self._tables.add_part(number, part)
        return part

    def _source_set(self, sources: frozenset[str] | None) -> int:
        if sources is None:
            return 0
        new = sources not in self._source_sets.of
        number = self._source_sets.use(sources)
        if new:
            codes = [self._sources.use(source) for source in sorted(sources)]
            self._tables.set_sources(number, codes)
        return number

    def _all_handles(self, id: Id) -> tuple[int, ...]:
        handle = self._handles.get(id)
        if handle is None:
            raise NameNotKnown("subscription", str(id), ())
        return (handle, *self._copies.get(id, ()))

    def _leave(self, id: Id) -> None:
        """Frees the handles of a subscription and the numbers of its strings and sources."""
        subscription = self[id]
        for handle in self._all_handles(id):
            self._residuals.discard(handle)
            self._ids[handle] = self._subscriptions[handle] = None
            self._free_handles.append(handle)
        del self._handles[id]
        self._copies.pop(id, None)
        for name, values in subscription.constraints.items():
            if isinstance(values, Strings):
                self._fields.forget(name, values)
        sources = subscription.sources
        if sources is not None and self._source_sets.unuse(sources):
            for source in sources:
                self._sources.unuse(source)


def _around(codes: list[int]) -> list[tuple[int, int]]:
    """Returns the spans of all codes except these."""
    spans, lo = [], 0
    for code in codes:
        if lo < code:
            spans.append((lo, code - 1))
        lo = code + 1
    return [*spans, (lo, UNKNOWN_CODE)]
