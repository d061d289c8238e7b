"""The counts as a DataFrame do not depend on how Spark cuts the workload."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from qns.d2q.shipped import WEATHER
from qns.pipeline.merging import merge_frame
from qns.pipeline.merging.merge_frame import merged, split
from qns.pipeline.workload.generator import BLOCK
from qns.pipeline.workload.scenario import HARD, Scenario, Workload, hosts_of
from tests.pipeline.merging import merge

pytestmark = pytest.mark.slow

LONG = 3 * BLOCK + 100


def scenario_of(churn: float, workload: Workload, *checkpoints: int) -> Scenario:
    hosts = hosts_of(WEATHER, 3, "partial")
    return Scenario(WEATHER, hosts, "partial", 4, checkpoints, churn, workload)


def counts(spark: SparkSession, scenario: Scenario, part_blocks: int) -> pa.Table:
    found = split(merged(scenario, spark, part_blocks).toArrow())["subscriptions"]
    return found.sort_by([(name, "ascending") for name in ("arrived", "organisation", "producer")])


@pytest.mark.parametrize("workload", [Workload(), HARD], ids=["default", "hard"])
@pytest.mark.parametrize("churn", [0.0, 0.3])
def test_counts_do_not_depend_on_parts_and_tasks(
    spark: SparkSession, churn: float, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = scenario_of(churn, workload, 100, BLOCK + 5, LONG)
    expected = counts(spark, scenario, 64)
    assert expected.num_rows == 3 * 3 * 2
    monkeypatch.setattr(merge_frame, "_ROWS_OF_TASK", 1)
    monkeypatch.setattr(merge_frame, "_PASSED_OF_TASK", 1)
    for part_blocks in (1, 2):
        assert counts(spark, scenario, part_blocks) == expected


def test_counts_equal_those_without_spark(spark: SparkSession) -> None:
    scenario = scenario_of(0.2, Workload(values=4), 20, 500)
    found = merged(scenario, spark).drop("seconds", "peak_bytes").toArrow().to_pylist()
    expected = [row for name in scenario.organisations for row in merge(scenario, name)]
    for row in expected:
        del row["seconds"], row["peak_bytes"]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_cost_has_a_row_for_each_organisation_and_checkpoint(spark: SparkSession) -> None:
    scenario = scenario_of(0.0, Workload(), 100, LONG)
    cost = split(merged(scenario, spark, 1).toArrow())["cost"].to_pylist()
    assert sorted((row["organisation"], row["arrived"]) for row in cost) == [
        (name, arrived) for name in scenario.organisations for arrived in (100, LONG)
    ]
    for name in scenario.organisations:
        early, late = (row["seconds"] for row in cost if row["organisation"] == name)
        assert 0 <= early < late
    assert all(2**24 < row["peak_bytes"] < 2**34 for row in cost)
