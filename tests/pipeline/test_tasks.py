"""Tasks: reproducible tables, errors with their place, workers that die."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from qns.errors import QnsError
from qns.pipeline.spark.session import SparkFailed
from qns.pipeline.spark.tasks import Task, run_groups
from tests.pipeline import jobs

TASKS = [Task(jobs.squares, (n, 5), f"squares from {n}", weight=n % 7) for n in range(20)]
EXPECTED = {
    name: pa.concat_tables([jobs.squares(n, 5)[name] for n in range(20)])
    for name in ("squares", "counts")
}


@pytest.mark.parametrize("partitions", [None, 1, 3, 40])
def test_tables_do_not_depend_on_the_partitions(
    spark: SparkSession, partitions: int | None
) -> None:
    assert jobs.run_tasks(spark, TASKS, partitions=partitions) == EXPECTED


def test_no_tasks_give_no_tables(spark: SparkSession) -> None:
    assert jobs.run_tasks(spark, []) == {}
    assert list(run_groups(spark, {})) == []


def test_groups_are_yielded_when_done_and_progress_is_reported(spark: SparkSession) -> None:
    progress: list[tuple[float, int]] = []
    groups = {"low": TASKS[:3], "high": TASKS[3:], "none": []}
    done = dict(
        run_groups(spark, groups, lambda share, finished: progress.append((share, finished)))
    )
    assert done["low"]["counts"].num_rows == 3
    assert done["high"]["counts"].num_rows == 17
    assert done["none"] == {}
    shares = [share for share, _ in progress]
    assert shares == sorted(shares)
    assert progress[-1] == (1.0, 3)


def test_error_of_a_task_is_reported_with_its_label(spark: SparkSession) -> None:
    tasks = [*TASKS, Task(jobs.refusing, (1,), "squares of Met03")]
    with pytest.raises(QnsError) as caught:
        jobs.run_tasks(spark, tasks)
    assert str(caught.value) == "squares of Met03: no squares today (come tomorrow)"


def test_task_without_memory_is_reported(spark: SparkSession) -> None:
    with pytest.raises(QnsError, match="Met03: there is not enough memory"):
        jobs.run_tasks(spark, [Task(jobs.greedy, (1,), "Met03")])


def test_bug_is_reported_with_its_stack_trace(spark: SparkSession) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)Met03.*Traceback.*LookupError: a bug"):
        jobs.run_tasks(spark, [Task(jobs.broken, (1,), "Met03")])


def test_output_of_workers_is_not_shown(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs.run_tasks(spark, [Task(jobs.noisy, (100,), "noise")])
    assert capfd.readouterr() == ("", "")


def test_killed_worker_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    deadly = Task(jobs.fatal_once, (str(tmp_path / "marker"), 5), "deadly once")
    assert jobs.run_tasks(spark, [*TASKS, deadly])["counts"].num_rows == 21
    assert (tmp_path / "marker").exists()


def test_task_that_kills_every_worker_is_reported(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks = [*TASKS, Task(jobs.fatal, (5,), "squares of Met03", weight=100)]
    with pytest.raises(SparkFailed) as caught:
        jobs.run_tasks(spark, tasks)
    assert str(caught.value) == (
        "squares of Met03: 4 workers died on this task, one after the other (if memory ran out, "
        "give each task more of it, or use fewer cores)"
    )
    assert jobs.run_tasks(spark, TASKS) == EXPECTED  # the session is still usable
    assert capfd.readouterr() == ("", "")
