"""Catalogue: all strategies of the lab by name, and the setting in which they are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from qns.federation.document import DEFAULT_CAPABILITY
from qns.lab.simulated.history import RecordedRun
from qns.lab.simulated.measure import Run
from qns.lab.simulated.network import Network, flat
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Strategy, System
from qns.lab.strategies.cbr import CbrBroker
from qns.lab.strategies.flooding import NotificationFloodingBroker, SubscriptionFloodingBroker
from qns.lab.strategies.qns_strategy import DIRECT, QnsRun
from qns.lab.strategies.rendezvous import RendezvousBroker, Ring
from qns.lab.strategies.socbr import Options, socbr

BOUND_MS: Final = 100.0
"""d_b of pbSOCBR that the thesis recommends: half the diameter of its networks."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Network, overlay and workload of a comparison; the seed determines all of them."""

    brokers: int
    seed: int
    fan_out: int = 10
    diffusion_fan_out: int = DEFAULT_CAPABILITY
    """The fan-out of QNS's diffusion trees."""

    def random(self, purpose: str) -> Random:
        """A random generator for one purpose, independent of those for others."""
        return Random(f"{self.seed} {purpose}")  # noqa: S311

    def network(self) -> Network:
        return flat(max(2, self.brokers), self.random("network"))

    def overlay(self) -> Overlay:
        """Makes a new overlay each time, because some strategies change it."""
        return Overlay.random_tree(self.brokers, self.fan_out, self.random("overlay"))

    def run(self, strategy: Strategy) -> RecordedRun:
        system = System(self.network(), self.overlay(), strategy, self.random("hosts"))
        return RecordedRun(system)


MakeRun = Callable[[Setting], Run]


def _brokers(strategy: Strategy) -> MakeRun:
    return lambda setting: setting.run(strategy)


def _rendezvous(setting: Setting) -> Run:
    ring = Ring(setting.brokers, setting.random("ring"))
    return setting.run(partial(RendezvousBroker, ring=ring))


def _qns_direct(setting: Setting) -> Run:
    return QnsRun(setting.network(), setting.brokers, setting.random("hosts"), DIRECT)


def _qns_tree(setting: Setting) -> Run:
    fan_out = setting.diffusion_fan_out
    return QnsRun(setting.network(), setting.brokers, setting.random("hosts"), fan_out)


STRATEGIES: Final[dict[str, MakeRun]] = {
    "subscription flooding": _brokers(SubscriptionFloodingBroker),
    "notification flooding": _brokers(NotificationFloodingBroker),
    "CBR": _brokers(CbrBroker),
    "SOCBR": _brokers(socbr()),
    "pbSOCBR": _brokers(socbr(Options(bound_ms=BOUND_MS))),
    "rendezvous": _rendezvous,
    "QNS direct": _qns_direct,
    "QNS tree": _qns_tree,
}
"""Name -> how a run of the strategy is made, in the order of table 2.1."""
