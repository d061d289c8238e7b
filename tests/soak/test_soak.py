"""A short soak of peer processes under faults; `python -m tests.soak` runs a long one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from qns.cli.main import main as qns
from qns.history.judge import judge
from qns.history.records import Record, read_records
from qns.history.verdict import Rule
from tests.soak.harness import Outcome, Soak

CHAOS_S = 8.0


@pytest.mark.slow
def test_peer_processes_under_faults_violate_no_rule(tmp_path: Path) -> None:
    """All checks are in one test because they concern the same run."""
    soaked = asyncio.run(Soak(secrets.randbelow(1_000_000), tmp_path, CHAOS_S).run())
    report = "\n".join((f"seed {soaked.seed}, {soaked.folder}", *soaked.violations))
    assert not soaked.violations, report
    _check_activity(soaked)
    _check_command_line(tmp_path)
    with (tmp_path / "history.jsonl").open(encoding="utf-8") as file:
        history = list(read_records(file))
    for is_such in (_is_owed_notification(history), _is_notified_event(history), _is_first_number):
        _check_removal_is_detected(history, is_such)


def _check_activity(soaked: Outcome) -> None:
    """Asserts that enough happened for the verdict to mean something."""
    assert soaked.counts["kills"] >= 1
    assert any(what.startswith("fault") and number for what, number in soaked.counts.items())
    assert soaked.counts["publications acknowledged"] >= 1
    assert soaked.counts["deliveries read"] >= 1
    assert soaked.verdict is not None
    assert soaked.verdict.was_calm
    assert soaked.verdict.checks[Rule.LIVENESS] >= 1


def _check_command_line(folder: Path) -> None:
    """Asserts that `qns history` and `qns verify` come to the same verdict."""
    stores = sorted(str(path) for path in folder.glob("*.db"))
    out = str(folder / "again.jsonl")
    assert qns(["history", *stores, "--out", out]) == 0
    assert qns(["verify", out]) == 0


def _check_removal_is_detected(history: list[Record], is_such: Callable[[Record], bool]) -> None:
    """Asserts that the judge detects a missing record, as of a peer that did not do the work."""
    places = [place for place, record in enumerate(history) if is_such(record)]
    assert any(not judge([*history[:place], *history[place + 1 :]]).holds for place in places[:50])


def _is_owed_notification(history: list[Record]) -> Callable[[Record], bool]:
    ended = {(each["org"], each["sub"]) for each in history if each["do"] in ("usub", "pause")}
    return lambda each: (
        each["do"] == "ntfy" and not each["group"] and (each["org"], each["sub"]) not in ended
    )


def _is_notified_event(history: list[Record]) -> Callable[[Record], bool]:
    notified = {(each["source"], each["event"]) for each in history if each["do"] == "ntfy"}
    return lambda each: each["do"] == "pub" and (each["org"], each["event"]["id"]) in notified


def _is_first_number(record: Record) -> bool:
    return bool(record["do"] == "take" and record["number"] == 1)
