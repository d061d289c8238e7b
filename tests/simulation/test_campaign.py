"""Campaigns: every seed in its order, the same whoever plays it and wherever."""

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
from qns.simulation.campaign import Breach, Result, Setting, Totals, campaign, play
from qns.simulation.scenario import Scenario
from qns.simulation.workload import FAULTS, Action
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


def test_a_seed_has_the_same_history_in_every_process() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", _HISTORIES],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert told[0].count(b'"do": "pub"') > 50


def test_the_second_run_in_a_process_is_the_same_as_the_first() -> None:
    first, second = (play(SMALL.plan(5)) for _ in range(2))
    assert first.history
    assert first == second


def test_results_come_in_the_order_of_the_seeds_whoever_played_them() -> None:
    here = list(campaign(range(6), SMALL))
    with ThreadPoolExecutor(3) as executor:
        elsewhere = list(campaign(range(6), SMALL, executor, ahead=4))
    assert [result.seed for result in here] == list(range(6))
    assert elsewhere == here


def test_an_executor_is_given_few_seeds_ahead() -> None:
    asked: list[int] = []

    def seeds() -> Iterator[int]:
        for seed in range(1_000_000_000):
            asked.append(seed)
            yield seed

    with ThreadPoolExecutor(2) as executor:
        (first,) = islice(campaign(seeds(), SMALL, executor, ahead=3), 1)
    assert first.seed == 0
    assert asked == [0, 1, 2, 3]


def test_a_setting_decides_peers_and_faults() -> None:
    plan = Setting(peers=4, faults=("crash",)).plan(1)
    assert len(plan.federation.organisations) == 4
    breaks = {"weather", "cut", "restore", "disk-full", "host", "leave"}
    assert not breaks & {action.kind for action in plan.actions}
    assert Setting().faults == FAULTS


def test_a_broken_rule_is_named() -> None:
    with switched_on("late subscriber served twice"):
        result = play(Setting().plan(0))
    assert {breach.rule for breach in result.breaches} <= {*Rule, "Rest", "Merge table"}
    breach = next(each for each in result.breaches if each.rule == Rule.MINIMALITY)
    assert "which had been notified of it before" in breach.text
    assert not breach.text.startswith(breach.rule)
    assert str(breach) == f"Minimality: {breach.text}"


def test_a_rule_of_the_simulator_is_named_as_the_others() -> None:
    with switched_on("containment ignores sources"):
        plans = [Setting().plan(seed) for seed in range(4)]
        outcomes = {plan.seed: Scenario(plan).run() for plan in plans}
        results = {plan.seed: play(plan) for plan in plans}
    told = {
        (seed, Breach("Merge table", each.removeprefix("Merge table: ")))
        for seed, outcome in outcomes.items()
        for each in outcome.violations
        if each.startswith("Merge table: ")
    }
    assert told
    assert all(breach in results[seed].breaches for seed, breach in told)


def test_an_exception_is_a_broken_rule_of_its_own() -> None:
    plan = SMALL.plan(2)
    result = play(replace(plan, actions=(*plan.actions, Action(1.0, "unsubscribe", "Met01"))))
    (breach,) = result.breaches
    assert str(breach) == "KeyError: 'sub'"
    assert result.trace.startswith("Traceback")
    assert result.trace.endswith("KeyError: 'sub'\n")
    assert result.history


def test_totals_tell_faults_messages_and_records_apart() -> None:
    totals = Totals()
    totals.add(Result(0, (), {"crashes": 2, "lost messages": 5, "Notify messages": 7, "pub": 1}))
    totals.add(Result(1, (Breach("Rest", "…"),), {"crashes": 1, "Hello messages": 3, "ntfy": 4}))
    assert totals.seeds == 2
    assert [result.seed for result in totals.broken] == [1]
    assert totals.faults == {"crashes": 3, "lost messages": 5}
    assert totals.messages == {"Hello": 3, "Notify": 7}
    assert totals.records["events published"] == 1
    assert totals.records["notifications"] == 4


def test_totals_of_real_seeds_count_everything_once() -> None:
    totals = Totals()
    for result in campaign(range(3), SMALL):
        totals.add(result)
    played = [play(SMALL.plan(seed)) for seed in range(3)]
    published = sum(record["do"] == "pub" for each in played for record in each.history)
    assert totals.records["events published"] == published > 0
    assert totals.messages["Notify"] > 0
    assert not set(totals.faults) & set(totals.records)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc who is running")
def test_workers_do_not_outlive_a_command_that_is_killed() -> None:
    command = [sys.executable, "-m", "qns.cli", "simulate", "--seeds", "0..5000", "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        workers = _until(lambda: found if len(found := _children(running.pid)) >= 2 else None)
        running.kill()
    assert _until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers))


def _children(pid: int) -> list[int]:
    told = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in told.read_text().split()] if told.exists() else []


def _until(condition: Callable[[], Any]) -> Any:
    """What the condition gives, once it gives something; None after half a minute."""
    for _ in range(300):
        if found := condition():
            return found
        time.sleep(0.1)
    return None
