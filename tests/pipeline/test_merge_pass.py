"""The compiled prefilter and merge pass against the production classes of qns.cbr."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.d2q.shipped import AGENCIES, WEATHER
from qns.pipeline.merging import prefilter
from qns.pipeline.workload.scenario import HARD, Scenario, Workload, hosts_of
from tests.pipeline.merging import merge
from tests.pipeline.naive import Counted, counted

SHARES = st.sampled_from((0.0, 0.1, 0.3, 0.5, 0.9, 1.0))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    equality = draw(SHARES)
    return Workload(
        constrained=draw(SHARES),
        quality_constrained=draw(SHARES),
        zipf=draw(st.sampled_from((0.0, 1.0, 2.0))),
        class_zipf=draw(st.sampled_from((0.0, 1.0))),
        equality=equality,
        between=draw(SHARES.filter(lambda share: share + equality <= 1)),
        sources_given=draw(SHARES),
        most_sources=draw(st.integers(1, 5)),
        only=draw(SHARES),
        values=draw(st.integers(2, 6)),
        quality_values=draw(st.integers(2, 4)),
        least_constraints=draw(st.integers(0, 2)),
        mildest_first=draw(st.booleans()),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    schema = draw(st.sampled_from((WEATHER, AGENCIES)))
    mapping = draw(st.sampled_from(("partial", "full")))
    return Scenario(
        schema,
        hosts_of(schema, draw(st.sampled_from((2, 3, 7))), mapping),
        mapping,
        draw(st.integers(0, 10**6)),
        tuple(sorted(draw(st.sets(st.integers(1, 80), min_size=1, max_size=3)))),
        draw(st.sampled_from((0.0, 0.2, 0.6, 0.95))),
        draw(workloads()),
    )


def seen(
    scenario: Scenario, organisation: str, cuts: tuple[int, ...] = ()
) -> list[tuple[int, Counted]]:
    found: dict[int, Counted] = {}
    for row in merge(scenario, organisation, cuts):
        at: Any = row
        counts = found.setdefault(
            at["arrived"],
            Counted(
                at["changes"], at["live"], at["messages_containment"], at["rows_containment"], {}
            ),
        )
        counts.by_producer[at["producer"]] = (
            at["messages_mapping"],
            at["rows_mapping"],
            at["messages_both"],
            at["rows_both"],
        )
    return list(found.items())


@given(scenarios(), st.data())
@settings(deadline=None)
def test_every_count_equals_that_of_the_covering_order(
    scenario: Scenario, data: st.DataObject
) -> None:
    organisation = data.draw(st.sampled_from(scenario.organisations))
    cuts = data.draw(st.sets(st.integers(1, max(1, scenario.subscriptions - 1)), max_size=4))
    cuts = {each for each in cuts if each < scenario.subscriptions}
    assert seen(scenario, organisation, tuple(sorted(cuts))) == list(
        counted(scenario, organisation)
    )


def test_longer_history_gives_the_counts_of_the_covering_order() -> None:
    scenario = Scenario(
        WEATHER, hosts_of(WEATHER, 4, "partial"), "partial", 5, (100, 700, 1_500), churn=0.4
    )
    for organisation in scenario.organisations:
        assert seen(scenario, organisation, (500, 501)) == list(counted(scenario, organisation))


def test_more_organisations_than_bits_in_a_word_give_the_same_counts() -> None:
    workload = Workload(values=3, sources_given=0.8, most_sources=20)
    scenario = Scenario(
        WEATHER, hosts_of(WEATHER, 130, "partial"), "partial", 6, (40, 90), 0.3, workload
    )
    for organisation in ("Met01", "Met64", "Met130"):
        assert seen(scenario, organisation, (30,)) == list(counted(scenario, organisation))


@pytest.mark.parametrize("workload", [Workload(values=4), HARD], ids=["default", "hard"])
@pytest.mark.parametrize("limit", ["_TRIED", "_PRUNED", "MOST_KEPT"])
def test_filter_that_forgets_or_gives_up_changes_no_count(
    workload: Workload, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(
        WEATHER, hosts_of(WEATHER, 3, "partial"), "partial", 2, (50, 900), 0.3, workload
    )
    expected = seen(scenario, "Met02")
    monkeypatch.setattr(prefilter, limit, 10)
    assert seen(scenario, "Met02", tuple(range(60, 900, 60))) == expected
