"""Merge job: one organisation's rows of the table `subscriptions`, and their cost.

Consumers do not influence each other, so each organisation is a separate task.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pyarrow as pa

from qns.pipeline.cost import cost_row
from qns.pipeline.merging.merge_pass import merge_pass
from qns.pipeline.tables import COST, SUBSCRIPTIONS, Tables
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario


def merge_job(scenario: Scenario, organisation: str) -> Tables:
    """Returns the organisation's rows of SUBSCRIPTIONS and of COST."""
    rows: list[dict[str, Any]] = []
    cost: list[dict[str, Any]] = []
    common = {**scenario.columns(), "organisation": organisation}
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
