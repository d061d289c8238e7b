"""Gathering: the histories of many peers become one, in an order that can have been.

The clocks of organisations differ. By time alone a notification may seem to come before its
publication, so whatever happens with an event elsewhere waits for that; everything else goes by
time, and what one peer recorded keeps its order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Set
from typing import Final, NamedTuple

from qns.history.records import Record

EventKey = tuple[str, str]
"""(source, id)"""

_AFTER_PUBLICATION: Final = frozenset(("take", "ntfy", "early", "promise"))


class _Head(NamedTuple):
    """The next record of one history; times are those of its peer, but never go back."""

    t: float
    nth: int
    record: Record
    rest: Iterator[Record]


def gathered(
    histories: Iterable[Iterable[Record]], published: Set[EventKey]
) -> Iterator[tuple[float, Record]]:
    """All records, each with its time; `published` are the events whose publication is there."""
    ready: list[_Head] = []
    waiting: dict[EventKey, list[_Head]] = {}
    missing = set(published)
    for nth, history in enumerate(histories):
        _advance(ready, float("-inf"), nth, iter(history))
    while ready or waiting:
        if not ready:  # they wait for each other, so nobody can be right: by time, then
            ready = [head for heads in waiting.values() for head in heads]
            waiting.clear()
            missing.clear()
            heapq.heapify(ready)
        head = heapq.heappop(ready)
        record = head.record
        if record["do"] in _AFTER_PUBLICATION and (cause := _key(record)) in missing:
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
