"""Scenarios: refused parameters, ids, and mappings."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import NameNotKnown, QnsError, ValueRefused
from qns.federation.shipped import WEATHER_PARTIAL
from qns.pipeline.workload.scenario import HARD, Scenario, Workload, hosts_of


def scenario(**changed: Any) -> Scenario:
    plain = Scenario(WEATHER, hosts_of(WEATHER, 3, "partial"), "partial", 1, (10, 20))
    return replace(plain, **changed)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("constrained", 1.2),
        ("quality_constrained", -0.1),
        ("sources_given", 2.0),
        ("equality", 0.9),  # with between 0.25 the sum is above 1
        ("zipf", -1.0),
        ("class_zipf", float("nan")),
        ("values", 1),
        ("values", 20_000),
        ("quality_values", 0),
        ("most_sources", 0),
        ("least_constraints", -1),
    ],
)
def test_impossible_workload_is_refused_by_the_name_of_its_parameter(
    field: str, value: float
) -> None:
    with pytest.raises(ValueRefused, match=field):
        replace(Workload(), **{field: value})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"churn": 1.0}, "churn"),
        ({"churn": -0.5}, "churn"),
        ({"seed": -1}, "seed"),
        ({"checkpoints": ()}, "no subscriptions"),
        ({"checkpoints": (0, 5)}, "no subscriptions"),
        ({"checkpoints": (5, 5)}, "do not rise"),
        ({"checkpoints": (10**9,)}, "1,000,000,000 subscriptions"),
        ({"hosts": {"Met01": ()}}, "1 organisations"),
        ({"hosts": {"A": ("Report",), "B": ("Reports",)}}, "Reports"),
    ],
)
def test_impossible_scenario_is_refused_with_a_remedy(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(QnsError, match=words) as refused:
        scenario(**changed)
    assert refused.value.remedy


def test_only_equal_scenarios_have_the_same_id() -> None:
    one = scenario()
    others = [
        scenario(seed=2),
        scenario(churn=0.1),
        scenario(checkpoints=(10, 21)),
        scenario(mapping="mine"),
        scenario(workload=HARD),
        scenario(hosts=hosts_of(WEATHER, 3, "full")),
        scenario(schema=AGENCIES, hosts=hosts_of(AGENCIES, 3, "full")),
    ]
    assert scenario().id == one.id
    assert len({one.id, *(other.id for other in others)}) == 1 + len(others)


def test_scenario_can_be_pickled_for_executors() -> None:
    assert pickle.loads(pickle.dumps(scenario(workload=HARD))) == scenario(workload=HARD)


def test_partial_mapping_of_ten_is_that_of_the_semantics_page() -> None:
    found = hosts_of(WEATHER, 10, "partial")
    assert {name: frozenset(classes) for name, classes in found.items()} == WEATHER_PARTIAL.hosts
    assert hosts_of(WEATHER, 23, "partial")["Met13"] == found["Met03"]


def test_partial_mapping_of_any_schema_hosts_every_class_at_some_organisations() -> None:
    schema = Schema("s", {"A": {"x": "string"}, "A/B": {"y": "integer"}, "A/C": {"z": "date"}})
    hosts = hosts_of(schema, 5, "partial")
    assert all("A" in classes for classes in hosts.values())
    for path in ("A/B", "A/C"):
        assert 0 < sum(path in classes for classes in hosts.values()) < 5


def test_unknown_mapping_is_refused() -> None:
    with pytest.raises(NameNotKnown, match="mapping"):
        hosts_of(WEATHER, 10, "partail")
