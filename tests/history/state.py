"""The data of the model of a federation: schema, events, and the state of each organisation."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import Any

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader
from qns.d2q.language import parse_subscription
from qns.d2q.schema_xml import write_schema
from tests.strategies import ALL_TYPES

XML = write_schema(ALL_TYPES).decode()
CLASSES = list(ALL_TYPES.classes)
TEXTS = (
    "Thing",
    "only Thing",
    "Thing/Part",
    "Thing/Part where Weight > 1",
    'Thing where Thing.Code starts with "a"',
    "<Thing : {A, C}, Count between 1 and 3, _>",
    "Thing/Part where Part.Code.accuracy falls below 0.6",
    "Thing/Part/Screw where Checked.currency >= medium",
)
CONTENTS: tuple[dict[str, Any], ...] = (
    {"class": "Thing", "data": {"Code": "abc", "Count": 2}},
    {"class": "Thing", "data": {"Code": "b", "Count": 5}},
    {"class": "Thing/Part", "data": {"Weight": 1.5, "Thing.Code": "ab"}},
    {
        "class": "Thing/Part",
        "data": {"Weight": 0.5, "Count": 1},
        "quality": {"Part.Code.accuracy": 0.3},
        "previous": {"Part.Code.accuracy": 0.7},
    },
    {"class": "Thing/Part/Screw", "data": {}, "quality": {"Checked.currency": "high"}},
    {"class": "Other", "data": {"Name": "x"}},
)
AVAILABILITIES_S = (0.0, 4.0, inf)

READER = EventReader(ALL_TYPES)


@cache
def subscription(text: str) -> Subscription:
    return parse_subscription(text, ALL_TYPES)


@dataclass(frozen=True)
class Published:
    """An event with its place in publication order and its time."""

    event: Event
    order: int
    t: float

    @property
    def key(self) -> tuple[str, str]:
        return self.event.source, self.event.id

    def is_available(self, now: float) -> bool:
        return self.event.available_s > 0 and now <= self.t + self.event.available_s


@dataclass
class User:
    """A user with one subscription."""

    id: str
    text: str
    group: str
    is_active: bool = True
    paused: bool = False
    waiting: dict[str, int] = field(default_factory=dict)
    """Producer -> the number that ends the backlog."""
    stable_since: dict[str, int] = field(default_factory=dict)
    """Producer -> the place of the last publication before the view was stable."""
    held: dict[str, list[Published]] = field(default_factory=lambda: defaultdict(list))
    queue: list[Published] = field(default_factory=list)
    """Events that wait for the end of a pause."""
    delivered: int = 0
    """The number of the last delivery."""
    unread: dict[int, Published] = field(default_factory=dict)

    @property
    def subscriber(self) -> tuple[str, str]:
        return ("", self.group) if self.group else (self.id, "")

    def wants(self, published: Published) -> bool:
        return self.is_active and subscription(self.text).matches(published.event)


@dataclass
class Entry:
    """An event in a stream."""

    epoch: int
    published: Published
    dropped: bool = False


@dataclass(frozen=True)
class Promise:
    """A forwarder's promise to deliver one number of a producer's stream to a consumer."""

    to: str
    consumer_incarnation: int
    source: str
    producer_incarnation: int
    number: int
    published: Published


@dataclass
class State:
    """The state of one organisation's peer, which a backup copies."""

    users: dict[str, User] = field(default_factory=dict)
    notified: set[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=set)
    next: dict[str, int] = field(default_factory=lambda: defaultdict(lambda: 1))
    epochs: dict[str, int] = field(default_factory=lambda: defaultdict(lambda: 0))
    store: dict[str, list[Published]] = field(default_factory=lambda: defaultdict(list))
    published: list[Published] = field(default_factory=list)
    streams: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    crossed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    fences: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    custody: list[Promise] = field(default_factory=list)
    epoch: int = 0
