"""Worlds of SOCBR brokers that are checked after every step and at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from qns.cbr.rectangles import Point, Rectangle
from qns.lab.simulated.engine import Engine
from qns.lab.simulated.network import flat
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Publication, System
from qns.lab.strategies.interests import weight
from qns.lab.strategies.socbr import Options, SocbrBroker, Swap, socbr

SIDE = 12


class WatchedEngine(Engine):
    """Calls its watcher after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.watcher: Callable[[], None] = lambda: None

    def at(self, when: float, action: Callable[..., None], *arguments: Any) -> None:
        super().at(when, self._step, action, arguments)

    def _step(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        action(*arguments)
        self.watcher()


class WatchedOverlay(Overlay):
    """Counts the swaps whose old link is removed and whose new one does not exist yet."""

    cuts = 0
    most_cuts = 0

    def open(self, one: int, other: int) -> None:
        super().open(one, other)
        self.cuts -= self.is_link(one, other)

    def cut(self, one: int, other: int) -> None:
        super().cut(one, other)
        self.cuts += 1
        self.most_cuts = max(self.cuts, self.most_cuts)

    def is_link(self, one: int, other: int) -> bool:
        return other in self.neighbours(one)

    def pieces(self) -> int:
        """Returns the number of trees; fails on a cycle."""
        tree = [-1] * self.brokers
        pieces = 0
        for start in range(self.brokers):
            waiting = [(start, -1)] if tree[start] < 0 else []
            pieces += len(waiting)
            while waiting:
                broker, before = waiting.pop()
                assert tree[broker] < 0, "the overlay has a cycle"
                tree[broker] = start
                waiting += [(next, broker) for next in self.neighbours(broker) if next != before]
        return pieces


@dataclass
class World:
    system: System
    overlay: WatchedOverlay
    engine: WatchedEngine
    steps: int = 0
    asked: dict[str, tuple[int, Rectangle, int]] = field(default_factory=dict)
    """Subscription -> broker, rectangle, and the number of updates of its broker so far."""
    left: set[str] = field(default_factory=set)
    """Subscriptions that were cancelled."""
    owed: dict[str, set[str]] = field(default_factory=dict)
    """Event -> the subscriptions that all brokers had before it."""
    events: dict[str, Publication] = field(default_factory=dict)

    @property
    def brokers(self) -> list[SocbrBroker]:
        return [broker for broker in self.system.brokers if isinstance(broker, SocbrBroker)]

    @property
    def swaps(self) -> list[Swap]:
        return [swap for broker in self.brokers for swap in broker.swaps]

    @property
    def associativity(self) -> float:
        zones = [broker.zone for broker in self.brokers]
        return sum(weight(zones[a], zones[b]) for a, b in self.overlay.links()) / len(zones)

    # --- what users do ----------------------------------------------------------------------------

    def subscribe(self, id: str, broker: int, rectangle: Rectangle) -> None:
        self.brokers[broker].subscribe(id, rectangle)
        self.asked[id] = broker, rectangle, self.brokers[broker]._updates

    def unsubscribe(self, id: str) -> None:
        if id in self.asked and id not in self.left:
            self.left.add(id)
            self.brokers[self.asked[id][0]].unsubscribe(id)

    def publish(self, id: str, broker: int, point: Point) -> None:
        event = self.events[id] = Publication(id, point, broker)
        self.owed[id] = {each for each in self.asked if self._is_known(each)} - self.left
        self.brokers[broker].publish(event)

    def _is_known(self, id: str) -> bool:
        home, _, updates = self.asked[id]
        return all(
            broker.seen.get(home, 0) >= updates for broker in self.brokers if broker.number != home
        )

    # --- what has to hold -------------------------------------------------------------------------

    def check_step(self) -> None:
        """Checks that the overlay is a tree or, with n swaps half done, a forest of n + 1 trees."""
        self.steps += 1
        overlay = self.overlay
        assert overlay.pieces() == overlay.cuts + 1
        for broker in self.brokers:
            assert overlay.degree(broker.number) <= len(broker.links) <= overlay.fan_out
            assert broker.available >= 0

    def check_quiet(self) -> None:
        """Checks that no reconfiguration is open and that the tables are those of CBR."""
        overlay, brokers = self.overlay, self.brokers
        assert overlay.is_tree
        assert overlay.cuts == 0
        for broker in brokers:
            part = broker.reconfigurations
            assert not part.passages
            assert not part.locked
            assert not part.ends
            assert not broker.discoveries.pending
            assert not broker.discoveries.started
            assert set(broker.links) == set(overlay.neighbours(broker.number))
            others = [other for other in brokers if other is not broker]
            assert dict(broker.table.rectangles) == {
                id: rectangle for other in others for id, rectangle in other.announced.items()
            }
            parents = overlay.parents(broker.number)
            for other in others:
                ours = sorted(map(tuple, broker.interests.of(other.number).reshape(-1, 4).tolist()))
                theirs = sorted(map(tuple, other.zone.reshape(-1, 4).tolist()))
                assert ours == theirs
                if other.announced:
                    step = other.number
                    while parents[step] != broker.number:
                        step = parents[step]
                    assert broker.towards[other.number] == step
            for link in broker.links:
                assert all(broker.towards[broker.homes[id]] == link for id in broker.behind(link))

    def check_deliveries(self) -> None:
        """Checks that stable subscriptions got each event once, others at most once."""
        counted = Counter((each.event, each.subscription) for each in self.system.deliveries)
        for (event, subscription), times in counted.items():
            home, rectangle, _ = self.asked[subscription]
            assert times == 1, f"{event} came {times} times to {subscription} at {home}"
            assert rectangle.holds(self.events[event].point)
        for event, subscriptions in self.owed.items():
            for subscription in sorted(subscriptions - self.left):
                if self.asked[subscription][1].holds(self.events[event].point):
                    assert counted[event, subscription] == 1, f"{subscription} did not get {event}"


def new_world(
    brokers: int,
    fan_out: int,
    seed: object,
    options: Options | None = None,
    handling_ms: dict[str, float] | None = None,
    links: Iterable[tuple[int, int]] | None = None,
) -> World:
    """Makes a world, by default on a random tree."""
    random = Random(f"{seed}")
    overlay = WatchedOverlay(brokers, fan_out)
    for one, other in links or Overlay.random_tree(brokers, fan_out, random).links():
        overlay.link(one, other)
    engine, network = WatchedEngine(), flat(max(brokers, 2), random)
    system = System(network, overlay, socbr(options), random, handling_ms or {}, engine)
    world = World(system, overlay, engine)
    engine.watcher = world.check_step
    return world


def some_rectangle(random: Random) -> Rectangle:
    """Draws on a small grid, so that brokers often have common interests."""
    x, y = random.randrange(SIDE - 1), random.randrange(SIDE - 1)
    wide, high = random.randint(1, 5), random.randint(1, 5)
    return Rectangle((float(x), float(y)), (float(x + wide), float(y + high)))


def some_point(random: Random) -> Point:
    return float(random.randrange(2 * SIDE)) / 2, float(random.randrange(2 * SIDE)) / 2


def play(world: World, random: Random, actions: int, within_ms: float) -> None:
    """Subscribes, unsubscribes and publishes concurrently."""
    engine, brokers = world.engine, len(world.brokers)
    for number in range(actions):
        when, broker = random.uniform(0, within_ms), random.randrange(brokers)
        what = random.random()
        if what < 0.45:
            rectangle = some_rectangle(random)
            engine.at(when, world.subscribe, f"s{number}", broker, rectangle)
        elif what < 0.55:
            engine.at(when, world.unsubscribe, f"s{random.randrange(actions)}")
        else:
            engine.at(when, world.publish, f"e{number}", broker, some_point(random))
    world.system.settle()
