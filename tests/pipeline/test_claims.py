"""Claims are judged by the numbers: yes, no, or open with a reason."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from qns.pipeline.report.claims import claims
from qns.pipeline.report.results import Results, scenario_id
from qns.pipeline.workload.scenario import HARD, Scenario, Workload
from qns.report.claim import Claim
from tests.pipeline import synthetic


def judged(
    of: Sequence[Scenario], tables: dict[str, pa.Table], figure: str, words: str = ""
) -> list[Claim]:
    results = Results(tables, synthetic.described(of))
    return [each for each in claims(results) if each.figure == figure and words in each.claim]


def verdicts(found: list[Claim]) -> list[bool | None]:
    return [each.holds for each in found]


def test_scenario_id_follows_from_its_description() -> None:
    scenario = synthetic.scenarios()[0]
    assert scenario_id(scenario.described()) == scenario.id
    assert scenario_id({**scenario.described(), "id": "other"}) == "other"


def test_savings_claims_hold_when_savings_grow_and_reach_the_target() -> None:
    of = synthetic.scenarios()
    tables = {"subscriptions": synthetic.subscriptions(of)}
    assert verdicts(judged(of, tables, "5.8a")) == [True, True, True, True]
    assert verdicts(judged(of, tables, "5.8b")) == [True, True]


def test_claim_names_the_size_where_the_target_is_reached_and_the_larger_part() -> None:
    of = synthetic.scenarios()
    tables = {"subscriptions": synthetic.subscriptions(of)}
    partial, full = judged(of, tables, "5.8a", "75 %")
    assert "from 100 per organisation" in partial.numbers
    assert "mapping alone" in partial.numbers
    assert "from 1,000 per organisation" in full.numbers
    assert "more of it by containment" in full.numbers


def test_savings_claims_fail_when_savings_fall() -> None:
    of = synthetic.scenarios(["full"])
    tables = {"subscriptions": synthetic.subscriptions(of, lambda _, size: 0.5 + size / 1e5)}
    grows = judged(of, tables, "5.8a", "grow")[1]
    assert grows.holds is False
    assert "from 100 to 1,000 it falls" in grows.numbers
    reaches = judged(of, tables, "5.8a", "reach")[1]
    assert reaches.holds is False
    assert "at best, at 100 per organisation" in reaches.numbers


def test_growth_claim_fails_when_savings_only_vary() -> None:
    of = synthetic.scenarios(["full"])
    wavering = synthetic.subscriptions(
        of, lambda scenario, size: 0.5 + (scenario.seed - 1) * (0.05 if size > 100 else -0.05)
    )
    assert judged(of, {"subscriptions": wavering}, "5.8a", "grow")[1].holds is False


def test_claim_about_a_mapping_that_was_not_run_is_open() -> None:
    of = synthetic.scenarios(["partial"])
    found = judged(of, {"subscriptions": synthetic.subscriptions(of)}, "5.8b")
    assert verdicts(found) == [True, None]
    assert "--mapping" in found[1].reason


def test_growth_claim_is_open_with_one_size() -> None:
    of = synthetic.scenarios(sizes=(100,))
    found = judged(of, {"subscriptions": synthetic.subscriptions(of)}, "5.8a", "grow")
    assert verdicts(found) == [None, None]
    assert "--subscriptions" in found[0].reason


def test_spread_claim_holds_when_table_sizes_follow_hosted_classes() -> None:
    of = synthetic.scenarios()
    (found,) = judged(of, {"subscriptions": synthetic.subscriptions(of)}, "5.9")
    assert found.holds is True
    assert found.mapping == "partial"
    assert "1.00" in found.numbers


def test_spread_claim_fails_when_table_sizes_fall_with_hosted_classes() -> None:
    of = synthetic.scenarios(["partial"])
    table = synthetic.subscriptions(of)
    rows = [
        {**row, "rows_both": 1_000 - len(of[0].hosts[row["producer"]])} for row in table.to_pylist()
    ]
    reversed_rows = pa.Table.from_pylist(rows, table.schema)
    (found,) = judged(of, {"subscriptions": reversed_rows}, "5.9")
    assert found.holds is False
    assert "-1.00" in found.numbers


def test_spread_claim_is_open_when_all_host_everything() -> None:
    of = synthetic.scenarios(["full"])
    (found,) = judged(of, {"subscriptions": synthetic.subscriptions(of)}, "5.9")
    assert found.holds is None
    assert "--mapping partial" in found.reason


@pytest.mark.parametrize(("sent", "holds"), [(0.3, True), (0.5, True), (0.6, False)])
def test_notification_claim_holds_up_to_half_of_delivered(sent: float, holds: bool) -> None:
    of = synthetic.scenarios(seeds=1)
    tables = {"notifications": synthetic.notifications(of, sent)}
    found = judged(of, tables, "5.10")
    assert verdicts(found) == [holds, holds]
    assert f"{100 * sent:.1f} % of delivered at 1,000 publications" in found[0].numbers


def test_exact_merging_is_judged_separately_in_rows_terms_and_bytes() -> None:
    of = synthetic.scenarios(["partial"])
    shares = {"rows": 0.5, "terms": 1.0, "bytes": 1.2, "messages": 1.0}
    tables = {
        "subscriptions": synthetic.subscriptions(of),
        "beyond": synthetic.beyond(of, shares),
    }
    found = [each for each in judged(of, tables, "exact merging") if each.mapping == "partial"]
    assert verdicts(found) == [True, False, False]
    assert "50.0 % fewer" in found[0].numbers
    assert "−20.0 % fewer" in found[2].numbers


def test_trees_are_judged_by_sends_and_by_connections() -> None:
    of = synthetic.scenarios()
    table = synthetic.trees(of, {0: 9, 2: 9, 4: 5}, {0: 9, 2: 2, 4: 4})
    found = judged(of, {"trees": table}, "trees")
    assert verdicts(found) == [True, True, False, False]
    assert "3 with fan-out 2" in found[2].numbers
    table = synthetic.trees(of, {0: 9, 2: 4}, {0: 9, 2: 3})
    assert verdicts(judged(of, {"trees": table}, "trees")) == [False, False, True, True]


@pytest.mark.parametrize(("exponent", "holds"), [(1.05, True), (1.1, True), (1.15, False)])
def test_cost_is_judged_by_its_exponent(exponent: float, holds: bool) -> None:
    of = synthetic.scenarios(sizes=(1_000, 10_000, 100_000))
    default, hard = judged(of, {"cost": synthetic.cost(of, exponent - 1e-9)}, "cost")
    assert default.holds is holds
    assert f"{exponent:.3f}" in default.numbers
    assert hard.holds is None
    assert "--hard" in hard.reason


def test_hard_workload_has_its_own_exponent() -> None:
    sizes = (1_000, 10_000, 100_000)
    default = synthetic.scenarios(sizes=sizes)
    hard = synthetic.scenarios(sizes=sizes, workload=HARD)
    table = pa.concat_tables([synthetic.cost(default, 1.0), synthetic.cost(hard, 1.25)])
    assert verdicts(judged([*default, *hard], {"cost": table}, "cost")) == [True, True]


def test_cost_claim_is_open_when_fixed_costs_dominate() -> None:
    of = synthetic.scenarios(sizes=(1_000, 2_000, 5_000))
    default, _ = judged(of, {"cost": synthetic.cost(of, 0.4)}, "cost")
    assert default.holds is None
    assert "fixed costs" in default.reason


def test_cost_claim_fails_when_cost_rises_only_in_the_last_decade() -> None:
    of = synthetic.scenarios(sizes=(1_000, 10_000, 100_000, 200_000, 500_000, 1_000_000))
    table = synthetic.cost(of, 1.0)
    rows = [
        {**row, "seconds": 1 + (row["arrived"] / 1e5) ** 1.4 if row["arrived"] > 1e4 else 1.0}
        for row in table.to_pylist()
    ]
    default, _ = judged(of, {"cost": pa.Table.from_pylist(rows, table.schema)}, "cost")
    assert default.holds is False
    assert "in the last decade" in default.numbers


def test_cost_claim_is_open_with_too_few_sizes() -> None:
    of = synthetic.scenarios(sizes=(100, 1_000, 10_000))
    default, _ = judged(of, {"cost": synthetic.cost(of, 1.0)}, "cost")
    assert default.holds is None
    assert "--subscriptions" in default.reason


def test_without_tables_every_claim_is_open_with_a_reason() -> None:
    found = claims(Results({}, []))
    assert {each.holds for each in found} == {None}
    assert all(each.reason for each in found)


def test_base_is_the_largest_setting_closest_to_the_others() -> None:
    main = synthetic.scenarios(workload=Workload(zipf=2.0))
    varied = [
        *synthetic.scenarios(workload=Workload(zipf=1.0), sizes=(10_000,)),
        *synthetic.scenarios(workload=Workload(zipf=2.0, values=50), sizes=(10_000,)),
    ]
    of = [*varied, *main]
    results = Results({"subscriptions": synthetic.subscriptions(of)}, synthetic.described(of))
    assert results.base is not None
    assert dict(results.base.workload)["zipf"] == 2.0
    assert dict(results.base.workload)["values"] == Workload().values


def test_rows_of_two_overlapping_scenarios_are_counted_once() -> None:
    long = synthetic.scenarios(["full"], seeds=2)
    short = synthetic.scenarios(["full"], seeds=2, sizes=(100,))
    of = [*long, *short]
    results = Results({"subscriptions": synthetic.subscriptions(of)}, synthetic.described(of))
    assert results.sizes("subscriptions", results.base, "full")[100][0]["changes"] == 90 * 100
