"""Plans: the scenarios of a run, and refused parameters."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from qns.d2q.shipped import AGENCIES
from qns.errors import QnsError
from qns.pipeline.run.plan import VARIATIONS, Plan, points_between, variations
from qns.pipeline.workload.scenario import HARD, Workload


def queries_of(plan: Plan) -> Counter[str]:
    """How many queries there are of each kind, which is the first word of their labels."""
    every = [query for queries in plan.groups.values() for query in queries]
    return Counter(re.split(r"\W", query.label)[0] for query in every)


def test_points_are_added_between_the_numbers() -> None:
    assert points_between((100, 1_000, 3_000)) == (100, 200, 500, 1_000, 2_000, 3_000)
    assert points_between((7, 30)) == (7, 10, 20, 30)
    assert points_between((1_000,)) == (100, 200, 500, 1_000)
    assert points_between((30,)) == (30,)


def test_default_plan_is_the_set_up_of_the_thesis() -> None:
    plan = Plan()
    assert len(plan.scenarios) == 2 * 5
    assert queries_of(plan) == {"merging": 10, "notifications": 10}
    assert {len(scenario.hosts) for scenario in plan.scenarios} == {10}
    assert {scenario.subscriptions for scenario in plan.scenarios} == {10_000}
    assert Plan().described() == plan.described()


def test_options_add_scenarios_and_queries() -> None:
    small = {"subscriptions": (10,), "seeds": 2, "organisations": (2, 3)}
    plain = Plan(**small)
    assert queries_of(plain)["merging"] == 2 * 2 * 2
    assert queries_of(Plan(**small, exact_merging=True))["exact"] == 2 * 2 * 2
    assert len(Plan(**small, churns=(0.0, 0.2)).scenarios) == 2 * len(plain.scenarios)
    hard = [each for each in Plan(**small, hard=True).scenarios if each.workload == HARD]
    assert len(hard) == len(plain.scenarios)
    assert not queries_of(Plan(**small, publications=()))["notifications"]


def test_each_parameter_is_varied_alone() -> None:
    base = Workload()
    for varied in variations(base):
        changed = [name for name in VARIATIONS if getattr(varied, name) != getattr(base, name)]
        assert len(changed) == 1
    assert {*VARIATIONS} == {*Workload.__dataclass_fields__}
    plan = Plan(subscriptions=(100, 100_000), seeds=2, sensitivity=True)
    others = [each for each in plan.scenarios if each.workload != base]
    assert len(others) == 2 * len(list(variations(base)))
    assert {each.checkpoints for each in others} == {(10_000,)}
    assert {each.mapping for each in others} == {"partial"}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"seeds": 0}, "0 seeds (from 1 to 1,000)"),
        ({"organisations": (1,)}, "1 organisations (from 2 to 500)"),
        ({"organisations": (501,)}, "501 organisations"),
        ({"organisations": ()}, "no organisations"),
        ({"subscriptions": ()}, "no subscriptions"),
        ({"subscriptions": (0,)}, "no subscriptions"),
        ({"subscriptions": (5, 5)}, "do not rise"),
        ({"subscriptions": (10**9,)}, "1,000,000,000 subscriptions of one organisation"),
        ({"mappings": ("half",)}, "unknown mapping 'half'"),
        ({"churns": (1.0,)}, "churn 1"),
        ({"publications": (9, 3)}, "do not rise"),
        ({"publications": (), "fan_outs": (2,)}, "trees without publications"),
        ({"fan_outs": (-1,)}, "the fan-out -1"),
        ({"seeds": 1_000, "organisations": tuple(range(2, 20))}, "36,000 scenarios"),
    ],
)
def test_impossible_parameters_are_refused(asked: dict[str, Any], problem: str) -> None:
    with pytest.raises(QnsError) as caught:
        Plan(**asked)
    assert problem in str(caught.value)


def test_plan_accepts_any_schema() -> None:
    plan = Plan(schema=AGENCIES, organisations=(3,), subscriptions=(10,), seeds=1)
    assert plan.described()["schema"] == "agencies"
