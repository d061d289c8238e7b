"""The baseline of the matching index: numpy, brute force over the columns of the event's class.

For each class, every attribute is a pair of columns (lo, hi). An attribute that a subscription does
not constrain has the widest interval and need not be present. An event is compared with all rows of
its class, one attribute after the other, on the rows that are left. A subscription that needs an
attribute which the event lacks does not match. Strings are codes and sources a bit mask, as in the
index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.event import Event
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription

_LOWEST, _HIGHEST = -(2**63) + 1, 2**63 - 1


class NumpyScan:
    def __init__(self, subscriptions: dict[int, Subscription]) -> None:
        self._codes: dict[str, dict[str, int]] = {}
        self._sources: dict[str, int] = {}
        by_class: dict[str, list[tuple[int, Subscription]]] = {}
        for id, subscription in subscriptions.items():
            by_class.setdefault(subscription.data_class, []).append((id, subscription))
        self._classes = {path: self._columns(rows) for path, rows in by_class.items()}

    def _columns(self, rows: list[tuple[int, Subscription]]) -> Any:
        names = sorted({name for _, each in rows for name in each.constraints})
        bit = {name: 1 << nth for nth, name in enumerate(names)}
        ids = np.array([id for id, _ in rows])
        need = np.zeros(len(rows), np.uint64)
        sources = np.full(len(rows), -1, np.int64)
        lo = {name: np.full(len(rows), _LOWEST) for name in names}
        hi = {name: np.full(len(rows), _HIGHEST) for name in names}
        for row, (_, subscription) in enumerate(rows):
            for name, values in subscription.constraints.items():
                need[row] |= np.uint64(bit[name])
                lo[name][row], hi[name][row] = self._interval(name, values)
            if subscription.sources is not None:
                sources[row] = sum(1 << self._source(each) for each in subscription.sources)
        return ids, bit, need, sources, {name: (lo[name], hi[name]) for name in names}

    def _source(self, name: str) -> int:
        return self._sources.setdefault(name, len(self._sources))

    def _interval(self, name: str, values: Any) -> tuple[int, int]:
        if isinstance(values, Strings):
            assert values.listed is not None
            (text,) = values.listed
            codes = self._codes.setdefault(name, {})
            code = codes.setdefault(text, len(codes))
            return code, code
        spans = values.new.spans if isinstance(values, Region) else values.spans
        assert isinstance(values, Intervals | Region)
        return spans[0][0], spans[-1][1]

    def match(self, event: Event) -> list[int]:
        known = self._classes.get(event.data_class)
        if known is None:
            return []
        ids, bit, need, sources, columns = known
        has = 0
        for name in event.values:
            has |= bit.get(name, 0)
        source = self._sources.get(event.source)
        mask = np.int64(0) if source is None else np.int64(1 << source)
        alive = ((need & ~np.uint64(has)) == 0) & ((sources == -1) | ((sources & mask) != 0))
        rows = np.flatnonzero(alive)
        for name, key in event.values.items():
            if name in columns:
                value = self._codes[name].get(key, -1) if isinstance(key, str) else key
                lo, hi = columns[name]
                rows = rows[(lo[rows] <= value) & (value <= hi[rows])]
        found: list[int] = ids[rows].tolist()
        return found
