"""The pure SQL of the cross-check gives the counts of the compiled code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qns.d2q.shipped import AGENCIES, WEATHER
from qns.pipeline.datasets import cross_check
from qns.pipeline.datasets.cross_check import counts_in_sql
from qns.pipeline.datasets.generated import generated
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of
from tests.pipeline.merging import merge

ROOT = Path(__file__).parents[2]
LOOSE = Workload(constrained=0.3, values=4, quality_values=3, only=0.3, sources_given=0.4)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(WEATHER, hosts_of(WEATHER, 4, "partial"), "partial", 5, (150,), 0.0, LOOSE),
        Scenario(AGENCIES, hosts_of(AGENCIES, 3, "full"), "full", 6, (120,), 0.0, LOOSE),
    ],
    ids=lambda one: f"{one.schema.name}-{one.mapping}",
)
def test_sql_gives_the_counts_of_the_merge_pass(spark: SparkSession, scenario: Scenario) -> None:
    columns = ("organisation", "producer", "messages_mapping", "messages_both", "rows_both")
    found = counts_in_sql(generated(scenario, spark)).select(*columns).collect()
    expected = {
        tuple(row[name] for name in columns)
        for organisation in scenario.organisations
        for row in merge(scenario, organisation)
        if row["messages_mapping"]  # SQL has no row where nothing is sent
    }
    assert {tuple(row) for row in found} == expected
    assert sum(row["rows_both"] for row in found) < sum(row["messages_both"] for row in found)


def test_page_shows_the_queries_that_are_tested() -> None:
    page = (ROOT / "docs/merging-in-sql.md").read_text(encoding="utf-8")
    shown = [each.strip() for each in re.findall(r"```sql\n(.*?)```", page, re.S)]
    queries = [cross_check._NEEDED, cross_check._CONTAINED, cross_check._COUNTS]
    assert shown == [each.strip() for each in queries]
