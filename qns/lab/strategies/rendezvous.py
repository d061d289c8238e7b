"""Filter-driven rendezvous, as in Scribe and Hermes (thesis 2.4.3, 2.5.2, 2.5.5).

The square is divided into cells, and each cell has a rendezvous broker, found by prefix routing:
brokers and cells have random names, and every hop of a message reaches a broker whose name agrees
with the rendezvous's in one more digit. A subscription travels towards the rendezvous of every cell
that it intersects and leaves its filter at each broker on the path, up to a broker that already
announced as much. A notification travels to the rendezvous of its cell, and from there along the
reversed paths.

Simplifications: the routing tables are correct from the start, no broker joins and none fails.
Where no broker has the digit of a cell, the next digit that one has is used, as in Tapestry, so
that all brokers agree on the rendezvous without a leaf set. Brokers on the path of an event to the
rendezvous do not deliver it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from random import Random
from typing import ClassVar, Final

from qns.cbr.rectangles import COORDINATE_BOUND, Point, Rectangle
from qns.cbr.zones import Zone
from qns.errors import ValueRefused
from qns.lab.simulated.system import Publication, System
from qns.lab.simulated.workload import SIDE

Name = tuple[int, ...]
"""The random name of a broker or a cell: its digits, the first one first."""
Cell = tuple[int, int]

BASE: Final = 4
"""Base of the digits: with 4, a hundred brokers have about ten links each."""
CELLS: Final = 8
"""Number of cells along each axis."""


class Ring:
    """The data that all brokers share: their names, the cells, and the rendezvous of each cell."""

    def __init__(
        self, brokers: int, random: Random, *, cells: int = CELLS, base: int = BASE
    ) -> None:
        if cells < 1 or base < 2:
            raise ValueRefused(
                f"{cells} cells along each axis, digits of base {base}",
                remedy="at least 1 cell, and base 2",
            )
        self.base = base
        self.digits = 2
        while base**self.digits < brokers**2:  # enough names, so that they differ early
            self.digits += 1
        numbers = random.sample(range(base**self.digits), brokers)
        self.names: list[Name] = [self._name(number) for number in numbers]
        self._edges = [SIDE * place / cells for place in range(cells)]
        self._rendezvous = {
            cell: self._agreed(self._name(random.randrange(base**self.digits)))
            for cell in product(range(cells), repeat=2)
        }

    def _name(self, number: int) -> Name:
        return tuple(number // self.base**place % self.base for place in range(self.digits))

    def _agreed(self, key: Name) -> int:
        """The broker whose name agrees best with the key, digit by digit."""
        left = list(range(len(self.names)))
        for place, digit in enumerate(key):
            present = {self.names[broker][place] for broker in left}
            while digit not in present:
                digit = (digit + 1) % self.base
            left = [broker for broker in left if self.names[broker][place] == digit]
        (broker,) = left
        return broker

    def rendezvous(self, cell: Cell) -> int:
        return self._rendezvous[cell]

    def cell_of(self, point: Point) -> Cell:
        x, y = point
        return self._place(x), self._place(y)

    def cells_of(self, rectangle: Rectangle) -> Iterator[Cell]:
        """The cells that the rectangle intersects."""
        (left, below), (right, above) = self.cell_of(rectangle.lo), self.cell_of(rectangle.hi)
        return product(range(left, right + 1), range(below, above + 1))

    def part_in(self, cell: Cell, rectangle: Rectangle) -> Rectangle:
        """The part of a rectangle in the cell. Cells at the border extend beyond the square."""
        lo, hi = [], []
        for place, low, high in zip(cell, rectangle.lo, rectangle.hi, strict=True):
            lo.append(max(low, self._edges[place]) if place else low)
            end = self._edges[place + 1] if place + 1 < len(self._edges) else COORDINATE_BOUND
            hi.append(min(high, end))
        return Rectangle(tuple(lo), tuple(hi))

    def _place(self, coordinate: float) -> int:
        return max(0, bisect_right(self._edges, coordinate) - 1)


@dataclass(frozen=True, slots=True)
class Join:
    """A filter on its way to the rendezvous of these cells, which share the next hop."""

    kind: ClassVar[str] = "subscription"
    id: str
    rectangle: Rectangle
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    kind: ClassVar[str] = "unsubscription"
    id: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Up:
    """A notification on its way to the rendezvous."""

    kind: ClassVar[str] = "notification"
    event: Publication


@dataclass(frozen=True, slots=True)
class Down:
    """A notification on its way from the rendezvous to the interested brokers."""

    kind: ClassVar[str] = "notification"
    event: Publication


@dataclass(slots=True)
class Branch:
    """One broker's part of the tree of one cell."""

    wanted: dict[int, Zone] = field(default_factory=dict)
    """Child -> its filters; those of the broker's own users are under its own number."""
    announced: Zone = field(default_factory=Zone)
    """The filters that were sent upwards. In the cell they cover all that are wanted here."""


class RendezvousBroker:
    def __init__(self, system: System, number: int, ring: Ring) -> None:
        self.system = system
        self.number = number
        self.ring = ring
        self.local = Zone()
        self.branches: dict[Cell, Branch] = {}
        self._nearest: dict[Name, int] = {}

    @cached_property
    def _name(self) -> Name:
        return self.ring.names[self.number]

    @property
    def table_size(self) -> int:
        others = {
            (child, id)
            for branch in self.branches.values()
            for child, zone in branch.wanted.items()
            if child != self.number
            for id in zone.rectangles
        }
        return len(self.local) + len(others)

    def towards(self, cell: Cell) -> int | None:
        """The next hop to the rendezvous: the nearest broker that shares one more digit."""
        target = self.ring.names[self.ring.rendezvous(cell)]
        common = 0
        while common < len(target) and target[common] == self._name[common]:
            common += 1
        if common == len(target):
            return None
        prefix = target[: common + 1]
        if prefix not in self._nearest:
            names = self.ring.names
            able = [other for other, name in enumerate(names) if name[: common + 1] == prefix]
            self._nearest[prefix] = min(
                able, key=lambda other: (self.system.latency_ms(self.number, other), other)
            )
        return self._nearest[prefix]

    # --- subscriptions ----------------------------------------------------------------------------

    def subscribe(self, id: str, rectangle: Rectangle) -> None:
        self.local.insert(id, rectangle)
        self._join(self.number, Join(id, rectangle, tuple(self.ring.cells_of(rectangle))))

    def unsubscribe(self, id: str) -> None:
        rectangle = self.local.rectangles[id]
        self.local.delete(id)
        self._leave(self.number, Leave(id, tuple(self.ring.cells_of(rectangle))))

    def _join(self, child: int, join: Join) -> None:
        upward: dict[int, list[Cell]] = {}
        for cell in join.cells:
            branch = self.branches.setdefault(cell, Branch())
            branch.wanted.setdefault(child, Zone()).insert(join.id, join.rectangle)
            self._announce(branch, cell, join.id, join.rectangle, upward)
        for neighbour, cells in upward.items():
            self.system.send(self.number, neighbour, Join(join.id, join.rectangle, tuple(cells)))

    def _announce(
        self,
        branch: Branch,
        cell: Cell,
        id: str,
        rectangle: Rectangle,
        upward: dict[int, list[Cell]],
    ) -> None:
        """Announces the filter upwards, unless its part in the cell is already covered there."""
        neighbour = self.towards(cell)
        if neighbour is None or branch.announced.covers(self.ring.part_in(cell, rectangle)):
            return
        branch.announced.insert(id, rectangle)
        upward.setdefault(neighbour, []).append(cell)

    def _leave(self, child: int, leave: Leave) -> None:
        """Announces the filters that only this one covered first, so that no event is lost."""
        joins: dict[str, dict[int, list[Cell]]] = {}
        upward: dict[int, list[Cell]] = {}
        rectangles: dict[str, Rectangle] = {}
        for cell in leave.cells:
            branch = self.branches[cell]
            branch.wanted[child].delete(leave.id)
            if not branch.wanted[child]:
                del branch.wanted[child]
            neighbour = self.towards(cell)
            if neighbour is None or leave.id not in branch.announced:
                continue
            branch.announced.delete(leave.id)
            upward.setdefault(neighbour, []).append(cell)
            for zone in branch.wanted.values():
                for id, rectangle in zone.rectangles.items():
                    if id not in branch.announced:
                        rectangles[id] = rectangle
                        self._announce(branch, cell, id, rectangle, joins.setdefault(id, {}))
        for id, ways in joins.items():
            for neighbour, cells in ways.items():
                self.system.send(self.number, neighbour, Join(id, rectangles[id], tuple(cells)))
        for neighbour, cells in upward.items():
            self.system.send(self.number, neighbour, Leave(leave.id, tuple(cells)))

    # --- notifications ----------------------------------------------------------------------------

    def publish(self, event: Publication) -> None:
        """Delivers to the publisher's own users at once."""
        self.system.deliver(event, self.local.match(event.point), self.number)
        self._up(event)

    def _up(self, event: Publication) -> None:
        self.system.reach(event, self.number)
        neighbour = self.towards(self.ring.cell_of(event.point))
        if neighbour is None:
            self._down(event)
        else:
            self.system.send(self.number, neighbour, Up(event))

    def _down(self, event: Publication) -> None:
        self.system.reach(event, self.number)
        if self.number != event.publisher:
            self.system.deliver(event, self.local.match(event.point), self.number)
        branch = self.branches.get(self.ring.cell_of(event.point), Branch())
        for child, zone in branch.wanted.items():
            if child != self.number and zone.match(event.point):
                self.system.send(self.number, child, Down(event))

    def receive(self, sender: int, message: object) -> None:
        if isinstance(message, Up):
            self._up(message.event)
        elif isinstance(message, Down):
            self._down(message.event)
        elif isinstance(message, Join):
            self._join(sender, message)
        elif isinstance(message, Leave):
            self._leave(sender, message)
        else:
            raise TypeError(f"not a message of this strategy: {message!r}")
