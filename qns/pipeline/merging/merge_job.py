"""Merge job: one organisation's part of the table `subscriptions`, and what it took.

Organisations do not influence each other as consumers, so each is a task of its own.
"""

from __future__ import annotations

import resource
import sys
from time import perf_counter
from typing import Any

import pyarrow as pa

from qns.pipeline.merging.merge_pass import merge_pass
from qns.pipeline.tables import COST, SUBSCRIPTIONS
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario

Tables = dict[str, pa.Table]


def merge_job(scenario: Scenario, organisation: str) -> Tables:
    rows: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []
    common = {**columns_of(scenario), "organisation": organisation}
    started = perf_counter()
    for found in merge_pass(Generator(scenario), organisation):
        cost.append(cost_row(common, "merge", found.arrived, perf_counter() - started))
        rows += [
            {
                **common,
                "producer": producer,
                "arrived": found.arrived,
                "changes": found.changes,
                "live": found.live,
                "messages_mapping": found.messages_mapping[bit],
                "messages_containment": found.messages_containment,
                "messages_both": found.messages_both[bit],
                "rows_mapping": found.rows_mapping[bit],
                "rows_containment": found.rows_containment,
                "rows_both": found.rows_both[bit],
            }
            for bit, producer in enumerate(scenario.organisations)
            if producer != organisation
        ]
    return {
        "subscriptions": pa.Table.from_pylist(rows, SUBSCRIPTIONS),
        "cost": pa.Table.from_pylist(cost, COST),
    }


def columns_of(scenario: Scenario) -> dict[str, Any]:
    """What every row of every table tells of its scenario."""
    return {
        "scenario": scenario.id,
        "mapping": scenario.mapping,
        "organisations": len(scenario.organisations),
        "churn": scenario.churn,
        "seed": scenario.seed,
    }


def cost_row(common: dict[str, Any], job: str, arrived: int, seconds: float) -> dict[str, Any]:
    return {
        **common,
        "job": job,
        "arrived": arrived,
        "peak_bytes": peak_bytes(),
        "seconds": seconds,
    }


def peak_bytes() -> int:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
