"""Content-based routing as in SIENA, as the thesis describes it (4.1.2, 4.5.1).

Each broker keeps its users' subscriptions in one R-tree and those of all others in a second, the
routing table, with the link behind which each of them lies. A new subscription inside the broker's
own zone is not announced; any other is announced to all brokers. A notification is sent only over
links behind which a broker wants it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qns.cbr.rectangles import Point, Rectangle
from qns.cbr.zones import Zone
from qns.lab.simulated.system import Message, Publication, System


@dataclass(frozen=True, slots=True)
class Announce:
    """A subscription that enlarges the zone of its broker."""

    kind: ClassVar[str] = "subscription"
    id: str
    rectangle: Rectangle
    home: int
    number: int = 0
    """The number of the broker's update: 1, 2, 3, …"""


@dataclass(frozen=True, slots=True)
class Withdraw:
    kind: ClassVar[str] = "unsubscription"
    id: str
    home: int
    number: int = 0


Update = Announce | Withdraw


@dataclass(frozen=True, slots=True)
class Notify:
    kind: ClassVar[str] = "notification"
    event: Publication


class CbrBroker:
    def __init__(self, system: System, number: int) -> None:
        self.system = system
        self.number = number
        self.local = Zone()
        """The users' subscriptions; their union is the zone of interest Z_i."""
        self.announced: dict[str, Rectangle] = {}
        """The announced ones of them. Their union is the zone of interest, too."""
        self.links: dict[int, None] = dict.fromkeys(system.overlay.neighbours(number))
        self.table = Zone()
        """The routing table: all subscriptions that others announced."""
        self.homes: dict[str, int] = {}
        """Subscription in the table -> its broker."""
        self.towards: dict[int, int] = {}
        """Broker that ever announced something -> the link behind which it lies."""
        self._updates = 0
        """The number of updates that this broker has issued."""

    @property
    def table_size(self) -> int:
        return len(self.local) + len(self.table)

    def behind(self, link: int) -> dict[str, Rectangle]:
        """The entry of the routing table for this link."""
        return {
            id: rectangle
            for id, rectangle in self.table.rectangles.items()
            if self.towards[self.homes[id]] == link
        }

    # --- subscriptions ----------------------------------------------------------------------------

    def subscribe(self, id: str, rectangle: Rectangle) -> None:
        inside = self.local.covers(rectangle)
        self.local.insert(id, rectangle)
        if not inside:
            self.announce(id, rectangle)

    def announce(self, id: str, rectangle: Rectangle) -> None:
        self.announced[id] = rectangle
        self._updates += 1
        self.spread(Announce(id, rectangle, self.number, self._updates))

    def unsubscribe(self, id: str) -> None:
        """First announces what only this subscription covered, so that no event is lost."""
        self.local.delete(id)
        if id not in self.announced:
            return
        del self.announced[id]
        known = Zone.from_rectangles(self.announced.items())
        for other, rectangle in self.local.rectangles.items():
            if other not in self.announced and not known.covers(rectangle):
                known.insert(other, rectangle)
                self.announce(other, rectangle)
        self._updates += 1
        self.spread(Withdraw(id, self.number, self._updates))

    def update(self, message: Update, sender: int) -> None:
        if isinstance(message, Announce):
            self.table.insert(message.id, message.rectangle)
            self.homes[message.id] = message.home
            self.towards[message.home] = sender
        else:
            self.table.delete(message.id)
            del self.homes[message.id]
        self.spread(message, but=sender)

    def spread(self, message: Update, but: int | None = None) -> None:
        """Sends the update over every link but one."""
        for link in self.links:
            if link != but:
                self.send(link, message)

    # --- notifications ----------------------------------------------------------------------------

    def publish(self, event: Publication) -> None:
        self.route(event, None)

    def route(self, event: Publication, sender: int | None) -> None:
        self.system.reach(event, self.number)
        self.system.deliver(event, self.local.match(event.point), self.number)
        for link, homes in self.interested(event.point).items():
            if link != sender:
                self.forward(link, event, homes)

    def interested(self, point: Point) -> dict[int, list[int]]:
        """Link -> the brokers behind it that want the point, for links with such brokers."""
        wanting = dict.fromkeys(self.homes[id] for id in self.table.match(point))
        found: dict[int, list[int]] = {}
        for home in wanting:
            found.setdefault(self.towards[home], []).append(home)
        return found

    def forward(self, link: int, event: Publication, homes: list[int]) -> None:  # noqa: ARG002
        """`homes` are the brokers that want the event, for subclasses that change the tree."""
        self.send(link, Notify(event))

    # --- messages ---------------------------------------------------------------------------------

    def send(self, link: int, message: Message) -> None:
        self.system.send(self.number, link, message)

    def receive(self, sender: int, message: object) -> None:
        if isinstance(message, Notify):
            self.route(message.event, sender)
        elif isinstance(message, Announce | Withdraw):
            self.update(message, sender)
        else:
            raise TypeError(f"not a message of this strategy: {message!r}")
