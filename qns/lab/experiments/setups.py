"""Set-ups: the sizes of the experiments of a full and of a quick report, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from qns.lab.experiments import associativity_cost, loss_experiment, self_organisation
from qns.lab.simulated.workload import Shape
from qns.lab.strategies.catalogue import Setting

ENOUGH_SEEDS: Final = 20
"""Seeds for figures 4.12 to 4.20; the thesis has five. `REASONS` explains the difference."""


class LocalityCase(NamedTuple):
    """One panel of fig. 4.2."""

    subscriptions: int
    longest: float

    @property
    def name(self) -> str:
        return f"{self.subscriptions:,} subscriptions, sides up to {self.longest:,.0f}"


@dataclass(frozen=True, slots=True)
class Setups:
    loss: loss_experiment.Setup = field(default_factory=loss_experiment.Setup)
    organisation: self_organisation.Setup = field(
        default_factory=lambda: self_organisation.Setup(seeds=ENOUGH_SEEDS)
    )
    proximity: self_organisation.Setup = field(
        default_factory=lambda: self_organisation.Setup(subscriptions=500, seeds=ENOUGH_SEEDS)
    )
    """The set-up on transit-stub networks."""
    shapes: Mapping[str, Shape] = field(default_factory=lambda: dict(self_organisation.SHAPES))
    shape_setup: self_organisation.Setup = field(
        default_factory=lambda: self_organisation.Setup(subscriptions=500)
    )
    seeds: int = 5
    """The number of seeds for fig. 4.2 and table 2.1."""
    brokers: int = 100
    fan_out: int = 10
    localities: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    locality_cases: tuple[LocalityCase, ...] = (
        LocalityCase(500, 200.0),
        LocalityCase(10_000, 200.0),
        LocalityCase(10_000, 500.0),
    )
    locality_points: int = 2_000
    strategy_subscriptions: int = 200
    strategy_publications: int = 200
    cost_sizes: tuple[int, ...] = associativity_cost.SIZES
    is_quick: bool = False

    def quick(self) -> Setups:
        """Set-ups for the same figures that take less than two minutes."""
        few = self_organisation.Setup().quick()
        chosen = ("sides ≤ 200", "sides ≤ 500, quarters")
        return replace(
            self,
            loss=self.loss.quick(),
            organisation=replace(few, subscriptions=240),
            proximity=few,
            shapes={name: self.shapes[name] for name in chosen},
            shape_setup=few,
            seeds=2,
            brokers=40,
            fan_out=6,
            localities=(0.0, 0.5, 1.0),
            locality_cases=(LocalityCase(200, 200.0), LocalityCase(2_000, 500.0)),
            locality_points=500,
            strategy_subscriptions=60,
            strategy_publications=60,
            cost_sizes=(100, 1_000),
            is_quick=True,
        )

    def with_seeds(self, seeds: int) -> Setups:
        """Changes the seeds of all experiments but loss, which has topologies instead."""
        return replace(
            self,
            organisation=replace(self.organisation, seeds=seeds),
            proximity=replace(self.proximity, seeds=seeds),
            shape_setup=replace(self.shape_setup, seeds=seeds),
            seeds=seeds,
        )

    def setting(self, seed: int) -> Setting:
        return Setting(self.brokers, seed, self.fan_out)


REASONS: Final = (
    (
        "100 brokers, fan-out 10 in a full run",
        "as in thesis 4.5.2; a quick run has 40 brokers (50 for loss) and fan-out 6",
    ),
    (
        f"{ENOUGH_SEEDS} seeds for figures 4.12 to 4.20, 5 for the others in a full run",
        "the thesis has 5 everywhere. With 5, four claims of those figures stayed open, and SOCBR "
        "gains more in the first 5 seeds than in the rest: its gain varies much between seeds. A "
        "quick run has 2; --seeds sets any number",
    ),
    (
        "handling: 20 ms a subscription, 10 ms a notification",
        "the thesis says only that updating tables takes longer than matching: an update looks up "
        "the table (as long as a match) and changes it (as long again)",
    ),
    (
        "rectangles: centres in 10 × 10 cells of Zipf popularity (exponent 1), sides uniform up to "
        "200 of 1,000",
        "the thesis says Zipf and uniform without numbers; a rectangle is 1 % of the space on "
        "average, so that a hundred of them do not cover it. The figure 'shapes' shows the "
        "effect of other values",
    ),
    (
        "1,500 subscriptions on flat networks, 500 on transit-stub",
        "the thesis does not say. In a pilot the curve of figure 4.15 bent only after about 1,000, "
        "so the run is that long; latency on transit-stub networks showed no trend with the number",
    ),
    (
        "2,000 notifications at the end of each window of 50 subscriptions",
        "publications do not change the tree, so one run gives the results for every ratio R; hops "
        "are computed on the current tree (a test compares them with the simulated hops)",
    ),
    (
        "no time to handle messages in chapter 4",
        "its latencies are those of the network alone: the thesis gives no handling times there",
    ),
    (
        "one subscription at a time",
        "each is settled before the next. Concurrent reconfigurations have their own tests",
    ),
)
"""Each chosen parameter with its reason. Every report shows them."""
