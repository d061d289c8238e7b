"""Measures: the cost of a strategy in hops, messages and latency, the same for every strategy.

`diffuse` runs one notification. For strategies on a tree with exact tables, many notifications are
computed at once without running them: such a notification crosses exactly the links that have an
interested broker on the side away from its publisher.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qns.cbr.rectangles import Point, Rectangle
from qns.cbr.zones import Zone, system_associativity
from qns.history.records import Record
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Delivery, Publication, System

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Run(Protocol):
    """A running strategy, of lab brokers or of production peers."""

    def subscribe(self, broker: int, id: str, rectangle: Rectangle) -> None: ...

    def unsubscribe(self, broker: int, id: str) -> None: ...

    def publish(self, event: Publication) -> None: ...

    def settle(self) -> None:
        """Runs until no message is under way."""

    def calm(self) -> None:
        """Settles and records it in the history."""

    @property
    def now_ms(self) -> float: ...

    @property
    def sent(self) -> Counter[str]:
        """Messages by kind."""
        ...

    @property
    def hops(self) -> int:
        """The number of times that a notification was sent from one broker to another."""
        ...

    @property
    def deliveries(self) -> Sequence[Delivery]: ...

    @property
    def table_sizes(self) -> list[int]: ...

    def reached(self, event: str) -> set[int]:
        """The brokers that received the event, interested or not."""
        ...

    def records(self) -> list[Record]: ...


# --- one notification -----------------------------------------------------------------------------


class Diffusion(NamedTuple):
    """The measures of one notification."""

    messages: int
    hops: int
    ideal: int
    """The number of interested brokers without the publisher's: each needs one hop at least."""
    pure_forwarders: int
    last_ms: float | None
    """The time until the last subscriber at another broker was notified; None if there is none."""


def diffuse(run: Run, event: Publication) -> Diffusion:
    """Publishes on a settled run and runs until the event is delivered."""
    sent, hops, since, delivered = run.sent.total(), run.hops, run.now_ms, len(run.deliveries)
    run.publish(event)
    run.settle()
    elsewhere = [each for each in run.deliveries[delivered:] if each.broker != event.publisher]
    interested = {each.broker for each in elsewhere}
    return Diffusion(
        run.sent.total() - sent,
        run.hops - hops,
        len(interested),
        len(run.reached(event.id) - interested - {event.publisher}),
        max((each.at_ms for each in elsewhere), default=since) - since if elsewhere else None,
    )


# --- many notifications on a tree, without running them -------------------------------------------


class Demand:
    """The interests of all brokers: which of them want which points."""

    def __init__(self, brokers: int, subscriptions: Iterable[tuple[int, Rectangle]] = ()) -> None:
        self.brokers = brokers
        self._corners: list[list[tuple[Point, Point]]] = [[] for _ in range(brokers)]
        self._boxes: dict[int, Floats] = {}
        for broker, rectangle in subscriptions:
            self.add(broker, rectangle)

    def add(self, broker: int, rectangle: Rectangle) -> None:
        self._corners[broker].append((rectangle.lo, rectangle.hi))
        self._boxes.pop(broker, None)

    def wanted(self, points: Floats) -> Flags:
        """[point, broker]"""
        wanted = np.zeros((len(points), self.brokers), dtype=np.bool_)
        for broker, corners in enumerate(self._corners):
            if corners:
                if broker not in self._boxes:
                    self._boxes[broker] = np.array(corners)
                boxes = self._boxes[broker]
                above = boxes[None, :, 0] <= points[:, None]
                below = points[:, None] <= boxes[None, :, 1]
                wanted[:, broker] = np.any(np.all(above & below, axis=2), axis=1)
        return wanted


def ideal_hops(wanted: Flags, publishers: Integers) -> Integers:
    """One for each interested broker other than the publisher's."""
    own = wanted[np.arange(len(wanted)), publishers]
    ideal: Integers = wanted.sum(axis=1, dtype=np.int64) - own
    return ideal


def tree_hops(overlay: Overlay, wanted: Flags, publishers: Integers) -> Integers:
    """The hops of each notification. Those beyond `ideal_hops` lead to pure forwarders."""
    tree = _Preorder.of(overlay)
    below = np.zeros((len(wanted), overlay.brokers + 1), dtype=np.int64)
    np.cumsum(wanted[:, tree.brokers], axis=1, out=below[:, 1:])
    total = below[:, -1:]
    behind = below[:, tree.ends[1:]] - below[:, 1:-1]  # in each subtree but the root's
    place = np.empty(overlay.brokers, dtype=np.int64)
    place[tree.brokers] = np.arange(overlay.brokers)
    at = place[publishers][:, None]
    comes_up = (np.arange(1, overlay.brokers) <= at) & (at < tree.ends[1:])
    hops: Integers = np.where(comes_up, total - behind > 0, behind > 0).sum(axis=1)
    return hops


def forwarders_on_the_way_in(overlay: Overlay, wanted: Flags, publishers: Integers) -> Integers:
    """The pure forwarders before the smallest subtree that connects all interested brokers.

    All other pure forwarders are inside that subtree.
    """
    among = tree_hops(overlay, wanted, wanted.argmax(axis=1))
    before: Integers = np.maximum(tree_hops(overlay, wanted, publishers) - among - 1, 0)
    return before


def latency_ms(system: System) -> Floats:
    """[broker, broker], over a direct connection."""
    latency: Floats = system.network.latency_ms[np.ix_(system.hosts, system.hosts)]
    return latency


def tree_latency_ms(overlay: Overlay, direct_ms: Floats) -> Floats:
    """[broker, broker], along the tree."""
    tree = _Preorder.of(overlay)
    parents = overlay.parents(int(tree.brokers[0]))
    latency = np.zeros_like(direct_ms)
    for number, broker in enumerate(tree.brokers[1:].tolist(), start=1):
        parent, before = parents[broker], tree.brokers[:number]
        latency[broker, before] = latency[parent, before] + direct_ms[parent, broker]
        latency[before, broker] = latency[broker, before]
    return latency


def last_ms(way_ms: Floats, wanted: Flags, publishers: Integers) -> Floats:
    """The time until the last interested broker has each notification; NaN if there is none."""
    others = wanted.copy()
    others[np.arange(len(wanted)), publishers] = False
    last: Floats = np.where(others, way_ms[publishers], -np.inf).max(axis=1)
    last[np.isneginf(last)] = np.nan
    return last


@dataclass(frozen=True, slots=True)
class _Preorder:
    """The brokers of a tree, each followed by all brokers below it."""

    brokers: Integers
    ends: Integers
    """By place in that order: the end of the broker's subtree."""

    @classmethod
    def of(cls, overlay: Overlay) -> _Preorder:
        assert overlay.is_tree
        parents = overlay.parents()
        order: list[int] = []
        waiting = [0]
        while waiting:
            broker = waiting.pop()
            order.append(broker)
            waiting += [each for each in overlay.neighbours(broker) if each != parents[broker]]
        sizes = [1] * overlay.brokers
        for broker in reversed(order[1:]):
            sizes[parents[broker]] += sizes[broker]
        ends = [place + sizes[broker] for place, broker in enumerate(order)]
        return cls(np.array(order), np.array(ends))


# --- a system -------------------------------------------------------------------------------------


def associativity(zones: Sequence[Zone], overlay: Overlay) -> float:
    """AS of thesis 4.2.2, over the zones of interest of all brokers."""
    names = [str(number) for number in range(len(zones))]
    return system_associativity(
        dict(zip(names, zones, strict=True)),
        {name: [str(each) for each in overlay.neighbours(int(name))] for name in names},
    )
