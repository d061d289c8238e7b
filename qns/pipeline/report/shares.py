"""Shares saved, and what to say where a run has none."""

from __future__ import annotations

from collections.abc import Callable

from qns.pipeline.report.results import Counts, Results
from qns.pipeline.workload.scenario import MAPPINGS
from qns.report.statistics import saved


def saving(column: str, trivial: str) -> Callable[[Counts], float]:
    """A column's share saved of what the trivial solution needs."""
    return lambda counts: saved(counts[trivial], counts[column])


def mappings_of(results: Results) -> tuple[str, ...]:
    """Those of the run; of a generated one both, so that the one left out is told as missing."""
    if results.base and not results.base.workload:
        return results.mappings
    return (*MAPPINGS, *(each for each in results.mappings if each not in MAPPINGS))


def why_missing(results: Results, table: str, mapping: str, option: str) -> str:
    """Why a table has nothing about a mapping, and what to run."""
    if mapping not in results.mappings and results.mappings:
        return f"no {mapping} mapping in this run: --mapping {mapping} or both"
    if results.has(table):
        return f"not computed for the {mapping} mapping in this run: {option}"
    return f"not in this run: {option}"
