"""Gathering: merges the histories of many peers into one, in a causally possible order.

The clocks of organisations differ, so that a notification may have an earlier time than its
publication. Records about an event of another organisation therefore follow its publication. All
other records are ordered by time, and the records of one peer keep their order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from qns.history.records import Record

EventKey = tuple[str, str]
"""(source, id)"""

_AFTER_PUBLICATION: Final = frozenset(("take", "ntfy", "early", "promise"))


class _Head(NamedTuple):
    """The next record of one history."""

    t: float
    """The time by the peer's clock, but never less than that of the record before."""
    nth: int
    """The position of the history: it breaks ties."""
    record: Record
    rest: Iterator[Record]


def gathered(
    histories: Iterable[Iterable[Record]], published: Mapping[EventKey, int]
) -> Iterator[tuple[float, Record]]:
    """Yields all records, each with its time.

    `published` has the events whose publication is in one of the histories, with the epoch of the
    publication. An event that was taken in an earlier epoch is one that its restored producer has
    forgotten and published again: it does not wait.
    """
    ready: list[_Head] = []
    waiting: dict[EventKey, list[_Head]] = {}
    missing = set(published)
    forgotten: set[tuple[str, EventKey]] = set()
    """Organisation, event: taken before the publication that is known."""
    for nth, history in enumerate(histories):
        _advance(ready, float("-inf"), nth, iter(history))
    while ready or waiting:
        if not ready:  # the histories wait for each other: no order is causal, so use time
            ready = [head for heads in waiting.values() for head in heads]
            waiting.clear()
            missing.clear()
            heapq.heapify(ready)
        head = heapq.heappop(ready)
        record = head.record
        if record["do"] in _AFTER_PUBLICATION and (cause := _key(record)) in missing:
            if record["do"] == "take" and record["epoch"] < published[cause]:
                forgotten.add((record["org"], cause))
            if (record["org"], cause) not in forgotten:
                waiting.setdefault(cause, []).append(head)
                continue
        yield head.t, record
        if record["do"] == "pub":
            key = record["org"], record["event"]["id"]
            missing.discard(key)
            for other in waiting.pop(key, ()):
                heapq.heappush(ready, other)
        _advance(ready, head.t, head.nth, head.rest)


def _key(record: Record) -> EventKey:
    return record["source"], record["event"]


def _advance(ready: list[_Head], t: float, nth: int, rest: Iterator[Record]) -> None:
    record = next(rest, None)
    if record is not None:
        heapq.heappush(ready, _Head(max(t, record["t"]), nth, record, rest))
