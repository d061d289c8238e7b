"""Queries: reproducible tables, errors with their place, workers that die."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from qns.errors import QnsError
from qns.pipeline.spark.calls import calls
from qns.pipeline.spark.queries import run_groups
from qns.pipeline.spark.session import SparkFailed
from tests.pipeline import jobs

ARGUMENTS = [(n, 5) for n in range(20)]
EXPECTED = {
    name: pa.concat_tables([jobs.squares(n, 5)[name] for n in range(20)])
    for name in ("counts", "squares")
}
SQUARES = calls("squares", jobs.squares, ARGUMENTS)


@pytest.mark.parametrize("weight", [0, 150_000, 10**9])
def test_tables_do_not_depend_on_the_partitions(spark: SparkSession, weight: float) -> None:
    assert jobs.run_queries(spark, calls("squares", jobs.squares, ARGUMENTS, weight)) == EXPECTED


def test_no_queries_give_no_tables(spark: SparkSession) -> None:
    assert jobs.run_queries(spark) == {}
    assert list(run_groups(spark, {})) == []


def test_groups_are_yielded_when_done_and_progress_is_reported(spark: SparkSession) -> None:
    progress: list[tuple[float, int]] = []
    groups = {
        "low": [calls("low", jobs.squares, ARGUMENTS[:3])],
        "high": [
            calls("high", jobs.squares, ARGUMENTS[3:9]),
            calls("higher", jobs.squares, ARGUMENTS[9:]),
        ],
        "none": [],
    }
    done = dict(
        run_groups(spark, groups, lambda share, finished: progress.append((share, finished)))
    )
    assert done["low"]["counts"].num_rows == 3
    assert done["high"]["counts"].num_rows == 17
    assert done["none"] == {}
    shares = [share for share, _ in progress]
    assert shares == sorted(shares)
    assert progress[-1] == (1.0, 3)


def test_error_of_a_call_is_reported_with_its_label(spark: SparkSession) -> None:
    with pytest.raises(QnsError) as caught:
        jobs.run_queries(spark, SQUARES, calls("squares of Met03", jobs.refusing, [(1,)]))
    assert type(caught.value) is QnsError
    assert str(caught.value) == "squares of Met03: no squares today (come tomorrow)"


def test_call_without_memory_is_reported(spark: SparkSession) -> None:
    with pytest.raises(QnsError, match="Met03: there is not enough memory"):
        jobs.run_queries(spark, calls("Met03", jobs.greedy, [(1,)]))


def test_bug_is_reported_with_its_stack_trace(spark: SparkSession) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)Met03.*Traceback.*LookupError: a bug"):
        jobs.run_queries(spark, calls("Met03", jobs.broken, [(1,)]))


def test_output_of_workers_is_not_shown(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    jobs.run_queries(spark, calls("noise", jobs.noisy, [(100,)]))
    assert capfd.readouterr() == ("", "")


def test_killed_worker_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    deadly = calls("deadly once", jobs.fatal_once, [(str(tmp_path / "marker"), 5)])
    assert jobs.run_queries(spark, SQUARES, deadly)["counts"].num_rows == 21
    assert (tmp_path / "marker").exists()


def test_call_that_kills_every_worker_is_reported(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SparkFailed) as caught:
        jobs.run_queries(spark, SQUARES, calls("squares of Met03", jobs.fatal, [(5,)]))
    assert str(caught.value) == (
        "squares of Met03: 4 workers died on this task, one after the other (if memory ran out, "
        "give each task more of it, or use fewer cores)"
    )
    assert jobs.run_queries(spark, SQUARES) == EXPECTED  # the session is still usable
    assert capfd.readouterr() == ("", "")
