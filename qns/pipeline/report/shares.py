"""Shares: the share saved, and the reason if a run has no numbers for it."""

from __future__ import annotations

from collections.abc import Callable

from qns.pipeline.report.results import Counts, Results
from qns.pipeline.workload.scenario import MAPPINGS
from qns.report.statistics import saved


def saving(column: str, trivial: str) -> Callable[[Counts], float]:
    """The share of the trivial solution's column that another column saves."""
    return lambda counts: saved(counts[trivial], counts[column])


def mappings_of(results: Results) -> tuple[str, ...]:
    """The mappings of the run; of a generated run both, so that a missing one is reported."""
    if results.base and not results.base.workload:
        return results.mappings
    return (*MAPPINGS, *(each for each in results.mappings if each not in MAPPINGS))


def why_missing(results: Results, table: str, mapping: str, option: str) -> str:
    """The reason why a table has no rows for a mapping, and the option to run."""
    if mapping not in results.mappings and results.mappings:
        return f"no {mapping} mapping in this run: --mapping {mapping} or both"
    if results.has(table):
        return f"not computed for the {mapping} mapping in this run: {option}"
    return f"not in this run: {option}"
