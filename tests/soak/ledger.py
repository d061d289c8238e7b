"""Ledger: what users were promised and what they got, kept apart from the peers.

At the end it is held against the history: whatever a peer has answered for is in it, and each
reader got what the history says was notified, each delivery once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from qns.cbr.event import Event
from qns.history.records import Record
from qns.iil.requests import Delivery

Subscription = tuple[str, str]
"""Organisation and id."""
EventKey = tuple[str, str]
"""Source and id."""


@dataclass(slots=True)
class Reader:
    """What one subscriber has read."""

    group: str
    received: list[tuple[int, EventKey]] = field(default_factory=list)
    cursor: int = 0
    """The last delivery that was read; likewise `acknowledged`."""
    acknowledged: int = 0
    is_over: bool = False
    """It was ended, or its time is up: the rest need not be read."""


@dataclass(slots=True)
class Ledger:
    events: dict[EventKey, Event] = field(default_factory=dict)
    """All that anybody tried to publish."""
    published: set[EventKey] = field(default_factory=set)
    """Answered; likewise those below."""
    subscribed: set[Subscription] = field(default_factory=set)
    unsubscribed: set[Subscription] = field(default_factory=set)
    readers: dict[Subscription, Reader] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    """What was noticed at once."""

    def read(self, who: Subscription, delivery: Delivery, event: Event) -> None:
        """One delivery, as the reader found it."""
        reader = self.readers[who]
        key = delivery.source, delivery.event
        if delivery.number <= reader.acknowledged:
            self.wrong.append(
                f"{who} got delivery {delivery.number} again, acknowledged up to "
                f"{reader.acknowledged}"
            )
        published = self.events.get(key)
        if published is None or event._replace(published_us=None) != published:
            self.wrong.append(f"{who} got {key}, which is not as it was published")
        if delivery.number > reader.cursor:
            reader.cursor = delivery.number
            reader.received.append((delivery.number, key))
        elif (delivery.number, key) not in reader.received:
            self.wrong.append(f"{who} got {key} under number {delivery.number}, read before")

    def losses(
        self, history: Iterable[Record], waiting: Collection[tuple[Subscription, int]] = ()
    ) -> list[str]:
        """What was answered for and is not in the history, and what was read and is not.

        `waiting` are deliveries that can still be read.
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
        strange = set(found.published) - set(self.events)
        return wrong + [f"nobody published {each}" for each in sorted(strange)]

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
                    wrong.append(f"{who} read {key} as delivery {number}, not in the history")
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
    """What the history tells of all this."""

    published: Counter[EventKey] = field(default_factory=Counter)
    subscribed: Counter[Subscription] = field(default_factory=Counter)
    unsubscribed: Counter[Subscription] = field(default_factory=Counter)
    notified: defaultdict[Subscription, list[EventKey]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """In the order of the deliveries' numbers."""

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
