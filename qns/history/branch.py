"""Branch: the state of one organisation's peer, without what restores have undone.

A restore puts a peer back to an older state, from which it continues. So the peer's records form a
tree. Its state results from the records on the path from the root to the newest record. A restore
may go back beyond an earlier restore, or to a branch that an earlier restore had left.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from qns.history.meaning import Meaning
from qns.history.publication import Publication, Publications
from qns.history.records import Record


@dataclass(slots=True, eq=False)
class Subscription:
    """A subscription of a user, and which events it may still be owed."""

    number: int
    """The record with which it began."""
    t: float
    id: str
    group: str
    text: str
    meaning: Meaning
    incarnation: int | None
    """The incarnation of its organisation when it began."""
    ended: int = 0
    """The record that ended it, or 0."""
    paused: int = 0
    """The record that paused it, or 0 if it is not paused."""
    open: list[Publication] = field(default_factory=list)
    """Matching events that may still be owed."""
    examined: int = 0
    """How many matching events have been considered for `open`."""

    @property
    def subscriber(self) -> Subscriber:
        """The delivery group, or the subscription itself if it belongs to none."""
        return (self.group, True) if self.group else (self.id, False)


class Skip(NamedTuple):
    """Numbers of a stream that a producer declared as skipped."""

    stream: Stream
    epoch: int
    first: int
    last: int


class Step(NamedTuple):
    """A record that a restore can undo."""

    number: int
    record: Record
    incarnation: int | None
    """The organisation's incarnation at that time."""
    before: int
    """The index of the preceding step on the branch, or -1."""
    meaning: Meaning | None
    """The meaning of the subscription, if the record is a `sub`."""


Subscriber = tuple[str, bool]
"""The id of a subscription with False, or the name of a delivery group with True: a group counts as
one subscriber (semantics §9)."""
Delivery = tuple[Subscriber, str, str]
"""Subscriber, source, event."""
Stream = tuple[int, str, int]
"""Consumer's incarnation, source, producer's incarnation."""


@dataclass(slots=True)
class Branch:
    """The state of a peer that the steps applied so far have made."""

    publications: Publications
    """The publications of all organisations."""
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    left: int = 0
    """The last record with which a subscription ended because its organisation left, or 0."""
    notified: dict[Delivery, tuple[int, ...]] = field(default_factory=dict)
    """Delivery -> the records of its notifications."""
    lapses: dict[Delivery, tuple[int, ...]] = field(default_factory=dict)
    """Delivery -> the records of its lapsed leases."""
    overflows: set[Delivery] = field(default_factory=set)
    """Deliveries that the operator's limit on queues dropped."""
    unread: dict[str, OrderedDict[int, tuple[str, str]] | None] = field(default_factory=dict)
    """Subscription -> number of an unread delivery -> source, event. None if an older version of
    QNS made one of its deliveries: then its acknowledgements were not recorded either."""
    newest: dict[tuple[str, str, int], tuple[Publication, int]] = field(default_factory=dict)
    """Subscription, source, incarnation -> the last published event that the subscription was
    notified of, and the record of that notification."""
    due: dict[Stream, int] = field(default_factory=dict)
    """Stream -> the number to consume next. A stream that is missing here starts at 1."""
    taken: dict[tuple[str, str], int] = field(default_factory=dict)
    """Source, event -> the record with which it was consumed."""
    skips: list[Skip] = field(default_factory=list)
    drops: set[tuple[str, int, str]] = field(default_factory=set)
    """Consumer, its incarnation, event: dropped because of a limit, or withheld."""
    discards: set[tuple[str, int, str, str]] = field(default_factory=set)
    """Receiver, its incarnation, source, event: dead letters that the operator dropped."""
    promises: set[int] = field(default_factory=set)
    """The records with which the peer took custody of events."""

    def apply(self, step: Step) -> None:
        """Changes the state as the record of the step says."""
        _APPLIED[step.record["do"]](self, step)

    def next_in_order(self, sub: str, source: str, id: str, number: int) -> Publication | None:
        """Returns the publication of this event with which it follows, in publication order, what
        the subscription has been notified of; None if there is none before record `number`."""
        for publication in self.publications.get((source, id), ()):
            if publication.number < number:
                newest = self.newest.get((sub, source, publication.incarnation))
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
            step.incarnation,
        )

    def _usub(self, step: Step) -> None:
        subscription = self.subscriptions.get(step.record["sub"])
        if subscription is not None and not subscription.ended:
            subscription.ended = step.number
        self.unread.pop(step.record["sub"], None)
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
                place = record["sub"], source, publication.incarnation
                self.newest[place] = publication, step.number
        number, unread = record.get("number"), self.unread.setdefault(record["sub"], OrderedDict())
        if number is None:
            self.unread[record["sub"]] = None
        elif unread is not None:
            unread[number] = source, event

    def _lapse(self, step: Step) -> None:
        record = step.record
        key = subscriber_of(record), record["source"], record["event"]
        self.lapses[key] = (*self.lapses.get(key, ()), step.number)
        unread = self.unread.get(record["sub"]) or OrderedDict()
        for number in [n for n, each in unread.items() if each == key[1:]]:
            del unread[number]

    def _overflow(self, step: Step) -> None:
        record = step.record
        self.overflows.add((subscriber_of(record), record["source"], record["event"]))
        unread = self.unread.get(record["sub"])
        if unread:
            unread.pop(record["number"], None)

    def _ack(self, step: Step) -> None:
        for number in self.unread_upto(step.record) or ():
            unread = self.unread[step.record["sub"]]
            assert unread is not None
            del unread[number]

    def unread_upto(self, ack: Record) -> list[int] | None:
        """Returns the unread numbers that an acknowledgement covers; None if they are unknown."""
        unread = self.unread.get(ack["sub"], OrderedDict())
        if unread is None:
            return None
        return list(takewhile(lambda number: number <= ack["upto"], unread))

    def _take(self, step: Step) -> None:
        record = step.record
        self._consume((record["own"], record["source"], record["joined"]), record["number"])
        self.taken[record["source"], record["event"]] = step.number

    def _skip(self, step: Step) -> None:
        record = step.record
        stream = record["own"], record["source"], record["joined"]
        self._consume(stream, record["last"])
        self.skips.append(Skip(stream, record["epoch"], record["first"], record["last"]))

    def _consume(self, stream: Stream, last: int) -> None:
        self.due[stream] = max(self.due.get(stream, 1), last + 1)

    def _rewind(self, step: Step) -> None:
        stream = step.record["own"], step.record["source"], step.record["joined"]
        self.due[stream] = min(self.due.get(stream, 1), step.record["first"])

    def _drop(self, step: Step) -> None:
        record = step.record
        self.drops.add((record["to"], record["joined"], record["event"]))

    def _discard(self, step: Step) -> None:
        record = step.record
        to, incarnation, source, event = (record[k] for k in ("to", "joined", "source", "event"))
        self.discards.add((to, incarnation, source, event))
        if source == record["org"]:
            self.drops.add((to, incarnation, event))

    def _promise(self, step: Step) -> None:
        self.promises.add(step.number)

    def _nothing(self, step: Step) -> None:
        """Does nothing for a restore: the steps that it undoes are not on this branch."""


_APPLIED: Final[dict[str, Callable[[Branch, Step], None]]] = {
    "sub": Branch._sub,
    "usub": Branch._usub,
    "pause": Branch._pause,
    "resume": Branch._resume,
    "ntfy": Branch._ntfy,
    "lapse": Branch._lapse,
    "overflow": Branch._overflow,
    "ack": Branch._ack,
    "take": Branch._take,
    "skip": Branch._skip,
    "rewind": Branch._rewind,
    "drop": Branch._drop,
    "withhold": Branch._drop,
    "discard": Branch._discard,
    "promise": Branch._promise,
    "restore": Branch._nothing,
}


def subscriber_of(record: Record) -> Subscriber:
    """Returns the subscriber that a notification or a lapse concerns."""
    return (record["group"], True) if record["group"] else (record["sub"], False)
