"""Every master gives the same bytes; clusters may lose executors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from qns.d2q.shipped import WEATHER
from qns.pipeline.datasets.stored_workload import examined, merged_from
from qns.pipeline.merging.merge_frame import split
from qns.pipeline.run.folder import ordered
from qns.pipeline.run.resumable_run import run_into_folder
from tests.cli.test_main import QNS
from tests.pipeline.cluster import HOME, Cluster, cluster, connect_server
from tests.pipeline.test_run import ROOT, SMALL, files, is_alive, page, wait_for, work_of
from tests.pipeline.test_spark import no_java

__all__ = ["no_java"]

pytestmark = pytest.mark.slow

RUN = """
import sys
from pathlib import Path
from qns.pipeline.run.resumable_run import run_into_folder
from tests.pipeline.test_run import SMALL, page, work_of
run_into_folder(work_of(SMALL), Path(sys.argv[1]), page, sys.argv[2] if len(sys.argv) > 2 else None)
"""

LOSING = """
import sys
from pathlib import Path
from qns.errors import QnsError
from qns.pipeline.spark import queries
from qns.pipeline.spark.calls import calls
from qns.pipeline.spark.session import session
from tests.pipeline import jobs
queries.EXECUTORS_S = 120
master, folder = sys.argv[1:]
waiting = calls("waiting", jobs.waiting, [(folder, "task", 7)])
outcome = Path(folder, "outcome")
with session(master, "test", Path(folder)) as spark:
    found = jobs.run_queries(spark, waiting)
    outcome.write_text(str(found["squares"].num_rows), encoding="utf-8")
    queries.EXECUTORS_S = 5
    Path(folder, "go").unlink()
    try:
        jobs.run_queries(spark, waiting)
    except QnsError as problem:
        outcome.write_text(str(problem), encoding="utf-8")
"""


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("expected")
    run_into_folder(work_of(SMALL), out, page)
    return files(out)


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def started(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*words], capture_output=True, cwd=ROOT, env=os.environ, timeout=600, check=False
    )


def test_one_core_without_java_gives_the_same_bytes_and_no_output(
    expected: dict[str, bytes], tmp_path: Path, no_java: Path
) -> None:
    done = started(sys.executable, "-c", RUN, str(tmp_path / "out"), "local[1]")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert files(tmp_path / "out") == expected


def test_cluster_gives_the_same_bytes_and_no_output(
    expected: dict[str, bytes], tmp_path: Path, loopback: Cluster
) -> None:
    done = started(sys.executable, "-c", RUN, str(tmp_path / "out"), loopback.master)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert files(tmp_path / "out") == expected


def test_spark_connect_gives_the_same_bytes_and_no_output(
    expected: dict[str, bytes], tmp_path: Path
) -> None:
    with connect_server(tmp_path) as address:
        done = started(sys.executable, "-c", RUN, str(tmp_path / "out"), address)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert files(tmp_path / "out") == expected


def test_datasets_are_written_and_merged_over_spark_connect(
    spark: SparkSession, tmp_path: Path
) -> None:
    drawn = ("--organisations", "3", "--subscriptions", "40", "--churn", "0.3", "--seed", "5")
    made, out = tmp_path / "made", tmp_path / "out"
    with connect_server(tmp_path) as address:
        for words in (
            ("pipeline", "generate", *drawn, "--publications", "9", "--out", str(made)),
            ("savings", "--workload", str(made), "--out", str(out)),
        ):
            done = started(*QNS, *words, "--remote", address)
            assert done.returncode == 0, done.stderr
    (workload,) = examined(spark, str(made), WEATHER)
    here = split(merged_from(workload, spark).toArrow())["subscriptions"]
    assert ordered("subscriptions", pq.read_table(out / "subscriptions.parquet")) == ordered(
        "subscriptions", here
    )


def test_spark_submit_gives_the_same_bytes(
    expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    script = tmp_path / "script.py"
    script.write_text(RUN, encoding="utf-8")
    words = [str(HOME / "bin/spark-submit"), "--master", "local[2]"]
    done = started(*words, str(script), str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert files(tmp_path / "out") == expected


def test_lost_executor_is_replaced_and_lost_cluster_is_reported(
    tmp_path: Path, loopback: Cluster
) -> None:
    begun = tmp_path / "task.begun"
    words = [sys.executable, "-c", LOSING, loopback.master, str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT) as process:
        try:
            wait_for(begun.exists)
            worker = int(begun.read_text(encoding="ascii"))
            os.kill(executor_of(worker), signal.SIGKILL)
            (tmp_path / "go").touch()
            wait_for((tmp_path / "outcome").exists)
            assert (tmp_path / "outcome").read_text(encoding="utf-8") == "7"
            wait_for(lambda: begun.read_text(encoding="ascii") != str(worker))
            wait_for(lambda: not (tmp_path / "go").exists())
            loopback.worker.kill()
            wait_for(lambda: process.poll() is not None)
        finally:
            process.kill()
    outcome = (tmp_path / "outcome").read_text(encoding="utf-8")
    assert outcome.startswith(f"{loopback.master}: there was no executor for 5 s")
    assert not is_alive(worker)


def executor_of(worker: int) -> int:
    """Returns the JVM of the executor of a Python worker."""
    pid = worker
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert pid > 1
    return pid
