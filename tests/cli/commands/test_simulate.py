"""Tests of `qns simulate`."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from qns.cli.replay import record_line
from qns.simulation import campaign as campaigns
from qns.simulation import scenario
from qns.simulation.actions import Action
from qns.simulation.audit import AUDITED
from qns.simulation.faults import FAULTS
from tests.cli.conftest import ROOT, Cli
from tests.cli.test_main import ENVIRONMENT, QNS, on_a_terminal, run
from tests.simulation.bugs import switched_on

BUG = "containment ignores sources"
SMALL = ("--peers", "3")


def without_times(message: dict[str, Any]) -> dict[str, Any]:
    assert message.pop("seconds") > 0
    assert message.pop("seeds_per_second") > 0
    return message


# -- many seeds -----------------------------------------------------------------------------------


def test_seeds_that_keep_all_rules_are_counted(cli: Cli) -> None:
    outcome = cli("simulate", "--seeds", "0..3", *SMALL)
    assert outcome.status == 0
    first, *rows = outcome.out.splitlines()
    assert first == "seeds 0..3, 3 peers, all faults: every rule held"
    counted = {re.sub(r" +[\d,]+$", "", row).strip() for row in rows if row.startswith("  ")}
    assert {"crashes", "lost messages", "Notify", "events published", "notifications"} <= counted
    assert re.fullmatch(r"3 seeds in \d+\.\d s, \d+\.\d seeds per second\n", outcome.err)


def test_json_output_has_the_numbers_of_the_table(cli: Cli) -> None:
    table = cli("simulate", "--seeds", "5..7", *SMALL).out
    message = without_times(cli("simulate", "--seeds", "5..7", *SMALL, "--json").json)
    assert message["ok"]
    assert (message["seeds"], message["played"], message["peers"]) == ("5..7", 2, 3)
    assert message["faults"] == list(FAULTS)
    assert (message["broken"], message["minimised"], message["interrupted"]) == ([], None, False)
    for group in ("injected", "messages", "records", "asked"):
        assert message[group]
        for name, number in message[group].items():
            assert re.search(rf"^  {name} +{number:,}$", table, re.MULTILINE)


def test_few_seeds_mention_the_rules_that_they_never_asked(cli: Cli) -> None:
    words = ("simulate", "--seeds", "0..1", *SMALL)
    message, table = cli(*words, "--json").json, cli(*words)
    assert message["ok"]
    assert message["asked"]["Owed"] > 0
    assert message["never_asked"]
    assert {message["asked"][rule] for rule in message["never_asked"]} == {0}
    assert table.status == 0
    assert f"\nnever asked: {', '.join(message['never_asked'])}. In 1 seed there" in table.out


def test_campaign_fails_if_a_rule_had_nothing_to_decide_in_many_seeds(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaigns, "ASKED_WITHIN", 1)
    monkeypatch.setattr(campaigns, "ENOUGH_PEERS", 3)
    words = ("simulate", "--seeds", "0..1", *SMALL)
    message, table = cli(*words, "--json").json, cli(*words)
    assert not message["ok"]
    rules = len(message["never_asked"])
    assert table.status == 1
    assert re.match(rf"seeds 0..1, 3 peers, all faults: {rules} rules? never asked\n", table.out)
    assert f"\nnever asked: {', '.join(message['never_asked'])}. In 1 seed there" in table.out


def test_single_number_is_a_range_from_0(cli: Cli) -> None:
    words = (*SMALL, "--faults", "none")
    outcome = cli("simulate", "--seeds", 2, *words)
    assert outcome.out == cli("simulate", "--seeds", "0..2", *words).out


def test_faults_are_chosen_by_name(cli: Cli) -> None:
    outcome = cli("simulate", "--seeds", "0..2", *SMALL, "--faults", "restore, crash", "--json")
    assert outcome.json["faults"] == ["crash", "restore"]
    assert set(outcome.json["injected"]) <= {
        *("crashes", "restores", "lost messages", "duplicated messages"),
    }
    message = cli("simulate", "--seeds", "0..1", *SMALL, "--faults", "none")
    assert message.out.startswith("seeds 0..1, 3 peers, no faults: every rule held\n")
    message = cli("simulate", "--seeds", "0..1", *SMALL, "--faults", "loss,crash")
    assert message.out.startswith("seeds 0..1, 3 peers, faults loss, crash: every rule held\n")


def test_fresh_seeds_can_be_repeated(cli: Cli) -> None:
    fresh = cli("simulate", "--fresh", 2, *SMALL)
    (seeds,) = re.findall(r"^fresh seeds; the same again: --seeds (\d+\.\.\d+)$", fresh.err, re.M)
    again = cli("simulate", "--seeds", seeds, *SMALL)
    assert (again.status, again.out) == (fresh.status, fresh.out)
    assert f"seeds {seeds}, " in fresh.out


def test_output_is_the_same_with_any_number_of_jobs() -> None:
    words = [*QNS, "simulate", "--seeds", "10..16", *SMALL, "--json"]
    message = []
    for number, hash_seed in (("1", "1"), ("2", "2")):
        done = run([*words, "--jobs", number], PYTHONHASHSEED=hash_seed)
        assert (done.returncode, done.stderr) == (0, b"")
        message.append(without_times(json.loads(done.stdout)))
    assert message[0] == message[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--faults", "loss,crsh"], "unknown fault 'crsh' (did you mean crash?)"),
        (
            ["--faults", ""],
            "unknown fault '' (known: bounds, clock, clock-step, crash, delay, disk-full, ",
        ),
        (["--seeds", "3..3"], "no seed is in 3..3 (the end must be after the start)"),
        (["--seeds", "9..4"], "no seed is in 9..4 (the end must be after the start)"),
        (["--seeds", "1-5"], "'1-5' is no range of seeds (write it as 0..200, or 200)"),
        (["--seeds", "1" * 99], "is no range of seeds"),
        (["--peers", "1"], "--peers 1 is out of range (give 2 to 50)"),
        (["--peers", "51"], "--peers 51 is out of range (give 2 to 50)"),
        (["--jobs=-1"], "--jobs -1 is negative (give a number of processes, or 0 for all cores)"),
        (["--fresh", "0"], "--fresh 0 is out of range (give 1 or more)"),
        (["--replay=-3"], "there is no seed -3 (seeds count from 0)"),
        (["--history", "h.jsonl"], "--history needs --replay (name the seed to replay)"),
        (["--minimise"], "--minimise needs --replay (name the seed to replay)"),
    ],
)
def test_wrong_arguments_are_reported_with_a_remedy(
    arguments: list[str], message: str, cli: Cli
) -> None:
    outcome = cli("simulate", *arguments)
    assert outcome.status == 2
    assert outcome.err.startswith("qns: error: ")
    assert message in outcome.err
    assert not outcome.out


@pytest.mark.parametrize(
    "arguments", [["--seeds", "3", "--fresh", "3"], ["--peers", "x"], ["--replay", "0..3"]]
)
def test_wrong_usage_exits_with_status_2(arguments: list[str], cli: Cli) -> None:
    outcome = cli("simulate", *arguments)
    assert outcome.status == 2
    assert outcome.err.startswith("usage: ")


# -- a broken rule --------------------------------------------------------------------------------


def test_broken_rule_is_reported_with_the_minimised_plan(cli: Cli) -> None:
    with switched_on(BUG):
        outcome = cli("simulate", "--seeds", "0..2")
    assert outcome.status == 1
    assert outcome.out.startswith("seeds 0..2, 6 peers, all faults: 2 of 2 seeds broke a rule\n")
    message = re.search(
        r"^seed 0, ([\w ]+): \d of 1\d\d actions are enough \(found in \d+ runs\)$.*",
        outcome.out,
        re.MULTILINE | re.DOTALL,
    )
    assert message is not None
    trace, rule = message[0], message[1]
    assert re.search(rf"^qns simulate --replay 0  {rule}", outcome.out, re.MULTILINE)
    assert re.search(r"^qns simulate --replay 1  \w", outcome.out, re.MULTILINE)
    actions = re.findall(
        r"^ *\d+\.\d{3} s  Met\d\d +subscribe +sub=s\d+ text=", trace, re.MULTILINE
    )
    assert 1 <= len(actions) <= 6
    assert f"\n\n{rule}: " in trace
    assert trace.endswith("\nwith its history: qns simulate --replay 0 --minimise\n")


def test_broken_rule_is_reported_as_json(cli: Cli) -> None:
    words = ("--peers", "5", "--faults", "none")
    with switched_on(BUG):
        outcome = cli("simulate", "--seeds", "0..2", *words, "--json")
    assert outcome.status == 1
    message = outcome.json
    assert not message["ok"]
    first = message["broken"][0]
    assert first["replay"] == f"qns simulate --replay {first['seed']} --peers 5 --faults none"
    small = message["minimised"]
    assert small["seed"] == first["seed"]
    assert small["violation"]["rule"] == first["violations"][0]["rule"]
    assert 1 <= len(small["plan"]["actions"]) + len(small["plan"]["calm_actions"]) <= 6
    assert 2 <= len(small["plan"]["organisations"]) <= 3


def test_replay_with_minimise_shows_the_same_failure(cli: Cli, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    with switched_on(BUG):
        found = cli("simulate", "--seeds", "1..2", "--json").json["minimised"]
        again = cli("simulate", "--replay", 1, "--minimise", "--history", history, "--json")
    assert again.status == 1
    assert again.json["plan"] == found["plan"]
    assert found["violation"] in again.json["violations"]
    lines = history.read_text(encoding="utf-8").splitlines()
    assert list(map(json.loads, lines)) == again.json["history"]


def test_exception_is_reported_by_its_last_line_and_in_a_replay_by_its_stack(
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


def test_failures_beyond_the_limit_are_listed_by_seed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(scenario.Scenario, "_do_publish")
    outcome = cli("simulate", "--seeds", "0..23", *SMALL)
    assert outcome.out.count("qns simulate --replay ") == 21
    assert "\nand seeds 20, 21, 22\n" in outcome.out


def test_failure_that_does_not_repeat_is_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = scenario.Scenario.run
    runs = [0]

    def first_run_only(self: scenario.Scenario) -> scenario.ScenarioResult:
        outcome = original(self)
        runs[0] += 1
        return (
            outcome
            if runs[0] > 1
            else scenario.ScenarioResult(0, ["Rest: no."], [*outcome.history], {})
        )

    monkeypatch.setattr(scenario.Scenario, "run", first_run_only)
    outcome = cli("simulate", "--seeds", "0..1", *SMALL)
    assert outcome.status == 1
    assert "qns simulate --replay 0 --peers 3  Rest\n" in outcome.out
    assert "seed 0 broke no rule in a second run: the simulator depends on more" in outcome.out


# -- one seed -------------------------------------------------------------------------------------


def test_replay_prints_plan_history_and_verdict(cli: Cli) -> None:
    outcome = cli("simulate", "--replay", 7, *SMALL)
    assert (outcome.status, outcome.err) == (0, "")
    plan, history, verdict = outcome.out.split("\n\n")
    assert plan.startswith("stores in ")
    peers = re.findall(r"^Met0\d  fan-out \d, clock [+-]\d+\.\d{3} s, hosts Report", plan, re.M)
    assert len(peers) == 3
    assert "\nwith faults:\n" in plan
    assert "\nafter the faults, counted from their end:\n" in plan
    assert re.match(r"    1     0\.000 s         schema\n    2     0\.000 s  Met01  join ", history)
    assert re.search(r"^ +\d+ +\d+\.\d{3} s  Met0\d  pub     id=e\d+ class=Report", history, re.M)
    assert max(map(len, history.splitlines())) <= 160
    assert verdict == "seed 7: every rule held\n"
    assert cli("simulate", "--replay", 7, *SMALL).out == outcome.out


def test_replayed_history_can_be_verified(cli: Cli, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    outcome = cli("simulate", "--replay", 4, *SMALL, "--history", history, "--json")
    assert outcome.status == 0
    verified = cli("verify", history, "--json")
    assert verified.status == 0
    counts = verified.json["counts"]
    assert counts["records"] == len(outcome.json["history"])
    assert verified.json["calm"]


def test_verify_finds_the_failure_of_the_simulator(cli: Cli, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    with switched_on("late subscriber served twice"):
        outcome = cli(
            "simulate", "--replay", 0, "--faults", "crash", "--history", history, "--json"
        )
    assert outcome.status == 1
    found = {
        (each["rule"], each["explanation"])
        for each in outcome.json["violations"]
        if each["rule"] not in AUDITED
    }
    verified = cli("verify", history, "--json").json["violations"]
    assert found == {(each["rule"], each["explanation"]) for each in verified}


def test_unwritable_history_is_reported(cli: Cli, tmp_path: Path) -> None:
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
def test_record_is_printed_as_one_short_line(record: dict[str, Any], line: str) -> None:
    assert record_line(17, record) == line
    assert len(record_line(17, {**record, "why": "x" * 1_000})) == 160


# -- terminals and signals ------------------------------------------------------------------------


def test_progress_is_shown_only_on_a_terminal() -> None:
    words = [*QNS, "simulate", "--seeds", "0..4", *SMALL]
    status, shown = on_a_terminal(words, only_errors=True)
    assert status == 0
    assert b"playing seeds, 0 violations" in shown
    assert b"4/4" in shown
    done = run(words)
    assert re.fullmatch(rb"4 seeds in .* seeds per second\n", done.stderr)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_prints_the_results_so_far(jobs: str) -> None:
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
        pieces = [shown]

        def read_rest() -> None:  # a terminal that nobody reads stops the command
            with suppress(OSError):  # until the other end has gone
                while piece := os.read(leader, 65_536):
                    pieces.append(piece)

        reading = Thread(target=read_rest)
        reading.start()
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        reading.join()
    os.close(leader)
    shown = b"".join(pieces)
    assert process.returncode == 130
    message = re.match(rb"seeds 0..999999, 3 peers, all faults: stopped after (\d+) seeds?, ", out)
    assert message is not None
    assert int(message[1]) >= 1
    assert b"events published" in out
    assert b"Traceback" not in shown


def test_killed_worker_process_is_reported(tmp_path: Path) -> None:
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
    message = "a worker process was killed (if memory ran out, use fewer --jobs)"
    assert done.stderr.decode() == f"qns: error: {message}\n"
