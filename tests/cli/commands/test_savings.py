"""Tests of `qns savings`."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_main import QNS, on_a_terminal, run, started_in_own_group
from tests.pipeline.conftest import spark
from tests.pipeline.test_run import wait_for

__all__ = ["spark"]

SMALL = ("--organisations", "3", "--subscriptions", "10,30", "--seeds", "2", "--publications", "20")


@pytest.mark.slow
def test_summary_is_printed_as_text_and_as_json(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [*QNS, "savings", *SMALL, "--trees", "--exact-merging", "--out", str(out)]
    status, shown = on_a_terminal([*words, "--master", "local[2]"], only_errors=True)
    assert status == 0
    assert b"starting Spark" in shown
    assert re.search(rb"computing, \d of 4 scenarios", shown)
    assert {each.name for each in out.glob("*.parquet")} == {
        f"{name}.parquet" for name in ("subscriptions", "beyond", "notifications", "trees", "cost")
    }
    assert b"<svg" in (out / "report.html").read_bytes()
    assert list(out.glob("figures/*.png"))
    again = run(words)
    assert (again.returncode, again.stderr) == (0, b"")
    text = again.stdout.decode()
    assert re.search(r"^partial mapping, 30 subscriptions of each organisation$", text, re.M)
    assert re.search(r"^  trivial +180 +180$", text, re.M)
    assert re.search(r"^  both: QNS +\d+ +\d+\.\d % +\d+ +\d+\.\d %$", text, re.M)
    assert "of 20 events" in text
    assert text.endswith(f"report: {out}/report.html (4 scenarios, 4 of them before)\n")
    message = json.loads(run([*words, "--json"]).stdout)
    assert (message["scenarios"], message["computed"], message["resumed"]) == (4, 0, 4)
    for each in message["mappings"]:
        assert each["messages"]["trivial"] == 30 * 3 * 2
        assert each["messages"]["both"] <= min(each["messages"][n] for n in ("mapping", "trivial"))
        assert set(each["rows"]["saved_percent"]) == {"mapping", "containment", "both"}
        assert each["notifications"]["published"] == 20
    other = run([*words, "--seeds", "3"])
    assert other.returncode == 2
    assert other.stderr.decode().startswith(
        f"qns: error: {out}: the folder holds another run (choose another folder"
    )


@pytest.mark.slow
def test_recorded_history_is_replayed(tmp_path: Path) -> None:
    made, out = tmp_path / "made", tmp_path / "out"
    drawn = ("--organisations", "4", "--subscriptions", "20", "--publications", "50")
    assert (
        run([*QNS, "pipeline", "generate", "--files", *drawn, "--out", str(made)]).returncode == 0
    )
    files = [str(made / name) for name in ("SUBS.parquet", "EVENTS.parquet")]
    words = ["savings", "--from", *files, "--schema", "weather", "--master", "local[1]"]
    done = run([*QNS, *words, "--trees", "2", "--json", "--out", str(out)])
    assert (done.returncode, done.stderr) == (0, b"")
    (full,) = json.loads(done.stdout)["mappings"]
    assert (full["mapping"], full["subscriptions"]) == ("full", 20)
    assert full["messages"]["trivial"] == 20 * 4 * 3
    assert full["notifications"]["published"] == 50
    assert (out / "report.html").exists()


@pytest.mark.usefixtures("spark")
def test_stored_workload_is_merged(cli: Cli, tmp_path: Path) -> None:
    path, out = f"file://{tmp_path}/workload", tmp_path / "out"
    drawn = ("--organisations", 3, "--subscriptions", 30, "--publications", 5, "--churn", 0.2)
    made = cli("pipeline", "generate", *drawn, "--out", path, "--json")
    assert made.status == 0
    assert made.json["subscriptions"] == f"{path}/subscriptions"
    merged = cli("savings", "--workload", path, "--out", out, "--json")
    assert (merged.status, merged.err) == (0, "")
    (partial,) = merged.json["mappings"]
    assert (partial["mapping"], partial["subscriptions"]) == ("partial", 30)
    assert partial["messages"]["trivial"] > 30 * 3 * 2
    assert (out / "report.html").exists()
    again = cli("savings", "--workload", path, "--out", out, "--json")
    assert again.json["resumed"] == 1
    refused = cli("savings", "--workload", path, "--mapping", "full", "--out", tmp_path / "b")
    assert "unknown mapping 'full'" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--workload", "s3a://bucket/x", "--hard"],
            "--hard is for generated workloads only (leave it out beside --workload PATH)",
        ),
        (["--workload", "a/b", "--workload", "zipf=2"], "more than one --workload with a path"),
        (["--schema", "wether"], "unknown schema 'wether' (did you mean weather?"),
        (["--schema", "no.dtd"], "the schema file 'no.dtd' cannot be read"),
        (["--organisations", "1"], "1 organisations (from 2 to 500)"),
        (["--organisations", "x"], "--organisations 'x' is no list of numbers"),
        (["--subscriptions", "0"], "no subscriptions"),
        (["--subscriptions", "10,"], "--subscriptions '10,' is no list of numbers"),
        (["--subscriptions", "100,10"], "do not rise"),
        (["--subscriptions", "1" * 50], "is no list of numbers"),
        (["--seeds", "0"], "0 seeds (from 1 to 1,000)"),
        (["--churn", "1"], "churn 1 (from 0 to below 1)"),
        (["--churn", "much"], "--churn 'much' is no share"),
        (["--publications", "0", "--trees"], "trees without publications"),
        (["--trees", "99999"], "the fan-out 99999"),
        (["--workload", "zipff=1"], "unknown parameter of the workload 'zipff' (did you mean zipf"),
        (["--workload", "zipf"], "zipf has no value (as in zipf=0.5)"),
        (["--workload", "zipf=wide"], "zipf is 'wide' (give a number, as in 0.5)"),
        (["--workload", "values=0.5"], "values is '0.5' (give a whole number)"),
        (["--workload", "values=1"], "values is 1 (from 2 to 10,000)"),
        (["--workload", "mildest_first=maybe"], "mildest_first is 'maybe' (yes or no)"),
        (["--workload", "equality=1"], "are more than all"),
        (["--mapping", "half"], "unknown mapping 'half'"),
        (["--from", "none.parquet"], "none.parquet: there is no such file"),
        (
            ["--from", "x.db", "--seeds", "3"],
            "--seeds is for generated workloads only (leave it out",
        ),
        (["--master", "sprak"], "'sprak' is no Spark master"),
    ],
)
def test_wrong_options_are_reported_with_a_remedy(
    arguments: list[str], message: str, cli: Cli, tmp_path: Path
) -> None:
    outcome = cli("savings", *arguments, "--out", tmp_path / "out")
    assert outcome.status == 2
    assert outcome.err.startswith("qns: error: ")
    assert message in outcome.err
    assert not outcome.out
    assert not (tmp_path / "out" / "report.html").exists()


def test_unreachable_cluster_is_reported(tmp_path: Path) -> None:
    # In a process of its own: a session that runs already would be used instead.
    words = ["savings", *SMALL, "--master", "spark://127.0.0.1:1", "--out", str(tmp_path / "out")]
    done = run([*QNS, *words])
    assert (done.returncode, done.stdout) == (2, b"")
    assert "no Spark master answers: Connection refused" in done.stderr.decode()
    assert not (tmp_path / "out" / "report.html").exists()


def test_folder_that_cannot_be_created_is_reported(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = cli("savings", *SMALL, "--out", tmp_path / "file" / "out")
    assert outcome.status == 2
    assert "cannot be written: Not a directory (choose another folder)" in outcome.err


def test_ctrl_c_prints_nothing_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["savings", "--subscriptions", "10,5000", "--seeds", "50", "--publications", "0"]
    more = ["--exact-merging", "--master", "local[1]", "--out", str(out)]
    with started_in_own_group(*words, *more) as process:
        try:
            wait_for(lambda: list(out.glob(".spark-*/blockmgr-*")))
            os.killpg(process.pid, signal.SIGINT)
            message = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, *message) == (130, b"", b"")
    assert not (out / "report.html").exists()
    assert not list(out.glob(".spark-*"))
