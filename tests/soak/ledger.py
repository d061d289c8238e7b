"""Ledger: records what peers acknowledged to users and what users read, outside the peers.

At the end it is compared with the history. Every request that was acknowledged must be in the
history, and each reader must have got every delivery of the history once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from qns.cbr.event import Event
from qns.history.records import Record
from qns.iil.requests import Delivery

Subscription = tuple[str, str]
"""An organisation and the id of a subscription."""
EventKey = tuple[str, str]
"""The source and the id of an event."""


@dataclass(slots=True)
class Reader:
    """The deliveries that one subscriber has read."""

    group: str
    received: list[tuple[int, EventKey]] = field(default_factory=list)
    cursor: int = 0
    """The number of the last delivery that was read."""
    acknowledged: int = 0
    """The number of the last delivery that was acknowledged."""
    is_over: bool = False
    """True if the subscription was ended or has expired: the rest need not be read."""


@dataclass(slots=True)
class Ledger:
    events: dict[EventKey, Event] = field(default_factory=dict)
    """All events that users tried to publish."""
    published: set[EventKey] = field(default_factory=set)
    """The events whose publication was acknowledged."""
    subscribed: set[Subscription] = field(default_factory=set)
    """The subscriptions that were acknowledged."""
    unsubscribed: set[Subscription] = field(default_factory=set)
    """The subscriptions whose end was acknowledged."""
    readers: dict[Subscription, Reader] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    """Errors that were found while reading."""

    def read(self, who: Subscription, delivery: Delivery, event: Event) -> None:
        """Records that a reader got a delivery, and checks it."""
        reader = self.readers[who]
        key = delivery.source, delivery.event
        if delivery.number <= reader.acknowledged:
            self.wrong.append(
                f"{who} got delivery {delivery.number} again, although it had acknowledged up to "
                f"{reader.acknowledged}"
            )
        published = self.events.get(key)
        if published is None or event._replace(published_us=None) != published:
            self.wrong.append(f"{who} got {key}, which differs from what was published")
        if delivery.number > reader.cursor:
            reader.cursor = delivery.number
            reader.received.append((delivery.number, key))
        elif (delivery.number, key) not in reader.received:
            self.wrong.append(f"{who} got {key} with the old number {delivery.number}")

    def losses(
        self, history: Iterable[Record], waiting: Collection[tuple[Subscription, int]] = ()
    ) -> list[str]:
        """Returns all contradictions between the ledger and a history.

        `waiting` has the deliveries that can still be read.
        """
        found = _Found.of(history)
        return [*self.wrong, *self._missing(found), *self._misread(found, waiting)]

    def _missing(self, found: _Found) -> list[str]:
        wrong = []
        for what, promised, recorded in (
            ("publication", self.published, found.published),
            ("subscription", self.subscribed, found.subscribed),
            ("unsubscription", self.unsubscribed, found.unsubscribed),
        ):
            wrong += [f"lost: {what} {each}" for each in sorted(promised - set(recorded))]
            wrong += [f"twice: {what} {each}" for each, times in recorded.items() if times > 1]
        unknown = set(found.published) - set(self.events)
        return wrong + [f"no user published {each}" for each in sorted(unknown)]

    def _misread(self, found: _Found, waiting: Collection[tuple[Subscription, int]]) -> list[str]:
        wrong = []
        for who, reader in self.readers.items():
            notified = found.notified[who]
            keys = [key for _, key in reader.received]
            if not reader.group and len(set(keys)) < len(keys):
                twice = [key for key, times in Counter(keys).items() if times > 1]
                wrong.append(f"{who} was notified twice of {twice}")
            for number, key in reader.received:
                if notified[number - 1 : number] != [key]:
                    wrong.append(
                        f"{who} read {key} as delivery {number}, which is not in the history"
                    )
            if not reader.is_over and not reader.group:
                numbers = {number for number, _ in reader.received}
                wrong += [
                    f"{who} never got delivery {number}: {key}"
                    for number, key in enumerate(notified, start=1)
                    if number not in numbers and (who, number) not in waiting
                ]
        return wrong


@dataclass(slots=True)
class _Found:
    """The parts of a history that the ledger is compared with."""

    published: Counter[EventKey] = field(default_factory=Counter)
    subscribed: Counter[Subscription] = field(default_factory=Counter)
    unsubscribed: Counter[Subscription] = field(default_factory=Counter)
    notified: defaultdict[Subscription, list[EventKey]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The events of each subscription, in the order of the delivery numbers."""

    @classmethod
    def of(cls, history: Iterable[Record]) -> _Found:
        found = cls()
        for record in history:
            do = record["do"]
            if do == "pub":
                found.published[record["org"], record["event"]["id"]] += 1
            elif do == "sub":
                found.subscribed[record["org"], record["sub"]] += 1
            elif do == "usub":
                found.unsubscribed[record["org"], record["sub"]] += 1
            elif do == "ntfy":
                found.notified[record["org"], record["sub"]].append(
                    (record["source"], record["event"])
                )
        return found
