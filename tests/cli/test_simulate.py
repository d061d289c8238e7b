"""`qns simulate`: seeds played, failures replayed and cut down, the same output whoever plays."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qns.cli.replay import record_line
from qns.simulation import scenario
from qns.simulation.workload import FAULTS, Action
from tests.cli.conftest import ROOT, Cli
from tests.cli.test_main import ENVIRONMENT, QNS, on_a_terminal, run
from tests.simulation.bugs import switched_on

BUG = "containment ignores sources"
SMALL = ("--peers", "3")


def without_times(told: dict[str, Any]) -> dict[str, Any]:
    assert told.pop("seconds") > 0
    assert told.pop("seeds_per_second") > 0
    return told


# -- many seeds -----------------------------------------------------------------------------------


def test_seeds_that_hold_are_counted(cli: Cli) -> None:
    outcome = cli("simulate", "--seeds", "0..3", *SMALL)
    assert outcome.status == 0
    first, *rows = outcome.out.splitlines()
    assert first == "seeds 0..3, 3 peers, all faults: every rule held"
    counted = {re.sub(r" +[\d,]+$", "", row).strip() for row in rows if row.startswith("  ")}
    assert {"crashes", "lost messages", "Notify", "events published", "notifications"} <= counted
    assert re.fullmatch(r"3 seeds in \d+\.\d s, \d+\.\d seeds per second\n", outcome.err)


def test_json_has_what_the_table_has(cli: Cli) -> None:
    table = cli("simulate", "--seeds", "5..7", *SMALL).out
    told = without_times(cli("simulate", "--seeds", "5..7", *SMALL, "--json").json)
    assert told["ok"]
    assert (told["seeds"], told["played"], told["peers"]) == ("5..7", 2, 3)
    assert told["faults"] == list(FAULTS)
    assert (told["broken"], told["minimised"], told["interrupted"]) == ([], None, False)
    for group in ("injected", "messages", "records"):
        assert told[group]
        for name, number in told[group].items():
            assert re.search(rf"^  {name} +{number:,}$", table, re.MULTILINE)


def test_a_number_is_a_range_from_0(cli: Cli) -> None:
    words = (*SMALL, "--faults", "none")
    outcome = cli("simulate", "--seeds", 2, *words)
    assert outcome.out == cli("simulate", "--seeds", "0..2", *words).out


def test_faults_are_chosen_by_name(cli: Cli) -> None:
    outcome = cli("simulate", "--seeds", "0..2", *SMALL, "--faults", "restore, crash", "--json")
    assert outcome.json["faults"] == ["crash", "restore"]
    assert set(outcome.json["injected"]) <= {
        *("crashes", "restores", "lost messages", "duplicated messages"),
    }
    told = cli("simulate", "--seeds", "0..1", *SMALL, "--faults", "none")
    assert told.out.startswith("seeds 0..1, 3 peers, no faults: every rule held\n")
    told = cli("simulate", "--seeds", "0..1", *SMALL, "--faults", "loss,crash")
    assert told.out.startswith("seeds 0..1, 3 peers, faults loss, crash: every rule held\n")


def test_fresh_seeds_can_be_repeated(cli: Cli) -> None:
    fresh = cli("simulate", "--fresh", 2, *SMALL)
    (seeds,) = re.findall(r"^fresh seeds; the same again: --seeds (\d+\.\.\d+)$", fresh.err, re.M)
    again = cli("simulate", "--seeds", seeds, *SMALL)
    assert (again.status, again.out) == (fresh.status, fresh.out)
    assert f"seeds {seeds}, " in fresh.out


def test_the_output_is_the_same_with_any_number_of_jobs() -> None:
    words = [*QNS, "simulate", "--seeds", "10..16", *SMALL, "--json"]
    told = []
    for number, hash_seed in (("1", "1"), ("2", "2")):
        done = run([*words, "--jobs", number], PYTHONHASHSEED=hash_seed)
        assert (done.returncode, done.stderr) == (0, b"")
        told.append(without_times(json.loads(done.stdout)))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--faults", "loss,crsh"], "unknown fault 'crsh' (did you mean crash?)"),
        (["--faults", ""], "unknown fault '' (known: crash, delay, disk-full, duplicate, "),
        (["--seeds", "3..3"], "no seed is in 3..3 (the end comes after the start)"),
        (["--seeds", "9..4"], "no seed is in 9..4 (the end comes after the start)"),
        (["--seeds", "1-5"], "'1-5' is no range of seeds (as in 0..200; 200 is the same)"),
        (["--seeds", "1" * 99], "is no range of seeds"),
        (["--peers", "1"], "a federation of 1 peers (give 2 to 50)"),
        (["--peers", "51"], "a federation of 51 peers (give 2 to 50)"),
        (["--jobs=-1"], "-1 jobs (give a number of processes, or 0 for all cores)"),
        (["--fresh", "0"], "0 fresh seeds (give 1 or more)"),
        (["--replay=-3"], "there is no seed -3 (seeds count from 0)"),
        (["--history", "h.jsonl"], "--history goes with --replay (name the seed to replay)"),
        (["--minimise"], "--minimise goes with --replay (name the seed to replay)"),
    ],
)
def test_wrong_arguments_are_told_with_a_remedy(arguments: list[str], told: str, cli: Cli) -> None:
    outcome = cli("simulate", *arguments)
    assert outcome.status == 2
    assert outcome.err.startswith("qns: error: ")
    assert told in outcome.err
    assert not outcome.out


@pytest.mark.parametrize(
    "arguments", [["--seeds", "3", "--fresh", "3"], ["--peers", "x"], ["--replay", "0..3"]]
)
def test_wrong_usage_is_status_2(arguments: list[str], cli: Cli) -> None:
    outcome = cli("simulate", *arguments)
    assert outcome.status == 2
    assert outcome.err.startswith("usage: ")


# -- a broken rule --------------------------------------------------------------------------------


def test_a_broken_rule_is_told_with_the_few_actions_that_are_enough(cli: Cli) -> None:
    with switched_on(BUG):
        outcome = cli("simulate", "--seeds", "0..2")
    assert outcome.status == 1
    assert outcome.out.startswith("seeds 0..2, 6 peers, all faults: 2 of 2 seeds broke a rule\n")
    told = re.search(
        r"^seed 0, ([\w ]+): \d of 1\d\d actions are enough \(found in \d+ runs\)$.*",
        outcome.out,
        re.MULTILINE | re.DOTALL,
    )
    assert told is not None
    trace, rule = told[0], told[1]
    assert re.search(rf"^qns simulate --replay 0  {rule}", outcome.out, re.MULTILINE)
    assert re.search(r"^qns simulate --replay 1  \w", outcome.out, re.MULTILINE)
    actions = re.findall(
        r"^ *\d+\.\d{3} s  Met\d\d +subscribe +sub=s\d+ text=", trace, re.MULTILINE
    )
    assert 1 <= len(actions) <= 6
    assert f"\n\n{rule}: " in trace
    assert trace.endswith("\nwith its history: qns simulate --replay 0 --minimise\n")


def test_a_broken_rule_as_json(cli: Cli) -> None:
    words = ("--peers", "5", "--faults", "none")
    with switched_on(BUG):
        outcome = cli("simulate", "--seeds", "0..2", *words, "--json")
    assert outcome.status == 1
    told = outcome.json
    assert not told["ok"]
    first = told["broken"][0]
    assert first["replay"] == f"qns simulate --replay {first['seed']} --peers 5 --faults none"
    small = told["minimised"]
    assert small["seed"] == first["seed"]
    assert small["violation"]["rule"] == first["violations"][0]["rule"]
    assert 1 <= len(small["plan"]["actions"]) + len(small["plan"]["calm_actions"]) <= 6
    assert 2 <= len(small["plan"]["organisations"]) <= 3


def test_the_replayed_failure_is_the_minimised_one(cli: Cli, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    with switched_on(BUG):
        found = cli("simulate", "--seeds", "1..2", "--json").json["minimised"]
        again = cli("simulate", "--replay", 1, "--minimise", "--history", history, "--json")
    assert again.status == 1
    assert again.json["plan"] == found["plan"]
    assert found["violation"] in again.json["violations"]
    lines = history.read_text(encoding="utf-8").splitlines()
    assert list(map(json.loads, lines)) == again.json["history"]


def test_an_exception_is_told_by_its_last_line_and_by_its_stack_in_a_replay(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: scenario.Scenario, action: Action) -> None:
        raise LookupError(f"{action.kind}\nis broken")

    monkeypatch.setattr(scenario.Scenario, "_do_unsubscribe", broken)
    outcome = cli("simulate", "--seeds", "0..2", *SMALL)
    assert outcome.status == 1
    assert (
        "qns simulate --replay 0 --peers 3  LookupError: unsubscribe\\nis broken\n" in outcome.out
    )
    assert "\nseed 0, LookupError: 1 of " in outcome.out
    assert "Traceback" not in outcome.out + outcome.err
    replayed = cli("simulate", "--replay", 0, *SMALL)
    assert replayed.status == 1
    assert "\nTraceback (most recent call last):\n" in replayed.out
    end = "LookupError: unsubscribe\nis broken\n\nseed 0: broken: LookupError\n"
    assert replayed.out.endswith(end)


def test_more_failures_than_fit_are_told_by_their_seeds(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(scenario.Scenario, "_do_publish")
    outcome = cli("simulate", "--seeds", "0..23", *SMALL)
    assert outcome.out.count("qns simulate --replay ") == 21
    assert "\nand seeds 20, 21, 22\n" in outcome.out


def test_a_seed_that_does_not_break_again_is_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = scenario.Scenario.run
    runs = [0]

    def first_run_only(self: scenario.Scenario) -> scenario.Outcome:
        outcome = original(self)
        runs[0] += 1
        return (
            outcome if runs[0] > 1 else scenario.Outcome(0, ["Rest: no."], [*outcome.history], {})
        )

    monkeypatch.setattr(scenario.Scenario, "run", first_run_only)
    outcome = cli("simulate", "--seeds", "0..1", *SMALL)
    assert outcome.status == 1
    assert "qns simulate --replay 0 --peers 3  Rest\n" in outcome.out
    assert "seed 0 broke no rule when it was played again: something in the sim" in outcome.out


# -- one seed -------------------------------------------------------------------------------------


def test_a_replay_tells_plan_history_and_verdict(cli: Cli) -> None:
    outcome = cli("simulate", "--replay", 7, *SMALL)
    assert (outcome.status, outcome.err) == (0, "")
    plan, history, verdict = outcome.out.split("\n\n")
    assert plan.startswith("stores in ")
    peers = re.findall(r"^Met0\d  fan-out \d, clock [+-]\d+\.\d{3} s, hosts Report", plan, re.M)
    assert len(peers) == 3
    assert "\nwhile things break:\n" in plan
    assert "\nonce all is healed, counted from then:\n" in plan
    assert re.match(r"    1     0\.000 s         schema\n    2     0\.000 s  Met01  join ", history)
    assert re.search(r"^ +\d+ +\d+\.\d{3} s  Met0\d  pub     id=e\d+ class=Report", history, re.M)
    assert max(map(len, history.splitlines())) <= 160
    assert verdict == "seed 7: every rule held\n"
    assert cli("simulate", "--replay", 7, *SMALL).out == outcome.out


def test_a_replayed_history_is_what_verify_reads(cli: Cli, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    outcome = cli("simulate", "--replay", 4, *SMALL, "--history", history, "--json")
    assert outcome.status == 0
    verified = cli("verify", history, "--json")
    assert verified.status == 0
    counts = verified.json["counts"]
    assert counts["records"] == len(outcome.json["history"])
    assert verified.json["calm"]


def test_verify_finds_what_the_simulator_found(cli: Cli, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    with switched_on("late subscriber served twice"):
        outcome = cli("simulate", "--replay", 0, "--history", history, "--json")
    assert outcome.status == 1
    found = {(each["rule"], each["explanation"]) for each in outcome.json["violations"]}
    verified = cli("verify", history, "--json").json["violations"]
    assert found == {(each["rule"], each["explanation"]) for each in verified}


def test_a_history_that_cannot_be_written_is_told(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("simulate", "--replay", 0, *SMALL, "--history", tmp_path / "no" / "h.jsonl")
    assert outcome.status == 2
    assert "cannot be written: No such file or directory" in outcome.err


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"t": 0.0, "do": "schema", "xml": "<schema/>"}, "   17     0.000 s         schema"),
        (
            {"t": 3.4, "org": "Met02", "do": "ntfy", "sub": "s3", "group": "", "event": "e5"},
            "   17     3.400 s  Met02  ntfy    sub=s3 event=e5",
        ),
        (
            {"t": 3.4, "org": "Met02", "do": "pub", "event": {"id": "e5", "class": "Report"}},
            "   17     3.400 s  Met02  pub     id=e5 class=Report",
        ),
        (
            {"t": 12.0, "org": "A\n", "do": "stable", "classes": ["Report", "Report/Wind"]},
            "   17    12.000 s  A\\n     stable  classes=Report,Report/Wind",
        ),
    ],
)
def test_a_record_is_one_short_line(record: dict[str, Any], line: str) -> None:
    assert record_line(17, record) == line
    assert len(record_line(17, {**record, "why": "x" * 1_000})) == 160


# -- terminals and signals ------------------------------------------------------------------------


def test_progress_is_shown_on_a_terminal_only() -> None:
    words = [*QNS, "simulate", "--seeds", "0..4", *SMALL]
    status, shown = on_a_terminal(words, only_errors=True)
    assert status == 0
    assert b"playing seeds, 0 violations" in shown
    assert b"4/4" in shown
    done = run(words)
    assert re.fullmatch(rb"4 seeds in .* seeds per second\n", done.stderr)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_stops_with_what_was_found_so_far(jobs: str) -> None:
    leader, follower = pty.openpty()
    words = ["simulate", "--seeds", "0..999999", "--jobs", jobs, *SMALL]
    with subprocess.Popen(
        [*QNS, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=follower,
        cwd=ROOT,
        env={**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "120"},
        start_new_session=True,
        # Whoever runs the tests in the background may have them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        os.close(follower)
        shown = b""
        while not re.search(rb"[1-9]\d*/999999", shown):
            shown += os.read(leader, 65_536)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        try:
            while piece := os.read(leader, 65_536):
                shown += piece
        except OSError:  # the other end has gone
            pass
    os.close(leader)
    assert process.returncode == 130
    told = re.match(rb"seeds 0..999999, 3 peers, all faults: stopped after (\d+) seeds?, ", out)
    assert told is not None
    assert int(told[1]) >= 1
    assert b"events published" in out
    assert b"Traceback" not in shown


def test_a_killed_process_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, sys\n"
        "from qns.cli.main import main\n"
        "from qns.simulation import campaign\n"
        "if __name__ == '__mp_main__':\n"
        "    campaign.play = lambda plan: os.kill(os.getpid(), signal.SIGKILL)\n"
        "if __name__ == '__main__':\n"
        "    sys.exit(main(['simulate', '--seeds', '0..4', '--jobs', '2']))\n"
    )
    done = run([sys.executable, str(script)], PYTHONPATH=str(ROOT))
    assert done.returncode == 2
    told = "a process that played seeds was killed (if memory ran out, take fewer --jobs)"
    assert done.stderr.decode() == f"qns: error: {told}\n"
