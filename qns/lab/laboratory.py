"""Laboratory: the figures of a report, the experiment that each needs, and running them.

Work is distributed by seed and variant over an executor. Results are in the order of the work, so
they do not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from qns import __version__
from qns.errors import NameNotKnown, ValueRefused
from qns.lab.data import data_files
from qns.lab.experiments.associativity_cost import associativity_cost
from qns.lab.experiments.comparison import LocalityRow, StrategyRow, compare, locality
from qns.lab.experiments.findings import Findings, SeededLocality, SeededStrategy, ShapedWindow
from qns.lab.experiments.loss_experiment import experiment
from qns.lab.experiments.self_organisation import (
    FLAT,
    NEAR,
    TRANSIT_STUB,
    new_network,
    on_shapes,
    organise,
)
from qns.lab.experiments.setups import LocalityCase, Setups
from qns.lab.folder import new_folder
from qns.lab.report.claims import claims
from qns.lab.report.rendering import render
from qns.lab.simulated.workload import Shape
from qns.lab.strategies.catalogue import STRATEGIES
from qns.report.claim import Claim

FIGURES: Final = {
    **dict.fromkeys(("3.6", "3.7", "3.8", "3.9"), ""),
    **dict.fromkeys(("3.10", "table-3.1", "3.11", "3.12", "002-9"), "loss"),
    "002-10": "",
    "4.2": "locality",
    **dict.fromkeys(("4.12", "4.13", "4.14", "4.15", "4.16"), "flat"),
    **dict.fromkeys(("4.17", "4.18", "4.19", "4.20"), "transit-stub"),
    "shapes": "shapes",
    "table-2.1": "strategies",
    "associativity": "cost",
}
"""Figure -> the experiment that it needs; empty for a formula."""
ALL: Final = "all"

OnProgress = Callable[[str], None]
"""Progress callback: receives the name of the experiment after each piece of work."""


def figures_of(words: Iterable[str]) -> tuple[str, ...]:
    """Returns the figures that these words name, in the order of the report."""
    asked = set()
    for word in words:
        if word == ALL:
            asked |= {*FIGURES}
        elif word in FIGURES:
            asked.add(word)
        else:
            raise NameNotKnown("figure", word, [*FIGURES, ALL])
    if not asked:
        raise ValueRefused("no figure", remedy=f"name some, or {ALL}")
    return tuple(figure for figure in FIGURES if figure in asked)


def make_report(
    figures: Sequence[str],
    out: Path,
    setups: Setups,
    executor: Executor | None = None,
    on_progress: OnProgress = lambda _: None,
) -> list[Claim]:
    """Runs the experiments of the figures and writes the complete report, or nothing."""
    asked = {
        "qns": __version__,
        "figures": list(figures),
        "quick": setups.is_quick,
        "seeds": [setups.organisation.seeds, setups.seeds],
    }
    with new_folder(out, asked) as save:
        findings = explore(figures, setups, executor, on_progress)
        judged = [each for each in claims(findings) if each.figure in figures]
        judged.sort(key=lambda each: figures.index(each.figure))
        save(data_files(findings))
        save(render(figures, findings, judged))
        on_progress("report")
    return judged


# --- experiments ----------------------------------------------------------------------------------


def steps(figures: Sequence[str], setups: Setups) -> int:
    """The number of progress calls that `make_report` makes."""
    each = {
        "": 0,
        "loss": setups.loss.topologies
        * (len(setups.loss.hosts) + len(setups.loss.loss_hosts) * len(setups.loss.t_on)),
        "locality": setups.seeds * len(setups.locality_cases),
        "flat": len(setups.organisation.work(FLAT)),
        "transit-stub": 2 * len(setups.proximity.work(TRANSIT_STUB)),
        "shapes": len(setups.shape_setup.work_on_shapes(setups.shapes)),
        "strategies": setups.seeds * len(STRATEGIES),
        "cost": 1,
    }
    return sum(each[need] for need in _needs(figures)) + 1


def explore(
    figures: Sequence[str],
    setups: Setups,
    executor: Executor | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Findings:
    """Runs the experiments that the figures need."""
    found = Findings(setups)
    for need in _needs(figures):
        do = _Distribution(need, executor, on_progress)
        if need == "loss":
            found = replace(found, loss=experiment(setups.loss, do))
        elif need == "locality":
            found = replace(found, locality=_locality(setups, do))
        elif need == "flat":
            found = replace(found, flat=tuple(organise(setups.organisation, FLAT, do)))
        elif need == "transit-stub":
            found = replace(
                found,
                transit_stub=tuple(organise(setups.proximity, TRANSIT_STUB, do)),
                near=tuple(organise(setups.proximity, NEAR, do)),
                diameters_ms=_diameters_ms(setups),
            )
        elif need == "shapes":
            shaped = on_shapes(setups.shape_setup, setups.shapes, do)
            found = replace(found, shapes=tuple(ShapedWindow(*each) for each in shaped))
        elif need == "strategies":
            found = replace(found, strategies=_strategies(setups, do))
        else:  # it measures time, so it runs alone, after all distributed work
            found = replace(found, costs=tuple(associativity_cost(setups.cost_sizes)))
            on_progress("associativity")
    return found


def _needs(figures: Sequence[str]) -> list[str]:
    return [need for need in dict.fromkeys(FIGURES[figure] for figure in figures) if need]


class _Distribution:
    """A `map` on the executor, if there is one, that reports each finished piece of work."""

    def __init__(self, name: str, executor: Executor | None, on_progress: OnProgress) -> None:
        self.name = name
        self.executor = executor
        self.on_progress = on_progress

    def __call__(self, function: Callable[[Any], Any], work: Iterable[Any]) -> list[Any]:
        pieces = list(work)
        results = [None] * len(pieces)
        if self.executor is None:
            for number, piece in enumerate(pieces):
                results[number] = function(piece)
                self.on_progress(self.name)
            return results
        numbers = {self.executor.submit(function, each): nth for nth, each in enumerate(pieces)}
        for future in as_completed(numbers):
            results[numbers[future]] = future.result()
            self.on_progress(self.name)
        return results


def _locality(setups: Setups, do: _Distribution) -> tuple[SeededLocality, ...]:
    # The largest cases start first, because they take longest.
    cases = sorted(setups.locality_cases, reverse=True)
    work = [(setups, case, seed) for case in cases for seed in range(setups.seeds)]
    found = {piece[1:]: rows for piece, rows in zip(work, do(locality_of_seed, work), strict=True)}
    return tuple(
        SeededLocality(case, row)
        for case in setups.locality_cases
        for seed in range(setups.seeds)
        for row in found[case, seed]
    )


def locality_of_seed(work: tuple[Setups, LocalityCase, int]) -> list[LocalityRow]:
    """Runs one case with one seed. It can be pickled, so that other processes can run it."""
    setups, case, seed = work
    return locality(
        setups.brokers,
        case.subscriptions,
        setups.locality_points,
        seeds=[seed],
        localities=setups.localities,
        fan_out=setups.fan_out,
        shape=Shape(longest=case.longest),
    )


def _strategies(setups: Setups, do: _Distribution) -> tuple[SeededStrategy, ...]:
    names = list(STRATEGIES)
    work = [(setups, name, seed) for name in reversed(names) for seed in range(setups.seeds)]
    found = {piece[1:]: row for piece, row in zip(work, do(strategy_of_seed, work), strict=True)}
    return tuple(
        SeededStrategy(seed, found[name, seed]) for name in names for seed in range(setups.seeds)
    )


def strategy_of_seed(work: tuple[Setups, str, int]) -> StrategyRow:
    setups, name, seed = work
    (row,) = compare(
        setups.setting(seed),
        setups.strategy_subscriptions,
        setups.strategy_publications,
        strategies={name: STRATEGIES[name]},
    )
    return row


def _diameters_ms(setups: Setups) -> tuple[float, ...]:
    setup = setups.proximity
    networks = (new_network(TRANSIT_STUB, setup.brokers, seed) for seed in range(setup.seeds))
    return tuple(each.diameter_ms for each in networks)
