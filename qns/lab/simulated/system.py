"""System: brokers on hosts, the links between them, and the messages that they exchange.

A message is handled after the network's latency and the broker's handling time. Messages between
two brokers arrive in order, as over TCP. The system counts messages by kind, and records which
brokers received which event and when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol

from qns.cbr.rectangles import Point, Rectangle
from qns.lab.simulated.engine import Engine
from qns.lab.simulated.network import Network
from qns.lab.simulated.overlay import Overlay


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
    """The interface of a broker, whatever its strategy."""

    def subscribe(self, id: str, rectangle: Rectangle) -> None: ...

    def unsubscribe(self, id: str) -> None: ...

    def publish(self, event: Publication) -> None: ...

    def receive(self, sender: int, message: Any) -> None: ...

    @property
    def table_size(self) -> int:
        """The number of subscriptions that the broker keeps, of its own users and of others."""
        ...


class Message(Protocol):
    """A message between brokers; `kind` is the name under which it is counted."""

    kind: ClassVar[str]


def places(network: Network, brokers: int, random: Random) -> list[int]:
    """Draws the host of each broker."""
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
    """Kind of message -> the handling time of a broker."""
    engine: Engine = field(default_factory=Engine)
    brokers: list[Broker] = field(default_factory=list)
    hosts: list[int] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    deliveries: list[Delivery] = field(default_factory=list)
    reached: dict[str, dict[int, float]] = field(default_factory=dict)
    """Event -> when each broker first received it, interested or not."""
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
        """Sends a message over a direct connection; messages are handled in sending order."""
        self.sent[message.kind] += 1
        arrives = self.engine.now + self.latency_ms(sender, to)
        arrives = max(arrives, self._arrived.get((sender, to), 0.0))
        self._arrived[sender, to] = arrives
        self.engine.at(arrives, self._arrive, sender, to, message)

    def _arrive(self, sender: int, to: int, message: Message) -> None:
        """Handles the message, or queues it while the broker handles another one."""
        takes = self.handling_ms.get(message.kind, 0.0)
        free = self._free.get(to, -1.0)
        # A message without handling time also waits for the one before it, to keep the order.
        if not takes and free < self.engine.now:
            self.brokers[to].receive(sender, message)
            return
        done = max(self.engine.now, free) + takes
        self._free[to] = done
        self.engine.at(done, self.brokers[to].receive, sender, message)

    def reach(self, event: Publication, broker: int) -> None:
        """Records that the broker received the event."""
        self.reached.setdefault(event.id, {}).setdefault(broker, self.engine.now)

    def deliver(self, event: Publication, subscriptions: list[str], broker: int) -> None:
        now = self.engine.now
        self.deliveries += [Delivery(event.id, each, broker, now) for each in subscriptions]

    def settle(self) -> None:
        """Runs until no message is under way."""
        self.engine.run()
