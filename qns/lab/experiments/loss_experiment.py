"""Loss experiment: measures loss with CBR brokers on transit-stub networks (thesis 3.3, paper 002).

First it measures how subscriptions and notifications spread (fig. 3.10), with each broker as their
source in turn. These curves give T_sub, T_diff and the update rates (table 3.1). Then it draws
pairs of a subscriber and a publisher, publishes one notification at a random time of T_ON, and
counts the deliveries (fig. 3.11) and the errors of the models (fig. 3.12, paper 002 fig. 9).

A pair is alone in the system, as in the thesis, so its messages never wait for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import sqrt
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qns.cbr.rectangles import Rectangle
from qns.errors import ValueRefused
from qns.lab.experiments.judged import check_history
from qns.lab.experiments.loss_fit import notification_rate, rapidity, subscription_rate
from qns.lab.experiments.loss_model import (
    FEWEST_BROKERS,
    d_by_integrals,
    d_by_means,
    d_by_rapidity,
    f,
    g,
)
from qns.lab.simulated.history import RecordedRun
from qns.lab.simulated.network import transit_stub
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Publication, System
from qns.lab.strategies.cbr import Announce, CbrBroker

HANDLING_MS: Final = {"subscription": 20.0, "unsubscription": 20.0, "notification": 10.0}
"""Handling times, not fitted to table 3.1. The thesis says only that an update takes longer than a
match: an update looks up the table (as long as a match) and then changes it (as long again). 10 ms
for a match are little beside a hop of about 100 ms, so the network determines how fast messages
spread, as in the thesis, where T doubles from 100 to 500 hosts."""

PAPER: Final = {
    100: (0.97, 1.21, 12.20, 9.95),
    250: (0.62, 0.80, 19.06, 14.03),
    500: (0.47, 0.58, 25.44, 20.44),
}
"""Table 3.1: hosts -> s, r, T_sub, T_diff."""

_WHAT: Final = Rectangle((0.0, 0.0), (1.0, 1.0))
_POINT: Final = (0.5, 0.5)
_CURVE_POINTS: Final = 201

Floats = NDArray[np.float64]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""A function like `map`; that of a pool does the same on several cores, in the same order."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The set-up of thesis 3.3."""

    brokers: int = 100
    fan_out: int = 10
    hosts: tuple[int, ...] = (100, 250, 500)
    loss_hosts: tuple[int, ...] = (100, 250)
    """The networks on which d is measured (fig. 3.11)."""
    topologies: int = 5
    pairs: int = 250
    """The number of pairs on each topology, for each T_ON."""
    t_on: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
    """T_ON in units of T_sub + T_diff, the shortest T_ON of the models."""
    seed: int = 0
    handling_ms: dict[str, float] = field(default_factory=lambda: dict(HANDLING_MS))

    def __post_init__(self) -> None:
        if self.brokers < FEWEST_BROKERS or self.brokers > min(self.hosts, default=0):
            raise ValueRefused(
                f"{self.brokers} brokers on networks of {', '.join(map(str, self.hosts))} hosts",
                remedy=f"give at least {FEWEST_BROKERS} brokers, and a host for each",
            )
        if not set(self.loss_hosts) <= set(self.hosts):
            raise ValueRefused(
                "d is measured on a network of unknown T_sub",
                remedy="give only loss_hosts that are among hosts",
            )
        if min(self.topologies, self.pairs, *self.t_on) <= 0:
            raise ValueRefused(
                "nothing to measure", remedy="give topologies, pairs and T_ON above 0"
            )

    def quick(self) -> Setup:
        """A set-up for the same measurements that takes seconds instead of minutes."""
        return replace(self, brokers=50, topologies=2, pairs=100, t_on=(1.0, 2.0, 5.0, 20.0))


@dataclass(frozen=True, slots=True)
class Curve:
    """A measured curve and the logistic of the same area (fig. 3.10)."""

    name: str
    """F: the share of brokers with a subscription. G: the share without a notification."""
    hosts: int
    times_s: tuple[float, ...]
    measured: tuple[float, ...]
    fitted: tuple[float, ...]

    @property
    def gap(self) -> float:
        """The largest distance between the two curves."""
        return max(abs(a - b) for a, b in zip(self.measured, self.fitted, strict=True))


@dataclass(frozen=True, slots=True)
class Rates:
    """A row of table 3.1, for all topologies together or for one."""

    hosts: int
    s: float
    r: float
    t_sub_s: float
    t_diff_s: float
    mean_sub_s: float
    mean_diff_s: float
    """The mean delays over all brokers but the source itself."""
    rapidity: float
    """r of paper 002, the same for both curves."""


@dataclass(frozen=True, slots=True)
class Loss:
    """d at one T_ON, as measured and as the models predict it."""

    hosts: int
    t_on_s: float
    published: int
    delivered: tuple[int, ...]
    """The number of delivered notifications on each topology."""
    d_model: float
    """Eq. 3.1 with s, r and the measured T (semantics §11)."""
    d_means: float
    """Eq. 3.1 with g in reverse: 1 − (mean delays) / T_ON."""
    d_002: float
    """The model of paper 002."""

    @property
    def d(self) -> float:
        return sum(self.delivered) / self.published

    @property
    def margin(self) -> float:
        """Half of the 95 % confidence interval of d."""
        return 1.96 * sqrt(self.d * (1 - self.d) / self.published)

    @property
    def error_percent(self) -> float:
        """Fig. 3.12; negative if the model predicts more than was measured."""
        return self._error_percent(self.d_model)

    @property
    def error_means_percent(self) -> float:
        return self._error_percent(self.d_means)

    @property
    def error_002_percent(self) -> float:
        return self._error_percent(self.d_002)

    def _error_percent(self, model: float) -> float:
        return 100 * (self.d - model) / self.d if self.d else -100.0 * (model > 0)


@dataclass(frozen=True, slots=True)
class Results:
    curves: tuple[Curve, ...]
    """F and G of each network."""
    rates: tuple[Rates, ...]
    """Table 3.1: a row for each network."""
    rates_by_topology: tuple[tuple[Rates, ...], ...]
    """The rows for each topology of each network, which show the random variation."""
    losses: tuple[Loss, ...]

    @property
    def is_in_order(self) -> bool:
        """True if r > s in every network and both fall as the network grows (table 3.1)."""
        rows = sorted(self.rates, key=lambda row: row.hosts)
        falls = all(small.s > large.s and small.r > large.r for small, large in pairwise(rows))
        return falls and all(row.r > row.s for row in rows)

    def errors_percent(self, *, of: str = "error_percent", but: int = 1) -> list[float]:
        """The errors at every T_ON of each network but the `but` smallest ones (fig. 3.12)."""
        found = []
        for hosts in dict.fromkeys(loss.hosts for loss in self.losses):
            of_hosts = [loss for loss in self.losses if loss.hosts == hosts]
            of_hosts.sort(key=lambda loss: loss.t_on_s)
            found += [float(getattr(loss, of)) for loss in of_hosts[but:]]
        return found


def experiment(setup: Setup, do: Map = map) -> Results:
    """Runs the whole experiment; `do` may distribute the work."""
    places = [(hosts, number) for hosts in setup.hosts for number in range(setup.topologies)]
    spreads = dict(zip(places, do(spread, [(setup, *place) for place in places]), strict=True))
    rates, by_topology, curves = [], [], []
    for hosts in setup.hosts:
        of_hosts = [spreads[hosts, number] for number in range(setup.topologies)]
        sub = np.concatenate([both[0] for both in of_hosts])
        diff = np.concatenate([both[1] for both in of_hosts])
        row = _rates(hosts, setup.brokers, sub, diff)
        rates.append(row)
        by_topology.append(tuple(_rates(hosts, setup.brokers, *both) for both in of_hosts))
        curves += _curves(row, setup.brokers, sub, diff)
    rows = {row.hosts: row for row in rates}
    runs = [
        (setup, hosts, number, times * (rows[hosts].t_sub_s + rows[hosts].t_diff_s))
        for hosts in setup.loss_hosts
        for times in setup.t_on
        for number in range(setup.topologies)
    ]
    notified = list(do(delivered, runs))
    losses = []
    for first in range(0, len(runs), setup.topologies):
        _, hosts, _, t_on_s = runs[first]
        counts = tuple(notified[first : first + setup.topologies])
        losses.append(_loss(setup, rows[hosts], t_on_s, counts))
    return Results(tuple(curves), tuple(rates), tuple(by_topology), tuple(losses))


# --- one topology ---------------------------------------------------------------------------------


class WatchedBroker(CbrBroker):
    """A CBR broker that records when each subscription arrived."""

    def __init__(self, system: System, number: int) -> None:
        super().__init__(system, number)
        self.learned_ms: dict[str, float] = {}

    def receive(self, sender: int, message: object) -> None:
        super().receive(sender, message)
        if isinstance(message, Announce):
            self.learned_ms[message.id] = self.system.engine.now


def new_system(setup: Setup, hosts: int, number: int) -> System:
    """Makes a system; networks of all sizes have the same tree of brokers."""
    network = transit_stub(hosts, chance(setup, "network", hosts, number))
    overlay = Overlay.random_tree(setup.brokers, setup.fan_out, chance(setup, "overlay", number))
    places = chance(setup, "places", hosts, number)
    return System(network, overlay, WatchedBroker, places, setup.handling_ms)


def chance(setup: Setup, *what: object) -> Random:
    return Random(f"{setup.seed} {' '.join(map(str, what))}")  # noqa: S311


def spread(arguments: tuple[Setup, int, int]) -> tuple[Floats, Floats]:
    """Measures the delays of subscriptions and of notifications: [source, broker], in seconds."""
    setup, hosts, number = arguments
    system = new_system(setup, hosts, number)
    run = RecordedRun(system)
    brokers = range(setup.brokers)
    sub = np.zeros((setup.brokers, setup.brokers))
    diff = np.zeros_like(sub)
    for source in brokers:
        started = system.engine.now
        run.subscribe(source, f"s{source}", _WHAT)
        run.settle()
        for other in brokers:
            if other != source:
                broker = system.brokers[other]
                assert isinstance(broker, WatchedBroker)
                sub[source, other] = broker.learned_ms[f"s{source}"] - started
    # Now every broker wants every event, which is the worst case for a notification.
    for source in brokers:
        started = system.engine.now
        run.publish(Publication(f"e{source}", _POINT, source))
        run.settle()
        reached = system.reached[f"e{source}"]
        diff[source] = [reached[other] - started for other in brokers]
    check_history(run, f"spreading on {hosts} hosts, topology {number}")
    return sub / 1_000, diff / 1_000


def delivered(arguments: tuple[Setup, int, int, float]) -> int:
    """Returns the number of notifications of the pairs that were delivered.

    A lost one was published before its publisher had the subscription, or arrived after the
    unsubscription. Neither breaks a rule of the history.
    """
    setup, hosts, number, t_on_s = arguments
    run = RecordedRun(new_system(setup, hosts, number))
    engine = run.system.engine
    random = chance(setup, "pairs", hosts, number, t_on_s)
    for pair in range(setup.pairs):
        subscriber, publisher = random.sample(range(setup.brokers), 2)
        published_ms = random.random() * t_on_s * 1_000
        started = engine.now
        event = Publication(f"e{pair}", _POINT, publisher)
        run.subscribe(subscriber, f"s{pair}", _WHAT)
        engine.at(started + published_ms, run.publish, event)
        engine.at(started + t_on_s * 1_000, run.unsubscribe, subscriber, f"s{pair}")
        run.settle()
    check_history(run, f"pairs on {hosts} hosts, topology {number}, T_ON {t_on_s:.1f} s")
    return len(run.deliveries)


# --- from measurements to results -----------------------------------------------------------------


def _rates(hosts: int, brokers: int, sub: Floats, diff: Floats) -> Rates:
    """T is the longest delay. The areas include the source, as f(0) = 1/N does."""
    t_sub_s, t_diff_s = float(sub.max()), float(diff.max())
    reached_s = t_sub_s - float(sub.mean()), t_diff_s - float(diff.mean())
    others = brokers / (brokers - 1)
    return Rates(
        hosts=hosts,
        s=subscription_rate(t_sub_s, reached_s[0], brokers),
        r=notification_rate(t_diff_s, float(diff.mean()), brokers),
        t_sub_s=t_sub_s,
        t_diff_s=t_diff_s,
        mean_sub_s=float(sub.mean()) * others,
        mean_diff_s=float(diff.mean()) * others,
        rapidity=rapidity(t_sub_s + t_diff_s, sum(reached_s)),
    )


def _curves(row: Rates, brokers: int, sub: Floats, diff: Floats) -> list[Curve]:
    curves = []
    for name, delays, t_s in (("F", sub, row.t_sub_s), ("G", diff, row.t_diff_s)):
        times = np.linspace(0, t_s, _CURVE_POINTS)
        times[-1] = t_s
        reached = np.searchsorted(np.sort(delays, axis=None), times, side="right") / delays.size
        if name == "F":
            measured, fitted = reached, [f(float(time), brokers, row.s) for time in times]
        else:
            measured, fitted = 1 - reached, [g(float(time), brokers, row.r) for time in times]
        found = tuple(map(float, measured))
        curves.append(Curve(name, row.hosts, tuple(map(float, times)), found, tuple(fitted)))
    return curves


def _loss(setup: Setup, row: Rates, t_on_s: float, counts: tuple[int, ...]) -> Loss:
    times = row.t_sub_s, row.t_diff_s
    return Loss(
        hosts=row.hosts,
        t_on_s=t_on_s,
        published=setup.pairs * setup.topologies,
        delivered=counts,
        d_model=d_by_integrals(t_on_s, *times, setup.brokers, row.s, row.r),
        d_means=d_by_means(t_on_s, row.mean_sub_s, row.mean_diff_s),
        d_002=d_by_rapidity(t_on_s, *times, row.rapidity),
    )
