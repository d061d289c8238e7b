"""Self-organisation: figures 4.12 to 4.20, which compare CBR with SOCBR and its variants.

Each variant has the same network, the same first tree and the same subscriptions, one after the
other. At the end of each window of subscriptions, many notifications are measured on the current
tree. Publications do not change the tree, so one run gives the messages per operation for every
ratio R of publications to subscriptions.

Meanwhile notifications are really published at random times, mostly during discoveries and swaps.
They are not measured, but judged (`judged.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np

from qns.lab.experiments.judged import check_history, check_overlay, check_swaps
from qns.lab.simulated.history import RecordedRun
from qns.lab.simulated.measure import (
    Demand,
    associativity,
    forwarders_on_the_way_in,
    ideal_hops,
    last_ms,
    latency_ms,
    tree_hops,
    tree_latency_ms,
)
from qns.lab.simulated.network import Network, flat, transit_stub
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.space import rounded, rounded_rectangle
from qns.lab.simulated.system import Publication, System, places
from qns.lab.simulated.workload import Shape, Workload
from qns.lab.strategies.socbr import Options, SocbrBroker, Swap, socbr

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
    "pb 100 ms, lightest": Options(bound_ms=100, cuts_lightest=True),
    SOCBR: Options(),
}
FLAT: Final = "flat"
TRANSIT_STUB: Final = "transit-stub"
NEAR: Final = "transit-stub, near"
"""The same networks, but each broker of the first tree joins at the nearest available one. Thesis
4.5.2 says that its first tree is independent of the network, and then that neighbours were probably
near each other, which it calls a sort of worst case. Therefore both are run."""
VARIANTS: Final = {FLAT: ON_FLAT, TRANSIT_STUB: ON_TRANSIT_STUB, NEAR: ON_TRANSIT_STUB}
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
"""Values of the parameters of subscriptions that the thesis does not specify."""
QUARTERS: Final = 4

_SUBSCRIBING: Final = ("subscription", "unsubscription")
_PUBLISHING: Final = ("notification", "reroute")
_PUBLISHERS: Final = 10
"""The number of brokers that publish judged notifications. The history grows with each of them."""
_MEANWHILE_MS: Final = 3_000.0
"""The approximate time until a subscription has spread and its swaps are made."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The set-up of thesis 4.5.2; the report gives the reasons for what the thesis leaves open."""

    brokers: int = 100
    fan_out: int = 10
    subscriptions: int = 1_500
    """Beyond about 1,000 the cost of self-organisation per subscription falls (fig. 4.15)."""
    window: int = 50
    notifications: int = 2_000
    """The number of notifications measured at the end of each window."""
    judged: int = 1
    """The number of notifications that are published and judged for each subscription."""
    seeds: int = 5
    shape: Shape = field(default_factory=Shape)

    def quick(self) -> Setup:
        return replace(
            self, brokers=40, fan_out=6, subscriptions=120, window=30, notifications=500, seeds=2
        )

    def work(self, network: str) -> list[Work]:
        """The work for every variant on this kind of network, for each seed."""
        return [(self, network, *each) for each in product(VARIANTS[network], range(self.seeds))]

    def work_on_shapes(self, shapes: Mapping[str, Shape]) -> list[Work]:
        """The work for CBR and SOCBR on a flat network, with one window at the end of each run."""
        work: list[Work] = []
        for shape in shapes.values():
            at_end = replace(self, shape=shape, window=self.subscriptions)
            work += [(at_end, FLAT, *each) for each in product((CBR, SOCBR), range(self.seeds))]
        return work


Work = tuple[Setup, str, str, int]
"""Set-up, kind of network, variant, seed."""


class Window(NamedTuple):
    """One variant at the end of one window; messages are counted from the start of the run."""

    network: str
    variant: str
    seed: int
    subscriptions: int
    hops: float
    ideal: float
    way_in: float
    """Pure forwarders before the notification reaches the interested brokers."""
    associativity: float
    latency_ms: float
    """Latency to the last subscriber, along the tree."""
    subscription_messages: int
    discovery_messages: int
    organisation_messages: int
    """All messages of self-organisation: discovery, locks, reconfiguration, pings."""
    swaps: int
    judged_events: int
    """The number of events that were really published so far."""
    judged_notifications: int
    held_back: int
    """Messages of these events that a swap delayed and then sent over another link."""

    @property
    def pure_forwarders(self) -> float:
        return self.hops - self.ideal


Do = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""A function like `map`, possibly that of a pool of processes."""


def organise(setup: Setup, network: str, do: Do = map) -> list[Window]:
    """Runs every variant on this kind of network, for each seed."""
    return [window for windows in do(run_variant, setup.work(network)) for window in windows]


def on_shapes(
    setup: Setup, shapes: Mapping[str, Shape] = SHAPES, do: Do = map
) -> list[tuple[str, Window]]:
    """Runs CBR and SOCBR with other shapes of subscriptions; returns the end of each run."""
    work = setup.work_on_shapes(shapes)
    names = [name for name in shapes for _ in range(len(work) // len(shapes))]
    ends = (windows[-1] for windows in do(run_variant, work))
    return list(zip(names, ends, strict=True))


def run_variant(work: Work) -> list[Window]:
    """Runs one variant with one seed. It can be pickled, so that a pool of processes can run it."""
    setup, kind, variant, seed = work
    name = f"{variant} on a {kind} network, seed {seed}"
    system = new_system(setup, kind, variant, seed)
    run = RecordedRun(system)
    # With locality, the brokers of a group are spread over the first tree.
    groups = QUARTERS if setup.shape.locality else 1
    brokers = [list(range(first, setup.brokers, groups)) for first in range(groups)]
    draw = Workload(setup.shape, _chance(seed, "workload"), brokers)
    publish = _Publishing(run, setup, _chance(seed, "judged"))
    points = np.random.default_rng(seed)
    demand = Demand(setup.brokers)
    windows = []
    swaps = 0
    for number in range(1, setup.subscriptions + 1):
        broker, rectangle = draw.subscription()
        rectangle = rounded_rectangle(rectangle)
        demand.add(broker, rectangle)
        run.subscribe(broker, f"s{number}", rectangle)
        publish.meanwhile()
        run.settle()
        check_overlay(system.overlay, name)
        zones = [each.zone for each in _brokers(system)]
        made = _swaps(system)
        check_swaps(made[swaps:], zones, name)
        swaps = len(made)
        if number % setup.window == 0:
            measured = _measured(system, demand, points, setup.notifications)
            windows.append(Window(kind, variant, seed, number, *measured, *_counts(run)))
    check_history(run, name)
    return windows


def new_system(setup: Setup, kind: str, variant: str, seed: int) -> System:
    network = new_network(kind, setup.brokers, seed)
    if kind == NEAR:
        hosts = places(network, setup.brokers, _chance(seed, "hosts"))  # those of the system
        direct = network.latency_ms[np.ix_(hosts, hosts)]
        overlay = Overlay.near_tree(setup.brokers, setup.fan_out, lambda *pair: float(direct[pair]))
    else:
        overlay = _first_tree(setup, seed)
    return System(network, overlay, socbr(VARIANTS[kind][variant]), _chance(seed, "hosts"))


def _first_tree(setup: Setup, seed: int) -> Overlay:
    return Overlay.random_tree(setup.brokers, setup.fan_out, _chance(seed, "overlay"))


class _Publishing:
    """Publishes some notifications at random times of the near future."""

    def __init__(self, run: RecordedRun, setup: Setup, random: Random) -> None:
        self.run = run
        self.random = random
        self.at_once = setup.judged
        self.publishers = random.sample(range(setup.brokers), min(_PUBLISHERS, setup.brokers))
        self.published = 0

    def meanwhile(self) -> None:
        engine = self.run.system.engine
        for _ in range(self.at_once):
            point = self.random.uniform(0, 1_000), self.random.uniform(0, 1_000)
            self.published += 1
            event = Publication(
                f"e{self.published}", rounded(point), self.random.choice(self.publishers)
            )
            when = engine.now + self.random.uniform(0, _MEANWHILE_MS)
            engine.at(when, self.run.publish, event)


def new_network(kind: str, brokers: int, seed: int) -> Network:
    make = flat if kind == FLAT else transit_stub
    return make(brokers, _chance(seed, "network"))


def _chance(seed: int, purpose: str) -> Random:
    return Random(f"{seed} {purpose}")  # noqa: S311


def _measured(
    system: System, demand: Demand, points: np.random.Generator, notifications: int
) -> tuple[float, float, float, float, float]:
    overlay = system.overlay
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


def _counts(run: RecordedRun) -> tuple[int, int, int, int, int, int, int]:
    sent = run.sent
    subscribing = sum(sent[kind] for kind in _SUBSCRIBING)
    organising = sent.total() - subscribing - sum(sent[kind] for kind in _PUBLISHING)
    return (
        subscribing,
        sent["discovery"],
        organising,
        len(_swaps(run.system)),
        run.published,
        len(run.deliveries),
        sent["reroute"],
    )


def _swaps(system: System) -> list[Swap]:
    """All swaps in the order in which they happened."""
    return sorted(swap for broker in _brokers(system) for swap in broker.swaps)


def _brokers(system: System) -> list[SocbrBroker]:
    found = [broker for broker in system.brokers if isinstance(broker, SocbrBroker)]
    assert len(found) == len(system.brokers)
    return found


def reaches(setup: Setup) -> dict[str, float]:
    """TTL variant -> the percentage of brokers that a discovery reaches in the first trees."""
    trees = [_first_tree(setup, seed) for seed in range(setup.seeds)]
    links = np.ones((setup.brokers, setup.brokers))
    hops = np.array([tree_latency_ms(tree, links) for tree in trees])
    others = hops > 0
    return {
        variant: float(100 * (hops[others] <= options.ttl).mean())
        for variant, options in ON_FLAT.items()
        if options.ttl
    }


def messages_per_operation(windows: Sequence[Window], ratio: int) -> float:
    """Messages per operation of one variant and seed over all windows (fig. 4.14, 4.16, 4.19)."""
    last = windows[-1]
    messages = last.subscription_messages + last.organisation_messages
    hops = sum(window.hops for window in windows) / len(windows)
    per_subscription = messages / last.subscriptions
    return (per_subscription + ratio * hops) / (1 + ratio)
