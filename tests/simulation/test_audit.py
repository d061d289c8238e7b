"""Tests that the audit finds bugs which leave a history without a contradiction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import PullGap, Standing
from qns.federation.document import Federation, Organisation
from qns.history.judge import judge
from qns.iil.requests import Publish, Subscribe
from qns.simulation.audit import AUDITED
from qns.simulation.calm_traffic import FAN_OUT, NO_RESEND, ONE_NOTIFY, judge_calm_traffic
from qns.simulation.faults import FAULTS
from qns.simulation.findings import Findings
from qns.simulation.scenario import Scenario, ScenarioResult
from qns.simulation.workload import make_plan
from qns.simulation.world import TUNING, World
from tests.simulation.lies import LIES, Replacements, lying

MOST_SEEDS = 60


def play(seed: int) -> ScenarioResult:
    return Scenario(make_plan(seed, 6, FAULTS)).run()


def broken_rules(outcome: ScenarioResult) -> set[str]:
    return {each.partition(": ")[0] for each in outcome.violations}


@pytest.mark.parametrize("bug", LIES, ids=lambda bug: bug.__name__)
def test_audit_catches_a_bug_that_the_judge_of_the_history_accepts(
    bug: Callable[[], Replacements],
) -> None:
    with lying(bug):
        for seed in range(MOST_SEEDS):
            outcome = play(seed)
            broken = broken_rules(outcome)
            if broken.issuperset(LIES[bug]) and judge(outcome.history).holds:
                break
        else:
            pytest.fail(f"no seed breaks {', '.join(LIES[bug])} and keeps the rules of the history")
    assert broken <= set(AUDITED)
    assert play(seed).violations == []


def test_each_rule_of_the_audit_is_broken_by_a_bug() -> None:
    covered = {rule for rules in LIES.values() for rule in rules}
    assert set(AUDITED) - covered == set()


@pytest.mark.parametrize(("most_owed", "needless"), [(2, False), (math.inf, True)])
def test_pull_for_a_gap_is_needless_unless_a_limit_may_have_dropped_events(
    most_owed: float, needless: bool
) -> None:
    names = ("Consumer", "Producer")
    organisations = {name: Organisation(name, frozenset({"Report"})) for name in names}
    world = World(
        3,
        Federation("weather", WEATHER, organisations),
        tuning=replace(TUNING, most_owed=most_owed),
    )
    world.start()
    world.run_for(2)
    for nth in range(5):
        event = {"id": f"e{nth}", "class": "Report", "source": "Producer", "available": "INF"}
        publish = Publish(EventReader(WEATHER).from_fields(event))
        world.ledger.ask(world.now, "Producer", publish)
        world.do("Producer", publish)
    pull = PullGap(Standing(1, 1, 1, 1, 0), 3)
    world.traffic.append((world.now, "Consumer", "Producer", pull))
    findings = Findings()
    judge_calm_traffic(world, findings, has_faults=False)
    assert bool(findings.broken[NO_RESEND]) == needless


@pytest.mark.parametrize(("published_at", "judged"), [(0.03, False), (1.0, True)])
def test_fan_out_is_judged_once_a_producer_has_met_its_consumers(
    published_at: float, judged: bool
) -> None:
    names = ("Producer", "Consumer", "Other", "Third")
    organisations = {name: Organisation(name, frozenset({"Report"})) for name in names}
    tuning = replace(TUNING, compare_within_s=60.0)  # all get what is published at the start
    world = World(3, Federation("weather", WEATHER, organisations), tuning=tuning)
    world.start()
    for name in names[1:]:
        world.ask(name, Subscribe("user", "Report", id="s"))
    world.run_for(published_at)
    event = {"id": "e", "class": "Report", "source": "Producer"}
    publish = Publish(EventReader(WEATHER).from_fields(event))
    world.ledger.ask(world.now, "Producer", publish)
    world.do("Producer", publish)
    world.run_for(5)
    findings = Findings()
    judge_calm_traffic(world, findings, has_faults=False)
    assert bool(findings.asked[FAN_OUT]) == judged
    assert findings.asked[ONE_NOTIFY] == 3
    assert not findings.violations


@pytest.mark.parametrize(("owed_in_memory", "judged"), [(2, False), (10, True)])
def test_events_beyond_what_a_producer_keeps_in_memory_may_travel_twice(
    owed_in_memory: int, judged: bool
) -> None:
    names = ("Consumer", "Producer")
    organisations = {name: Organisation(name, frozenset({"Report"})) for name in names}
    tuning = replace(TUNING, owed_in_memory=owed_in_memory)
    world = World(3, Federation("weather", WEATHER, organisations), tuning=tuning)
    world.start()
    world.do("Consumer", Subscribe("user", "Report", id="s"))
    world.run_for(2)
    for nth in range(3):
        event = {"id": f"e{nth}", "class": "Report", "source": "Producer"}
        publish = Publish(EventReader(WEATHER).from_fields(event))
        world.ledger.ask(world.now, "Producer", publish)
        world.do("Producer", publish)
    world.run_for(2)
    findings = Findings()
    judge_calm_traffic(world, findings, has_faults=False)
    assert bool(findings.asked[ONE_NOTIFY]) == judged
