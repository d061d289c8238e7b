"""Self-organisation: figures 4.12 to 4.20, CBR beside SOCBR and its variants.

Each variant gets the same network, the same first tree and the same subscriptions, one after the
other. At the end of each window of subscriptions, many notifications are measured on the tree as it
is then. How often something is published changes nothing about the tree, so one run tells the
messages per operation for every ratio R of publications to subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np

from qns.lab.measure import (
    Demand,
    associativity,
    forwarders_on_the_way_in,
    ideal_hops,
    last_ms,
    latency_ms,
    tree_hops,
    tree_latency_ms,
)
from qns.lab.network import Network, flat, transit_stub
from qns.lab.overlay import Overlay
from qns.lab.socbr import Options, SocbrBroker, socbr
from qns.lab.system import System
from qns.lab.workload import Shape, Workload

CBR: Final = "CBR"
SOCBR: Final = "SOCBR"
ON_FLAT: Final = {
    CBR: Options(ttl=0),
    "TTL 2": Options(ttl=2),
    "TTL 4": Options(ttl=4),
    "TTL 8": Options(ttl=8),
    SOCBR: Options(),
}
ON_TRANSIT_STUB: Final = {
    CBR: Options(ttl=0),
    "pb 50 ms": Options(bound_ms=50),
    "pb 100 ms": Options(bound_ms=100),
    "pb 150 ms": Options(bound_ms=150),
    SOCBR: Options(),
}
VARIANTS: Final = {"flat": ON_FLAT, "transit-stub": ON_TRANSIT_STUB}
RATIOS: Final = (2, 5, 10, 12, 15, 20, 30, 50, 75, 100, 200)
"""R: publications for each subscription."""

SHAPES: Final = {
    "sides ≤ 50": Shape(longest=50),
    "sides ≤ 200": Shape(),
    "sides ≤ 500": Shape(longest=500),
    "sides ≤ 1,000": Shape(longest=1_000),
    "Zipf 2": Shape(zipf=2),
    "4 × 4 cells, Zipf 1.5": Shape(cells=4, zipf=1.5),
    "quarters": Shape(locality=1),
    "sides ≤ 500, quarters": Shape(longest=500, locality=1),
}
"""What the thesis leaves open about subscriptions, and how much depends on it."""
QUARTERS: Final = 4

_SUBSCRIBING: Final = ("subscription", "unsubscription")


@dataclass(frozen=True, slots=True)
class Setup:
    """The thesis's set-up (4.5.2); what it leaves open is told with its reason in the report."""

    brokers: int = 100
    fan_out: int = 10
    subscriptions: int = 1_500
    """Until self-organisation costs less again for each new one (fig. 4.15): about 1,000."""
    window: int = 50
    notifications: int = 2_000
    """Measured at the end of each window."""
    seeds: int = 5
    shape: Shape = field(default_factory=Shape)

    def quick(self) -> Setup:
        return replace(
            self, brokers=40, fan_out=6, subscriptions=120, window=30, notifications=500, seeds=2
        )

    def work(self, network: str) -> list[Work]:
        """Every variant on this kind of network, for each seed."""
        return [(self, network, *each) for each in product(VARIANTS[network], range(self.seeds))]

    def work_on_shapes(self, shapes: Mapping[str, Shape]) -> list[Work]:
        """CBR and SOCBR on a flat network, for each seed: only the end of each run."""
        work: list[Work] = []
        for shape in shapes.values():
            at_end = replace(self, shape=shape, window=self.subscriptions)
            work += [(at_end, "flat", *each) for each in product((CBR, SOCBR), range(self.seeds))]
        return work


Work = tuple[Setup, str, str, int]
"""Set-up, kind of network, variant, seed."""


class Window(NamedTuple):
    """One variant at the end of one window; messages are those since the beginning."""

    network: str
    variant: str
    seed: int
    subscriptions: int
    hops: float
    ideal: float
    way_in: float
    """Pure forwarders before the notification is among those who want it."""
    associativity: float
    latency_ms: float
    """To the last subscriber, along the tree."""
    subscription_messages: int
    discovery_messages: int
    organisation_messages: int
    """All of self-organisation: discovery, locks, reconfiguration, pings."""
    swaps: int

    @property
    def pure_forwarders(self) -> float:
        return self.hops - self.ideal


Do = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""`map`, or that of a pool of processes."""


def organise(setup: Setup, network: str, do: Do = map) -> list[Window]:
    """Every variant on this kind of network, for each seed."""
    return [window for windows in do(run_variant, setup.work(network)) for window in windows]


def on_shapes(
    setup: Setup, shapes: Mapping[str, Shape] = SHAPES, do: Do = map
) -> list[tuple[str, Window]]:
    """Whether SOCBR does as well with other subscriptions: the end of each run."""
    work = setup.work_on_shapes(shapes)
    names = [name for name in shapes for _ in range(len(work) // len(shapes))]
    ends = (windows[-1] for windows in do(run_variant, work))
    return list(zip(names, ends, strict=True))


def run_variant(work: Work) -> list[Window]:
    """One variant from one seed: module level and plain values, so that a pool can be given it."""
    setup, kind, variant, seed = work
    options = VARIANTS[kind][variant]
    network = new_network(kind, setup.brokers, seed)
    overlay = Overlay.random_tree(setup.brokers, setup.fan_out, _chance(seed, "overlay"))
    system = System(network, overlay, socbr(options), _chance(seed, "hosts"))
    # With locality a group is anywhere in the tree: who wants the same is not near to begin with.
    groups = QUARTERS if setup.shape.locality else 1
    brokers = [list(range(first, setup.brokers, groups)) for first in range(groups)]
    draw = Workload(setup.shape, _chance(seed, "workload"), brokers)
    points = np.random.default_rng(seed)
    demand = Demand(setup.brokers)
    windows = []
    for number in range(1, setup.subscriptions + 1):
        broker, rectangle = draw.subscription()
        demand.add(broker, rectangle)
        system.brokers[broker].subscribe(f"s{number}", rectangle)
        system.settle()
        if number % setup.window == 0:
            measured = _measured(system, demand, points, setup.notifications)
            windows.append(Window(kind, variant, seed, number, *measured, *_messages(system)))
    return windows


def new_network(kind: str, brokers: int, seed: int) -> Network:
    make = flat if kind == "flat" else transit_stub
    return make(brokers, _chance(seed, "network"))


def _chance(seed: int, purpose: str) -> Random:
    return Random(f"{seed} {purpose}")  # noqa: S311


def _measured(
    system: System, demand: Demand, points: np.random.Generator, notifications: int
) -> tuple[float, float, float, float, float]:
    overlay = system.overlay
    assert overlay.is_tree
    publishers = points.integers(0, overlay.brokers, notifications)
    wanted = demand.wanted(points.uniform(0, 1_000, (notifications, 2)))
    way = tree_latency_ms(overlay, latency_ms(system))
    last = last_ms(way, wanted, publishers)
    zones = [broker.local for broker in _brokers(system)]
    return (
        float(tree_hops(overlay, wanted, publishers).mean()),
        float(ideal_hops(wanted, publishers).mean()),
        float(forwarders_on_the_way_in(overlay, wanted, publishers).mean()),
        associativity(zones, overlay),
        float(np.nanmean(last)) if not np.isnan(last).all() else 0.0,
    )


def _messages(system: System) -> tuple[int, int, int, int]:
    subscribing = sum(system.sent[kind] for kind in _SUBSCRIBING)
    swaps = sum(len(broker.swaps) for broker in _brokers(system))
    organising = system.sent.total() - subscribing
    return subscribing, system.sent["discovery"], organising, swaps


def _brokers(system: System) -> list[SocbrBroker]:
    found = [broker for broker in system.brokers if isinstance(broker, SocbrBroker)]
    assert len(found) == len(system.brokers)
    return found


def messages_per_operation(windows: Sequence[Window], ratio: int) -> float:
    """Of one variant and seed, over all its windows: fig. 4.14, 4.16, 4.19."""
    last = windows[-1]
    told = last.subscription_messages + last.organisation_messages
    hops = sum(window.hops for window in windows) / len(windows)
    per_subscription = told / last.subscriptions
    return (per_subscription + ratio * hops) / (1 + ratio)
