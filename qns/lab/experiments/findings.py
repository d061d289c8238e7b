"""Findings: the results of all experiments of one report, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from qns.lab.experiments.associativity_cost import Cost
from qns.lab.experiments.comparison import LocalityRow, StrategyRow
from qns.lab.experiments.loss_experiment import Results
from qns.lab.experiments.self_organisation import Window
from qns.lab.experiments.setups import LocalityCase, Setups


class SeededStrategy(NamedTuple):
    seed: int
    row: StrategyRow


class SeededLocality(NamedTuple):
    case: LocalityCase
    row: LocalityRow


class ShapedWindow(NamedTuple):
    shape: str
    window: Window


@dataclass(frozen=True, slots=True)
class Findings:
    """The fields of experiments that were not run are empty."""

    setups: Setups
    loss: Results | None = None
    flat: tuple[Window, ...] = ()
    transit_stub: tuple[Window, ...] = ()
    near: tuple[Window, ...] = ()
    """Runs on the same networks whose first tree links near brokers."""
    diameters_ms: tuple[float, ...] = ()
    """The diameters of the transit-stub networks, by seed."""
    shapes: tuple[ShapedWindow, ...] = ()
    locality: tuple[SeededLocality, ...] = ()
    strategies: tuple[SeededStrategy, ...] = ()
    costs: tuple[Cost, ...] = ()
