"""Tests of `qns lab`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from qns.lab import laboratory
from qns.lab.experiments.setups import Setups
from tests.cli.conftest import Cli
from tests.cli.test_main import QNS, on_a_terminal, run, started_in_own_group


def test_formulas_are_judged_as_text_and_as_json(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome = cli("lab", "3.9", "3.7", "--out", out)
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "yes  3.7           d against α follows eq. 3.6, and rises"
    assert lines[-1] == f"report: {out}/report.html (3 yes, 0 no, 0 open)"
    again = cli("lab", "3.7", "3.9", "--json", "--out", out).json
    assert again["report"] == f"{out}/report.html"
    assert again["figures"] == ["3.7", "3.9"]
    assert [each["holds"] for each in again["claims"]] == [True, True, True]
    assert all(each["numbers"] and each["rule"] for each in again["claims"])
    assert b"<svg" in (out / "report.html").read_bytes()
    assert {each.name for each in (out / "figures").iterdir()} == {
        f"{figure}.{kind}" for figure in ("3.7", "3.9") for kind in ("svg", "png")
    }
    other = cli("lab", "3.8", "--out", out)
    assert other.status == 2
    assert "the folder holds another report (choose another folder" in other.err


@pytest.mark.parametrize(
    ("words", "seeds"), [([], (20, 5)), (["--quick"], (2, 2)), (["--seeds", "7"], (7, 7))]
)
def test_option_seeds_replaces_the_seeds_of_the_set_up(
    words: list[str], seeds: tuple[int, int], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Setups] = []

    def no_report(figures: object, out: object, setups: Setups, *_: object) -> list[object]:
        given.append(setups)
        return []

    monkeypatch.setattr(laboratory, "make_report", no_report)
    assert cli("lab", "4.12", *words, "--out", "out").status == 0
    assert [(each.organisation.seeds, each.seeds) for each in given] == [seeds]


@pytest.mark.slow
def test_progress_bar_is_shown_and_jobs_share_the_work(tmp_path: Path) -> None:
    words = ["lab", "4.2", "--quick", "--jobs", "2", "--out", str(tmp_path / "out")]
    status, shown = on_a_terminal([*QNS, *words], only_errors=True)
    assert status == 0
    assert b"measuring" in shown
    one = run([*QNS, "lab", "4.2", "--quick", "--jobs", "1", "--out", str(tmp_path / "one")])
    assert (one.returncode, one.stderr) == (0, b"")
    for name in ("locality.csv", "report.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["4.21"], "unknown figure '4.21' (did you mean"),
        (["alll"], "unknown figure 'alll' (did you mean all?"),
        (["table-31"], "unknown figure 'table-31' (did you mean table-3.1"),
        (["3.7", "--jobs", "0"], "--jobs '0' is out of range (give 1 to 256)"),
        (["3.7", "--seeds", "1"], "--seeds '1' is out of range (give 2 to 1000)"),
        (["3.7", "--seeds", "-5"], "--seeds"),
        (["3.7", "--jobs", "many"], "--jobs 'many' is out of range"),
        (["3.7", "--jobs", "9" * 30], "is out of range"),
    ],
)
def test_wrong_arguments_are_reported_with_a_remedy(
    arguments: list[str], message: str, cli: Cli, tmp_path: Path
) -> None:
    outcome = cli("lab", *arguments, "--out", tmp_path / "out")
    assert outcome.status == 2
    assert outcome.err.startswith("qns: error: ")
    assert message in outcome.err
    assert not list(tmp_path.iterdir())


def test_existing_files_are_not_replaced(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    for out, message in (
        (tmp_path, "the folder holds other files: precious (choose an empty folder"),
        (tmp_path / "precious" / "out", "precious/out: cannot be written: "),
        (tmp_path / "precious", "precious: cannot be written: Not a directory (choose another"),
    ):
        outcome = cli("lab", "all", "--out", out)
        assert outcome.status == 2
        assert message in outcome.err
    assert (tmp_path / "precious").read_text() == "x"


def test_ctrl_c_prints_nothing_and_leaves_no_files(tmp_path: Path) -> None:
    words = ["lab", "4.12", "--jobs", "2", "--out", str(tmp_path / "out")]
    with started_in_own_group(*words) as process:
        try:
            deadline = time.monotonic() + 100
            while not list(tmp_path.glob(".out-*/lab.json")):  # it has begun
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGINT)
            message = process.communicate(timeout=100)
        finally:
            process.kill()
    assert (process.returncode, *message) == (130, b"", b"")
    assert not list(tmp_path.iterdir())
