"""Real peers under real faults, for a short while; `python -m tests.soak` does it for long."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

from qns.cli.main import main as qns
from qns.history.judge import judge
from qns.history.records import Record, read_records
from qns.history.verdict import Rule
from tests.soak.harness import Outcome, Soak

CHAOS_S = 8.0


def test_real_peers_under_real_faults_keep_what_they_promise(tmp_path: Path) -> None:
    """One test, because all of it looks at the same run."""
    soaked = asyncio.run(Soak(secrets.randbelow(1_000_000), tmp_path, CHAOS_S).run())
    told = "\n".join((f"seed {soaked.seed}, {soaked.folder}", *soaked.violations))
    assert not soaked.violations, told
    _there_was_something_to_lose(soaked)
    _the_command_line_comes_to_the_same_verdict(tmp_path)
    with (tmp_path / "history.jsonl").open(encoding="utf-8") as file:
        history = list(read_records(file))
    for is_such in (_is_owed_notification(history), _is_notified_event(history), _is_first_number):
        _what_is_taken_away_is_missed(history, is_such)


def _there_was_something_to_lose(soaked: Outcome) -> None:
    assert soaked.counts["kills"] >= 1
    assert any(what.startswith("fault") and number for what, number in soaked.counts.items())
    assert soaked.counts["publications acknowledged"] >= 1
    assert soaked.counts["deliveries read"] >= 1
    assert soaked.verdict is not None
    assert soaked.verdict.was_calm
    assert soaked.verdict.checks[Rule.LIVENESS] >= 1


def _the_command_line_comes_to_the_same_verdict(folder: Path) -> None:
    stores = sorted(str(path) for path in folder.glob("*.db"))
    out = str(folder / "again.jsonl")
    assert qns(["history", *stores, "--out", out]) == 0
    assert qns(["verify", out]) == 0


def _what_is_taken_away_is_missed(history: list[Record], is_such: Callable[[Record], bool]) -> None:
    """So a peer that does not do it would be noticed."""
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
