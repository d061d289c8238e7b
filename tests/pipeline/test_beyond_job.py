"""Counts of exact merging on top of containment, against exact merging of whole views."""

from __future__ import annotations

from qns.cbr.exact_merge import ExactMerge
from qns.cbr.oracle import producer_view
from qns.d2q.shipped import WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.pipeline.merging.beyond_job import MOST_ARRIVALS, beyond_job
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of
from tests.pipeline.merging import merge

DENSE = Workload(constrained=0.25, quality_constrained=0.05, values=4, sources_given=0.3)
SCENARIO = Scenario(WEATHER, hosts_of(WEATHER, 4, "partial"), "partial", 7, (30, 150), 0.2, DENSE)


def test_rows_terms_and_bytes_equal_those_of_exactly_merged_views() -> None:
    live = {}
    for operation in Generator(SCENARIO).operations("Met02", 150):
        if operation.subscription is None:
            del live[operation.id]
        else:
            live[operation.id] = operation.subscription
    rows = beyond_job(SCENARIO, "Met02")["beyond"].to_pylist()
    assert [(row["producer"], row["arrived"]) for row in rows] == [
        (name, arrived) for arrived in (30, 150) for name in ("Met01", "Met03", "Met04")
    ]
    for row in rows[3:]:
        view = producer_view(live.values(), row["producer"], SCENARIO.hosts[row["producer"]])
        exact = ExactMerge(view).subscriptions
        for name, some in (("both", view), ("exact", exact)):
            assert row[f"rows_{name}"] == len(set(some))
            assert row[f"bytes_{name}"] == sum(
                len(write_subscription(one, WEATHER)) for one in some
            )
            assert row[f"terms_{name}"] == sum(
                values.terms for one in some for values in one.constraints.values()
            )
        assert row["rows_exact"] <= row["rows_both"] <= row["rows_mapping"]
        assert row["messages_exact"] <= row["messages_both"]
    assert sum(row["rows_exact"] for row in rows) < sum(row["rows_both"] for row in rows)


def test_columns_of_both_jobs_are_equal() -> None:
    columns = ["producer", "arrived", "messages_both", "rows_both", "rows_mapping"]
    merged = [{name: row[name] for name in columns} for row in merge(SCENARIO, "Met01")]
    assert beyond_job(SCENARIO, "Met01")["beyond"].select(columns).to_pylist() == merged


def test_checkpoints_beyond_the_most_arrivals_are_omitted() -> None:
    scenario = Scenario(
        WEATHER, hosts_of(WEATHER, 2, "full"), "full", 1, (10, MOST_ARRIVALS + 1), 0.0, DENSE
    )
    assert set(beyond_job(scenario, "Met01")["beyond"]["arrived"].to_pylist()) == {10}
