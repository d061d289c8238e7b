"""Findings: all that the experiments of one report have found, and nothing about how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from qns.lab.associativity_cost import Cost
from qns.lab.comparison import LocalityRow, StrategyRow
from qns.lab.loss_experiment import Results
from qns.lab.self_organisation import Window
from qns.lab.setups import LocalityCase, Setups


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
    """What was not asked for is empty."""

    setups: Setups
    loss: Results | None = None
    flat: tuple[Window, ...] = ()
    transit_stub: tuple[Window, ...] = ()
    near: tuple[Window, ...] = ()
    """On the same networks, from trees of near brokers."""
    diameters_ms: tuple[float, ...] = ()
    """Of the transit-stub networks, by seed."""
    shapes: tuple[ShapedWindow, ...] = ()
    locality: tuple[SeededLocality, ...] = ()
    strategies: tuple[SeededStrategy, ...] = ()
    costs: tuple[Cost, ...] = ()
