"""Runs compute each scenario once, can be resumed, and never leave an incomplete report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qns.errors import QnsError, StoreFull
from qns.pipeline.run.plan import Plan
from qns.pipeline.run.resumable_run import Files, run_into_folder
from qns.pipeline.run.savings import work_of
from qns.pipeline.run.work import Work
from qns.pipeline.spark.calls import calls
from qns.pipeline.tables import TABLES, Tables
from tests.pipeline import jobs
from tests.pipeline.test_folder import small_files

ROOT = Path(__file__).parents[2]
DETERMINED = [name for name in TABLES if name != "cost"]
"""The tables that the scenario determines."""
SMALL = Plan(
    organisations=(3,),
    subscriptions=(20, 60),
    seeds=2,
    mappings=("partial",),
    churns=(0.0, 0.3),
    publications=(20,),
    fan_outs=(0, 2),
    exact_merging=True,
)


def page(_: Work, tables: Tables) -> Files:
    text = ", ".join(f"{name} {table.num_rows}" for name, table in tables.items())
    return {"report.html": text.encode(), "figures/one.svg": b"<svg/>"}


def files(folder: Path) -> dict[str, bytes]:
    """The files that depend only on the plan."""
    return {
        each.relative_to(folder).as_posix(): each.read_bytes()
        for each in folder.rglob("*.parquet")
        if each.stem in DETERMINED
    }


def costs(folder: Path) -> dict[str, bytes]:
    """The files that differ each time they are computed."""
    return {name: (folder / f"scenarios/{name}/cost.parquet").read_bytes() for name in kept(folder)}


def kept(folder: Path) -> set[str]:
    """The finished scenarios; an incomplete folder has another name."""
    return {each.name for each in folder.glob("scenarios/*") if not each.name.endswith(".new")}


def test_run_writes_tables_and_a_report(spark: SparkSession, tmp_path: Path) -> None:
    stages: list[tuple[str, float]] = []
    done = run_into_folder(
        work_of(SMALL),
        tmp_path,
        page,
        on_progress=lambda stage, share: stages.append((stage, share)),
    )
    assert (done.computed, done.resumed) == (4, 0)
    assert {*done.tables} == {"subscriptions", "beyond", "notifications", "trees", "cost"}
    assert done.tables["subscriptions"].num_rows == 4 * 3 * 2 * 3  # at 20, 50 and 60
    for name in done.tables:
        assert (tmp_path / f"{name}.parquet").is_file()
    assert (tmp_path / "report.html").read_text("utf-8").startswith("subscriptions 72, beyond 72")
    assert json.loads((tmp_path / "run.json").read_bytes())["asked"]["seeds"] == 2
    assert ("starting Spark", 0.0) in stages
    assert ("computing, 4 of 4 scenarios", 1.0) in stages
    assert stages[-1] == ("drawing the report", 0.0)


def test_finished_scenarios_are_not_computed_again(spark: SparkSession, tmp_path: Path) -> None:
    work = work_of(SMALL)
    run_into_folder(work, tmp_path, page)
    before, took = files(tmp_path), costs(tmp_path)
    (tmp_path / "report.html").unlink()
    (tmp_path / "subscriptions.parquet").unlink()
    lost = next(iter(work.groups))
    (tmp_path / "scenarios" / lost / "done").unlink()
    done = run_into_folder(work, tmp_path, page)
    assert (done.computed, done.resumed) == (1, 3)
    assert files(tmp_path) == before
    assert {name for name, cost in costs(tmp_path).items() if cost != took[name]} == {lost}
    assert (tmp_path / "report.html").exists()


def test_finished_run_needs_no_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_into_folder(work_of(SMALL), tmp_path, page)
    monkeypatch.setattr("qns.pipeline.run.resumable_run.session", None)
    assert run_into_folder(work_of(SMALL), tmp_path, page).computed == 0


def test_failed_task_leaves_no_report(spark: SparkSession, tmp_path: Path) -> None:
    work = work_of(SMALL)
    groups = {**work.groups, "last": [calls("the last one", jobs.refusing, [(1,)])]}
    run_into_folder(work, tmp_path, page)
    with pytest.raises(QnsError, match="the last one: no squares today"):
        run_into_folder(Work(work.asked, work.scenarios, groups), tmp_path, page)
    assert not (tmp_path / "report.html").exists()


def test_full_disk_at_the_end_leaves_no_report(spark: SparkSession, tmp_path: Path) -> None:
    def large(work: Work, tables: Tables) -> Files:
        return {**page(work, tables), "figures/large.png": b"x" * 300_000}

    with small_files(200_000), pytest.raises(StoreFull):
        run_into_folder(work_of(SMALL), tmp_path, large)
    assert not (tmp_path / "report.html").exists()
    assert run_into_folder(work_of(SMALL), tmp_path, large).resumed == 4
    assert (tmp_path / "report.html").exists()


def test_invalid_master_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(QnsError, match="'sprak' is no Spark master"):
        run_into_folder(work_of(SMALL), tmp_path / "new", page, "sprak")
    assert not (tmp_path / "new").exists()


KILLED = """
import sys
from pathlib import Path
from qns.pipeline.run.resumable_run import run_into_folder
from qns.pipeline.spark.calls import calls
from tests.pipeline import jobs
from tests.pipeline.test_run import SMALL, Work, page, work_of
work, folder, out = work_of(SMALL), sys.argv[1], Path(sys.argv[2])
waiting = [calls("waiting", jobs.waiting, [(folder, "task", 1)])]
groups = {**work.groups, [*work.groups][-1]: waiting}
run_into_folder(Work(work.asked, work.scenarios, groups), out, page, "local[2]")
"""


@pytest.mark.slow
def test_run_is_resumed_after_its_driver_was_killed(spark: SparkSession, tmp_path: Path) -> None:
    out, work = tmp_path / "out", work_of(SMALL)
    *first, last = work.groups
    begun = tmp_path / "task.begun"
    words = [sys.executable, "-c", KILLED, str(tmp_path), str(out)]
    with subprocess.Popen(words, cwd=ROOT) as process:
        try:
            wait_for(lambda: begun.exists() and kept(out) == {*first})
        finally:
            process.kill()
    worker = int(begun.read_text(encoding="ascii"))
    wait_for(lambda: not is_alive(worker))  # and with it the JVM that it had started
    assert not (out / "report.html").exists()
    took = costs(out)
    assert {*took} == {*first}
    done = run_into_folder(work, out, page)
    assert (done.computed, done.resumed) == (1, 3)
    assert {name: cost for name, cost in costs(out).items() if name != last} == took
    run_into_folder(work, tmp_path / "other", page)
    assert files(out) == files(tmp_path / "other")
    assert not list(out.glob(".spark-*"))


def wait_for(condition: object, patience_s: float = 600) -> None:
    assert callable(condition)
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
