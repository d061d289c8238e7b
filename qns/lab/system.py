"""System: brokers on hosts, the links between them, and all that passes over these.

A broker handles what it is sent after the network's latency and its own time to handle it; what one
sends to another arrives in order, as over TCP. Everything is counted: messages by kind, who got
which event and when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol

from qns.cbr.rectangles import Point, Rectangle
from qns.lab.engine import Engine
from qns.lab.network import Network
from qns.lab.overlay import Overlay


class Publication(NamedTuple):
    """A notification on its way: a point in the content space."""

    id: str
    point: Point
    publisher: int


class Delivery(NamedTuple):
    event: str
    subscription: str
    broker: int
    at_ms: float


class Broker(Protocol):
    """What a strategy has to offer; everything else is between its brokers."""

    def subscribe(self, id: str, rectangle: Rectangle) -> None: ...

    def unsubscribe(self, id: str) -> None: ...

    def publish(self, event: Publication) -> None: ...

    def receive(self, sender: int, message: Any) -> None: ...

    @property
    def table_size(self) -> int:
        """How many subscriptions it keeps, its own users' and others'."""
        ...


class Message(Protocol):
    """A class attribute says what it is counted as."""

    kind: ClassVar[str]


def places(network: Network, brokers: int, random: Random) -> list[int]:
    """The host of each broker."""
    return random.sample(range(network.hosts), brokers)


Strategy = Callable[["System", int], Broker]
"""Makes the broker with this number."""


@dataclass(slots=True, eq=False)
class System:
    network: Network
    overlay: Overlay
    strategy: Strategy
    random: Random
    handling_ms: dict[str, float] = field(default_factory=dict)
    """Kind of message -> how long a broker takes to handle it."""
    engine: Engine = field(default_factory=Engine)
    brokers: list[Broker] = field(default_factory=list)
    hosts: list[int] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    deliveries: list[Delivery] = field(default_factory=list)
    reached: dict[str, dict[int, float]] = field(default_factory=dict)
    """Event -> when each broker first had it, interested or not."""
    _arrived: dict[tuple[int, int], float] = field(default_factory=dict)
    _free: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        brokers = self.overlay.brokers
        assert brokers <= self.network.hosts, "each broker has a host of its own"
        self.hosts = places(self.network, brokers, self.random)
        self.brokers = [self.strategy(self, number) for number in range(brokers)]

    def latency_ms(self, one: int, other: int) -> float:
        return float(self.network.latency_ms[self.hosts[one], self.hosts[other]])

    def send(self, sender: int, to: int, message: Message) -> None:
        """One message over a direct connection of the two; handled in the order of sending."""
        self.sent[message.kind] += 1
        arrives = self.engine.now + self.latency_ms(sender, to)
        arrives = max(arrives, self._arrived.get((sender, to), 0.0))
        self._arrived[sender, to] = arrives
        self.engine.at(arrives, self._arrive, sender, to, message)

    def _arrive(self, sender: int, to: int, message: Message) -> None:
        """A broker handles one message at a time."""
        takes = self.handling_ms.get(message.kind, 0.0)
        free = self._free.get(to, -1.0)
        # What takes no time waits too while the broker is at something else: order stays.
        if not takes and free < self.engine.now:
            self.brokers[to].receive(sender, message)
            return
        done = max(self.engine.now, free) + takes
        self._free[to] = done
        self.engine.at(done, self.brokers[to].receive, sender, message)

    def reach(self, event: Publication, broker: int) -> None:
        """The broker has the event, for whatever reason."""
        self.reached.setdefault(event.id, {}).setdefault(broker, self.engine.now)

    def deliver(self, event: Publication, subscriptions: list[str], broker: int) -> None:
        now = self.engine.now
        self.deliveries += [Delivery(event.id, each, broker, now) for each in subscriptions]

    def settle(self) -> None:
        """Until nothing is on its way."""
        self.engine.run()
