"""Tests of minimising: the smaller plan breaks the same rule, and no action can be removed."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from qns.simulation.actions import Action
from qns.simulation.campaign import Setting, play
from qns.simulation.minimise import Attempt, minimise
from qns.simulation.workload import Plan
from tests.simulation.bugs import switched_on

BUG = "containment ignores sources"


def size(plan: Plan) -> int:
    return len(plan.actions) + len(plan.calm_actions)


def rules(plan: Plan) -> set[str]:
    return {breach.rule for breach in play(plan).breaches}


@pytest.fixture(scope="module")
def attempts() -> list[Attempt]:
    with switched_on(BUG):
        return list(minimise(Setting().plan(0)))


def test_minimised_plan_breaks_the_same_rule(attempts: list[Attempt]) -> None:
    first, last = attempts[0], attempts[-1]
    assert first.breach is not None
    assert last.breach is not None
    assert first.plan == Setting().plan(0)
    assert first.breach == first.result.breaches[0]
    assert last.breach.rule == first.breach.rule
    with switched_on(BUG):
        assert play(last.plan) == last.result
    assert last.breach in last.result.breaches


def test_minimised_plan_has_few_actions_of_the_original(attempts: list[Attempt]) -> None:
    whole, last = attempts[0].plan, attempts[-1].plan
    assert size(last) <= 6 < 100 < size(whole)
    assert set(map(str, last.actions)) <= set(map(str, whole.actions))
    assert set(map(str, last.calm_actions)) <= set(map(str, whole.calm_actions))
    assert last.seed == whole.seed


def test_no_action_of_a_minimised_plan_can_be_removed(attempts: list[Attempt]) -> None:
    last = attempts[-1]
    assert last.breach is not None
    with switched_on(BUG):
        for number in range(len(last.plan.actions)):
            fewer = last.plan.actions[:number] + last.plan.actions[number + 1 :]
            assert last.breach.rule not in rules(replace(last.plan, actions=fewer))


def test_minimise_yields_one_attempt_for_each_run_with_plans_that_never_grow(
    attempts: list[Attempt],
) -> None:
    assert [attempt.runs for attempt in attempts] == list(range(1, len(attempts) + 1))
    sizes = [size(attempt.plan) for attempt in attempts]
    assert sizes == sorted(sizes, reverse=True)
    assert len(attempts) < 300


def test_minimise_removes_peers_and_simplifies_settings(
    attempts: list[Attempt],
) -> None:
    last = attempts[-1].plan
    assert len(last.federation.organisations) == 2
    assert set(last.clocks) == set(last.federation.organisations)
    assert not any(last.clocks.values())
    assert not last.sqlite
    assert last.most_owed == inf


def test_plan_that_breaks_no_rule_is_played_once() -> None:
    plan = Setting(peers=3, faults=()).plan(1)
    (attempt,) = minimise(plan)
    assert attempt.plan is plan
    assert attempt.breach is None


def test_plan_that_raises_an_exception_is_minimised() -> None:
    plan = Setting(peers=4).plan(3)
    wrong = Action(20.0, "unsubscribe", "Met02")
    *_, last = minimise(replace(plan, actions=(*plan.actions, wrong)))
    assert last.breach is not None
    assert str(last.breach) == "KeyError: 'sub'"
    assert (last.plan.actions, last.plan.calm_actions) == ((wrong,), ())


def test_minimise_removes_needless_fields_of_weather() -> None:
    plan = Setting(peers=3, faults=()).plan(0)
    wrong = Action(9.0, "weather", "", {"loss": 0.2, "hail": 1.0, "most_delay_s": 0.3})
    *_, last = minimise(replace(plan, actions=(wrong,), calm_actions=()))
    assert last.breach is not None
    assert last.breach.rule == "TypeError"
    assert last.plan.actions == (replace(wrong, fields={"hail": 1.0}),)


def test_minimise_removes_links_of_removed_peers_from_partitions() -> None:
    plan = Setting(peers=4, faults=("partition",)).plan(6)
    wrong = Action(39.0, "unsubscribe", "Met02")
    seen = set()
    for attempt in minimise(replace(plan, actions=(*plan.actions, wrong))):
        members = set(attempt.plan.federation.organisations)
        pairs = [str(a.fields["pairs"]) for a in attempt.plan.actions if a.kind == "cut"]
        cut = set(" ".join(pairs).replace(">", " ").split())
        assert cut <= members
        seen.add((len(members), bool(cut)))
    assert {(4, True), (3, True)} <= seen
