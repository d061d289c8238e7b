"""Spark on loopback from the wheel of pyspark: a master with a worker, or a Connect server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from qns.pipeline.spark.java import java_home
from tests.pipeline.test_run import ROOT, wait_for

HOME = Path(pyspark.__file__).parent


@dataclass(frozen=True)
class Cluster:
    master: str
    worker: subprocess.Popen[bytes]


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Starts a cluster with two cores, whose executors can import the jobs of the tests."""
    master = _start(folder, "master.Master", "--port", "0")
    with _ending(master):
        log = folder / "master.Master.log"
        wait_for(lambda: re.search(r"spark://127.0.0.1:\d+", log.read_text("utf-8")) is not None)
        found = re.search(r"spark://127.0.0.1:\d+", log.read_text("utf-8"))
        assert found
        words = ("-c", "2", "-m", "1g", "-d", str(folder / "work"), found[0])
        worker = _start(folder, "worker.Worker", *words)
        with _ending(worker):
            log_ = folder / "worker.Worker.log"
            wait_for(lambda: "Successfully registered" in log_.read_text("utf-8"))
            yield Cluster(found[0], worker)


@contextmanager
def connect_server(folder: Path, cores: int = 2) -> Iterator[str]:
    """Starts a Spark Connect server, and yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [str(HOME / "bin/spark-submit"), "--master", f"local[{cores}]"]
    words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in (
        ("spark.connect.grpc.binding.port", port),
        ("spark.connect.grpc.binding.address", "127.0.0.1"),
        ("spark.ui.enabled", "false"),
        ("spark.sql.warehouse.dir", folder / "warehouse"),
    ):
        words += ["--conf", f"{name}={value}"]
    log = folder / "connect.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*words, "spark-internal"],
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, **_variables(folder), "PYSPARK_PYTHON": sys.executable},
        )
    with _ending(process):
        wait_for(lambda: process.poll() is not None or _answers(port))
        assert process.poll() is None, log.read_text("utf-8")
        yield f"sc://127.0.0.1:{port}"


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _variables(folder: Path) -> dict[str, str]:
    variables = {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(java_home(folder))}
    return variables | {"PYTHONPATH": str(ROOT), "SPARK_HOME": str(HOME)}


def _start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    words = [str(HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}"]
    words += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
    variables = _variables(folder)
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            words, stdout=log, stderr=log, cwd=folder, env={**os.environ, **variables}
        )


@contextmanager
def _ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.kill()
        process.wait()
