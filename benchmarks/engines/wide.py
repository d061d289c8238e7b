"""Subscriptions and events as tables, for the engines that join them.

A subscription is one wide row: bounds for each attribute (the widest where it asks for nothing), a
mask of the attributes it needs, one of its sources, and a **join key**: its class with the
rarest string that it asks for. An event has up to four rows, one for each join key that it fits, so
that an equality join finds the candidates and only those are compared. Strings are codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.engines import Subscriptions
from benchmarks.workload import CATEGORICAL, CLASSES, NUMERIC, PROPERTIES, SCHEMA, SOURCES
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.d2q.event_json import EventReader
from qns.d2q.schema import DIMENSIONS

BATCH = 1024  # larger than ours: a join has a fixed cost

TEXTS = [*CATEGORICAL, "Code"]  # few values first, so the last is the rarest
ATTRIBUTES = [*TEXTS, *NUMERIC, *(f"{each}.{d}" for each in PROPERTIES for d in DIMENSIONS)]
EVENT_COLUMNS = ["event", "join_key", "lacks", "source", *(f"v{n}" for n in range(len(ATTRIBUTES)))]

_PLACE = {name: nth for nth, name in enumerate(ATTRIBUTES)}
_CLASS = {path: nth for nth, path in enumerate(CLASSES)}
_SOURCE = {source: 1 << nth for nth, source in enumerate(SOURCES)}
_LOWEST, _HIGHEST = -(2**62), 2**62
_ABSENT = _LOWEST  # within the widest bounds and outside all others

Columns = dict[str, Any]


class Wide:
    """The table of subscriptions, and what it takes to write events in the same codes."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._read = EventReader(SCHEMA).read
        self._codes: list[dict[str, int]] = [{} for _ in TEXTS]
        self.columns = self._table(subscriptions)

    def _table(self, subscriptions: Subscriptions) -> Columns:
        size = len(subscriptions)
        join_key, need = np.zeros(size, np.int64), np.zeros(size, np.int64)
        sources = np.full(size, -1, np.int64)
        lo = np.full((len(ATTRIBUTES), size), _LOWEST)
        hi = np.full((len(ATTRIBUTES), size), _HIGHEST)
        for row, subscription in enumerate(subscriptions.values()):
            cut = len(subscription.data_class) + 1
            rarest, mask = (0, 0), 0
            for name, values in subscription.constraints.items():
                place = _PLACE[name[cut:]]
                mask |= 1 << place
                if isinstance(values, Strings):
                    assert values.listed is not None
                    (text,) = values.listed
                    code = self._codes[place].setdefault(text, len(self._codes[place]))
                    lo[place, row] = hi[place, row] = code
                    rarest = max(rarest, (place + 1, code))
                else:
                    spans = (values.new if isinstance(values, Region) else values).spans
                    lo[place, row], hi[place, row] = spans[0]
            join_key[row] = _join_key(_CLASS[subscription.data_class], *rarest)
            need[row] = mask
            if subscription.sources is not None:
                sources[row] = sum(_SOURCE[each] for each in subscription.sources)
        columns = {"id": np.fromiter(subscriptions, np.int64, size), "join_key": join_key}
        columns |= {"need": need, "sources": sources}
        for nth in range(len(ATTRIBUTES)):
            columns |= {f"lo{nth}": lo[nth], f"hi{nth}": hi[nth]}
        return columns

    def events(self, lines: Sequence[bytes]) -> Columns:
        rows: list[tuple[int, ...]] = []
        for number, line in enumerate(lines):
            event = self._read(line)
            data_class, cut = _CLASS[event.data_class], len(event.data_class) + 1
            keys, has, values = [_join_key(data_class, 0, 0)], 0, [_ABSENT] * len(ATTRIBUTES)
            for name, key in event.values.items():
                place = _PLACE[name[cut:]]
                has |= 1 << place
                if isinstance(key, str):
                    key = self._codes[place].get(key, -1)
                    if key >= 0:
                        keys.append(_join_key(data_class, place + 1, key))
                values[place] = key
            source = _SOURCE.get(event.source, 0)
            rows += [(number, join_key, ~has, source, *values) for join_key in keys]
        table = np.array(rows, np.int64).T
        return dict(zip(EVENT_COLUMNS, np.ascontiguousarray(table), strict=True))


def _join_key(data_class: int, text: int, code: int) -> int:
    return (data_class * (len(TEXTS) + 1) + text) << 32 | code


def in_lists(size: int, events: Any, ids: Any) -> list[list[int]]:
    """Pairs of event and id, as the ids of each event."""
    found: list[list[int]] = [[] for _ in range(size)]
    for event, id in zip(events, ids, strict=True):
        found[event].append(id)
    return found
