"""The two extremes (thesis 2.3): flooding of notifications and flooding of subscriptions.

With notification flooding no broker has subscriptions of others, and every notification reaches all
brokers along the tree. With subscription flooding every broker has all subscriptions and sends each
notification directly to the brokers that want it ("match first").
"""

from __future__ import annotations

from dataclasses import dataclass

from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import Zone
from qns.lab.simulated.system import Publication, System
from qns.lab.strategies.cbr import Announce, Notify, Withdraw


class NotificationFloodingBroker:
    def __init__(self, system: System, number: int) -> None:
        self.system = system
        self.number = number
        self.local = Zone()

    @property
    def table_size(self) -> int:
        return len(self.local)

    def subscribe(self, id: str, rectangle: Rectangle) -> None:
        self.local.insert(id, rectangle)

    def unsubscribe(self, id: str) -> None:
        self.local.delete(id)

    def publish(self, event: Publication) -> None:
        self._flood(event, None)

    def receive(self, sender: int, message: object) -> None:
        assert isinstance(message, Notify)
        self._flood(message.event, sender)

    def _flood(self, event: Publication, sender: int | None) -> None:
        self.system.reach(event, self.number)
        self.system.deliver(event, self.local.match(event.point), self.number)
        for neighbour in self.system.overlay.neighbours(self.number):
            if neighbour != sender:
                self.system.send(self.number, neighbour, Notify(event))


@dataclass(frozen=True, slots=True)
class Direct(Notify):
    """A notification that its receiver does not forward."""


class SubscriptionFloodingBroker:
    def __init__(self, system: System, number: int) -> None:
        self.system = system
        self.number = number
        self.local = Zone()
        self.everything = Zone()
        self.homes: dict[str, int] = {}

    @property
    def table_size(self) -> int:
        return len(self.local) + len(self.everything)

    def subscribe(self, id: str, rectangle: Rectangle) -> None:
        self.local.insert(id, rectangle)
        self._pass_on(Announce(id, rectangle, self.number), None)

    def unsubscribe(self, id: str) -> None:
        self.local.delete(id)
        self._pass_on(Withdraw(id, self.number), None)

    def publish(self, event: Publication) -> None:
        self.system.reach(event, self.number)
        self.system.deliver(event, self.local.match(event.point), self.number)
        interested = {self.homes[id]: None for id in self.everything.match(event.point)}
        for broker in interested:
            self.system.send(self.number, broker, Direct(event))

    def receive(self, sender: int, message: object) -> None:
        if isinstance(message, Direct):
            self.system.reach(message.event, self.number)
            self.system.deliver(message.event, self.local.match(message.event.point), self.number)
            return
        if isinstance(message, Announce):
            self.everything.insert(message.id, message.rectangle)
            self.homes[message.id] = message.home
        else:
            assert isinstance(message, Withdraw)
            self.everything.delete(message.id)
            del self.homes[message.id]
        self._pass_on(message, sender)

    def _pass_on(self, message: Announce | Withdraw, sender: int | None) -> None:
        for neighbour in self.system.overlay.neighbours(self.number):
            if neighbour != sender:
                self.system.send(self.number, neighbour, message)
