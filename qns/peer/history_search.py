"""History search: the records of one event in the history of this peer, if it is recorded."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from qns.peer.ports import Store
from qns.peer.tables import HISTORY

MOST_RECORDS: Final = 1_000_000
"""The most records that are searched, the newest epochs first."""
_ROWS_PER_READ: Final = 2_000
MOST_FOUND: Final = 100
"""The most records that are returned, the newest ones."""
_WORDS: Final = {
    "pub": "published as number {sequence} of its epoch",
    "cross": "given number {number} in the stream to {to}",
    "take": "taken as number {number} of the stream from {source}",
    "early": "arrived early as number {number} of the stream from {source}",
    "promise": "taken in custody for {to}",
    "relay": "sent through another peer to {to}",
    "ntfy": "delivered to subscription {sub}",
    "lapse": "passed on, because {sub} did not acknowledge it in time",
    "overflow": "dropped from the queue of {sub} by the limit longest_queue: a declared loss",
    "drop": "dropped from the stream to {to}: a declared loss",
    "withhold": "not sent to {to} any more, which may not read it: a declared loss",
    "discard": "dropped by the operator as a dead letter of {to}: a declared loss",
}


class Found(NamedTuple):
    records: list[dict[str, Any]]
    """The records of the event, oldest first: each has `t`, `do`, `words`, `sub` and `to`."""
    is_complete: bool
    """False if there were more records than are searched or returned."""


def search_history(store: Store, newest_epoch: int, me: str, source: str, event: str) -> Found:
    """Searches the records of all epochs for an event; an empty source stands for any.

    It blocks, so it runs in a thread of its own.
    """
    found: list[dict[str, Any]] = []
    left = MOST_RECORDS
    mark = json.dumps(event, ensure_ascii=False)
    bound = newest_epoch + 1
    while newest := store.last_before(HISTORY, bound):  # epochs have gaps
        epoch = bound = newest.epoch
        after, of_epoch = 0, []
        while rows := store.scan(HISTORY, (epoch,), after, _ROWS_PER_READ):
            for row in rows:
                if mark in row.record:
                    of_epoch += _matching(json.loads(row.record), me, source, event)
            after = rows[-1][1]
            left -= len(rows)
            if left <= 0:
                return Found((of_epoch + found)[-MOST_FOUND:], False)
        found = of_epoch + found
    return Found(found[-MOST_FOUND:], len(found) <= MOST_FOUND)


def _matching(record: dict[str, Any], me: str, source: str, event: str) -> list[dict[str, Any]]:
    """Returns the record in words if it concerns the event."""
    do = record.get("do")
    if do not in _WORDS:
        return []
    about = record["event"]["id"] if do == "pub" else record["event"]
    if about != event or (source and record.get("source", me) != source):
        return []
    words = _WORDS[do].format_map(record)
    if do == "ntfy" and "number" in record:
        words += f" as number {record['number']}"
    found = {"t": record["t"], "do": do, "words": words}
    return [{**found, "sub": record.get("sub", ""), "to": record.get("to", "")}]
