"""Tests of campaigns: results come in order and do not depend on the process that plays them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from qns.history.verdict import Rule
from qns.simulation.actions import Action
from qns.simulation.audit import AUDITED, NEEDED_FAULTS
from qns.simulation.campaign import RULES, Breach, Result, Setting, Totals, campaign, play
from qns.simulation.faults import FAULTS
from qns.simulation.scenario import Scenario
from tests.simulation.bugs import switched_on

SMALL = Setting(peers=3)

_HISTORIES = """
from qns.history.records import write_record
from qns.simulation.campaign import Setting, play
for seed in range(4):
    result = play(Setting().plan(seed))
    print(seed, result.breaches, result.counts)
    print("".join(map(write_record, result.history)))
"""


def test_seed_gives_the_same_history_in_every_process() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _HISTORIES],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b'"do": "pub"') > 50


def test_second_run_in_a_process_gives_the_same_result() -> None:
    first, second = (play(SMALL.plan(5)) for _ in range(2))
    assert first.history
    assert first == second


def test_campaign_yields_results_in_the_order_of_the_seeds() -> None:
    here = list(campaign(range(6), SMALL))
    with ThreadPoolExecutor(3) as executor:
        elsewhere = list(campaign(range(6), SMALL, executor, ahead=4))
    assert [result.seed for result in here] == list(range(6))
    assert elsewhere == here


def test_campaign_submits_few_seeds_ahead() -> None:
    asked: list[int] = []

    def seeds() -> Iterator[int]:
        for seed in range(1_000_000_000):
            asked.append(seed)
            yield seed

    with ThreadPoolExecutor(2) as executor:
        (first,) = islice(campaign(seeds(), SMALL, executor, ahead=3), 1)
    assert first.seed == 0
    assert asked == [0, 1, 2, 3]


def test_setting_determines_peers_and_faults_of_a_plan() -> None:
    plan = Setting(peers=4, faults=("crash",)).plan(1)
    assert len(plan.federation.organisations) == 4
    other_faults = {"weather", "cut", "restore", "disk-full", "host", "leave"}
    assert not other_faults & {action.kind for action in plan.actions}
    assert Setting().faults == FAULTS


def test_breach_names_the_rule_of_the_judge() -> None:
    with switched_on("late subscriber served twice"):
        result = play(Setting(faults=("crash",)).plan(0))
    assert {breach.rule for breach in result.breaches} <= {*Rule, *AUDITED, "Rest", "Merge table"}
    breach = next(each for each in result.breaches if each.rule == Rule.MINIMALITY)
    assert "which had been notified of it before" in breach.text
    assert not breach.text.startswith(breach.rule)
    assert str(breach) == f"Minimality: {breach.text}"


def test_breach_names_the_rule_of_the_simulator() -> None:
    with switched_on("containment ignores sources"):
        plans = [Setting().plan(seed) for seed in range(4)]
        outcomes = {plan.seed: Scenario(plan).run() for plan in plans}
        results = {plan.seed: play(plan) for plan in plans}
    expected = {
        (seed, Breach("Merge table", each.removeprefix("Merge table: ")))
        for seed, outcome in outcomes.items()
        for each in outcome.violations
        if each.startswith("Merge table: ")
    }
    assert expected
    assert all(breach in results[seed].breaches for seed, breach in expected)


def test_exception_is_a_breach_named_after_its_type() -> None:
    plan = SMALL.plan(2)
    result = play(replace(plan, actions=(*plan.actions, Action(1.0, "unsubscribe", "Met01"))))
    (breach,) = result.breaches
    assert str(breach) == "KeyError: 'sub'"
    assert result.trace.startswith("Traceback")
    assert result.trace.endswith("KeyError: 'sub'\n")
    assert result.history


def test_totals_separate_faults_messages_and_records() -> None:
    totals = Totals()
    totals.add(Result(0, (), {"crashes": 2, "lost messages": 5, "Notify messages": 7, "pub": 1}))
    totals.add(Result(1, (Breach("Rest", "…"),), {"crashes": 1, "Hello messages": 3, "ntfy": 4}))
    assert totals.seeds == 2
    assert [result.seed for result in totals.broken] == [1]
    assert totals.faults == {"crashes": 3, "lost messages": 5}
    assert totals.messages == {"Hello": 3, "Notify": 7}
    assert totals.records["events published"] == 1
    assert totals.records["notifications"] == 4


def test_totals_of_real_seeds_count_each_record_once() -> None:
    totals = Totals()
    for result in campaign(range(3), SMALL):
        totals.add(result)
    played = [play(SMALL.plan(seed)) for seed in range(3)]
    published = sum(record["do"] == "pub" for each in played for record in each.history)
    assert totals.records["events published"] == published > 0
    assert totals.messages["Notify"] > 0
    assert not set(totals.faults) & set(totals.records)


def totals_of(seeds: int, **asked: int) -> Totals:
    totals = Totals()
    for seed in range(seeds):
        totals.add(Result(seed, (), {}, asked={**dict.fromkeys(RULES, 1), **asked}))
    return totals


def test_rule_that_no_seed_asked_fails_a_large_campaign_only() -> None:
    few, many = totals_of(199, Owed=0), totals_of(200, Owed=0)
    assert few.never_asked(Setting()) == many.never_asked(Setting()) == ["Owed"]
    assert not few.must_ask_all(Setting())
    assert many.must_ask_all(Setting())
    assert not many.must_ask_all(SMALL)
    assert totals_of(200).never_asked(Setting()) == []


def test_rule_is_not_missed_without_the_faults_that_it_needs() -> None:
    totals = totals_of(200, Custody=0, Lineage=0)
    assert totals.never_asked(Setting()) == ["Custody", "Lineage"]
    assert totals.never_asked(Setting(faults=("gone", "crash"))) == ["Custody"]
    assert totals.never_asked(Setting(faults=())) == []


def test_faults_that_rules_need_exist() -> None:
    assert NEEDED_FAULTS.keys() <= set(RULES)
    assert set().union(*NEEDED_FAULTS.values()) <= set(FAULTS)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads processes from /proc")
def test_workers_end_when_the_command_is_killed() -> None:
    command = [sys.executable, "-m", "qns.cli", "simulate", "--seeds", "0..5000", "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        workers = _until(lambda: found if len(found := _children(running.pid)) >= 2 else None)
        running.kill()
    assert _until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers))


def _children(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in file.read_text().split()] if file.exists() else []


def _until(condition: Callable[[], Any]) -> Any:
    """Waits until the condition returns something true and returns it; None after 30 s."""
    for _ in range(300):
        if found := condition():
            return found
        time.sleep(0.1)
    return None
