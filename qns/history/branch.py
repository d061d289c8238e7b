"""Branch: what one organisation's peer has done, as far as no restore has undone it.

A restore puts a peer back to an older state, and what it does next grows from there; so its records
form a tree, and its state is what the records on the way to the newest one make. A later restore
may go back before an earlier one, also onto a branch that the earlier one had left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from qns.history.meaning import Meaning
from qns.history.publication import Publication, Publications
from qns.history.records import Record


@dataclass(slots=True, eq=False)
class Subscription:
    number: int
    t: float
    id: str
    group: str
    text: str
    meaning: Meaning
    joined: int | None
    """The incarnation of its organisation when it began."""
    ended: int = 0
    """The record that ended it, or 0; likewise `paused`."""
    paused: int = 0
    open: list[Publication] = field(default_factory=list)
    """Matching events that may still be owed."""
    looked: int = 0
    """How many matching events have been looked at."""


class Skip(NamedTuple):
    own_joined: int
    source: str
    joined: int
    epoch: int
    first: int
    last: int


class Step(NamedTuple):
    """A record that a restore can undo."""

    number: int
    record: Record
    joined: int | None
    """The organisation's own incarnation then."""
    before: int
    """The step before it on its branch: an index, or -1."""
    meaning: Meaning | None
    """Of a `sub`."""


Subscriber = tuple[str, bool]
"""A subscription, or (True) a delivery group, which counts as one (semantics §9)."""
Delivery = tuple[Subscriber, str, str]
"""Subscriber, source, event."""
Stream = tuple[int, str, int]
"""Own incarnation, source, incarnation of the source."""


@dataclass(slots=True)
class Branch:
    publications: Publications
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    left: int = 0
    """The last record with which a subscription ended because its organisation left, or 0."""
    notified: dict[Delivery, tuple[int, ...]] = field(default_factory=dict)
    """The records of its notifications; likewise `lapses`."""
    lapses: dict[Delivery, tuple[int, ...]] = field(default_factory=dict)
    newest: dict[tuple[str, str, int], tuple[Publication, int]] = field(default_factory=dict)
    """Subscription, source, incarnation -> the last published event that it was notified of."""
    due: dict[Stream, int] = field(default_factory=dict)
    """The number that comes next; 1 in a stream that has not begun."""
    taken: dict[tuple[str, str], int] = field(default_factory=dict)
    """Source, event -> the record with which it was consumed."""
    skips: list[Skip] = field(default_factory=list)
    drops: set[tuple[str, int, str]] = field(default_factory=set)
    """To, incarnation, event."""
    promises: set[int] = field(default_factory=set)
    """The records with which it took custody."""

    def apply(self, step: Step) -> None:
        _APPLIED[step.record["do"]](self, step)

    def next_in_order(self, sub: str, source: str, id: str, number: int) -> Publication | None:
        """The publication as which this event comes in order after what the subscriber has had."""
        for publication in self.publications.get((source, id), ()):
            if publication.number < number:
                newest = self.newest.get((sub, source, publication.joined))
                if newest is None or newest[0].number <= publication.number:
                    return publication
        return None

    def _sub(self, step: Step) -> None:
        record = step.record
        assert step.meaning is not None
        self.subscriptions[record["sub"]] = Subscription(
            step.number,
            record["t"],
            record["sub"],
            record["group"],
            record["text"],
            step.meaning,
            step.joined,
        )

    def _usub(self, step: Step) -> None:
        subscription = self.subscriptions.get(step.record["sub"])
        if subscription is not None and not subscription.ended:
            subscription.ended = step.number
        if step.record["why"] == "left":
            self.left = step.number

    def _pause(self, step: Step) -> None:
        subscription = self.subscriptions.get(step.record["sub"])
        if subscription is not None:
            subscription.paused = step.number

    def _resume(self, step: Step) -> None:
        subscription = self.subscriptions.get(step.record["sub"])
        if subscription is not None:
            subscription.paused = 0

    def _ntfy(self, step: Step) -> None:
        record = step.record
        source, event = record["source"], record["event"]
        key = subscriber_of(record), source, event
        self.notified[key] = (*self.notified.get(key, ()), step.number)
        if not record["group"]:
            publication = self.next_in_order(record["sub"], source, event, step.number)
            if publication is not None:
                place = record["sub"], source, publication.joined
                self.newest[place] = publication, step.number

    def _lapse(self, step: Step) -> None:
        record = step.record
        key = subscriber_of(record), record["source"], record["event"]
        self.lapses[key] = (*self.lapses.get(key, ()), step.number)

    def _take(self, step: Step) -> None:
        record = step.record
        self._consume((record["own"], record["source"], record["joined"]), record["number"])
        self.taken[record["source"], record["event"]] = step.number

    def _skip(self, step: Step) -> None:
        record = step.record
        source, joined = record["source"], record["joined"]
        self._consume((record["own"], source, joined), record["last"])
        self.skips.append(
            Skip(record["own"], source, joined, record["epoch"], record["first"], record["last"])
        )

    def _consume(self, stream: Stream, last: int) -> None:
        self.due[stream] = max(self.due.get(stream, 1), last + 1)

    def _rewind(self, step: Step) -> None:
        stream = step.record["own"], step.record["source"], step.record["joined"]
        self.due[stream] = min(self.due.get(stream, 1), step.record["first"])

    def _drop(self, step: Step) -> None:
        record = step.record
        self.drops.add((record["to"], record["joined"], record["event"]))

    def _promise(self, step: Step) -> None:
        self.promises.add(step.number)

    def _nothing(self, step: Step) -> None:
        """A restore: what it undoes has been left behind already."""


_APPLIED: Final[dict[str, Callable[[Branch, Step], None]]] = {
    "sub": Branch._sub,
    "usub": Branch._usub,
    "pause": Branch._pause,
    "resume": Branch._resume,
    "ntfy": Branch._ntfy,
    "lapse": Branch._lapse,
    "take": Branch._take,
    "skip": Branch._skip,
    "rewind": Branch._rewind,
    "drop": Branch._drop,
    "promise": Branch._promise,
    "restore": Branch._nothing,
}


def subscriber_of(record: Record) -> Subscriber:
    """Whom a notification or a lapse is about."""
    return (record["group"], True) if record["group"] else (record["sub"], False)
