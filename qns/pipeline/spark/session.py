"""Session: a Spark session on this computer or on a cluster, with its start and its end.

The output of Java and Spark goes into a file, never to the screen. Executors get the code of `qns`
from the driver, so that all run the same version.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import qns
from qns.errors import QnsError, ValueRefused, shorten
from qns.pipeline.spark.java import java_home
from qns.pipeline.spark.remote import PREFIX, checked_remote, is_remote, remote_session

ATTEMPTS: Final = 4
"""The number of attempts at a task before the run fails, because workers may be killed."""
CONNECT_S: Final = 10.0
EXECUTORS_S: Final = 120.0
"""The timeout for the first executor of a cluster."""
LOG: Final = "spark.log"

_LOCAL: Final = re.compile(r"local(?:\[(\*|\d{1,4})\])?", re.ASCII)
_MASTER: Final = re.compile(
    r"local(?:\[(?:\*|\d{1,4})(?:,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|yarn|spark://.+|k8s://.+",
    re.ASCII,
)
_ADDRESS: Final = re.compile(r"\[?([^\[\]]+?)\]?:(\d{1,5})", re.ASCII)
_CODE: Final = "qns_code"
_ENDING_S: Final = 30.0
# These variables would select a Spark Connect server instead of the local Spark.
_MISLEADING: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE")
_NOT_PYTHON: Final = {".pyc", ".nbi", ".nbc"}
_CAUSE: Final = re.compile(
    r"^(?:Caused by: |Exception in thread .*?|.*? ERROR .*?: )?((?:[\w$]+\.)+\w*(?:Exception|Error)"
    r"(?:: .+)?)$",
    re.MULTILINE,
)


class SparkFailed(QnsError):
    """Spark did not start, or lost its cluster."""


@contextmanager
def session(master: str | None, app: str, work: Path) -> Iterator[SparkSession]:
    """Opens a session on that master; None means that of spark-submit, or all cores here.

    An address `sc://host:15002` is that of a Spark Connect server.
    A session that already runs in this process (of a notebook) is used as it is and stays open.
    `work` is the folder for scratch files and for the log.
    """
    if master is not None and master.startswith(PREFIX):
        with remote_session(master) as spark:
            yield spark
        return
    running = SparkContext._active_spark_context
    if running is not None:
        yield SparkSession(running)
        return
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is None and not is_submitted:
        master = "local[*]"
    if master is not None:
        master = checked_master(master)
        _check_reachable(master)
    before = signal.getsignal(signal.SIGINT)
    with (
        _quiet_py4j(),
        tempfile.TemporaryDirectory(prefix=".spark-", dir=work, ignore_cleanup_errors=True) as tmp,
    ):
        scratch, log = Path(tmp), work / LOG
        context = None
        try:
            with _environment(_variables(master, scratch, is_submitted)):
                context = _start(_conf(master, app, scratch), log)
            if not is_local(str(context.master)):
                context.addArchive(f"{_packed_code(scratch)}#{_CODE}")
                wait_for_executors(context, EXECUTORS_S)
            yield SparkSession(context)
        finally:
            _end(context)
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Suppresses the stack trace that py4j logs to the screen on Ctrl-C."""
    silence = logging.NullHandler()
    logging.getLogger("py4j").addHandler(silence)
    logging.root.addHandler(silence)
    try:
        yield
    finally:
        logging.root.removeHandler(silence)


def is_local(master: str) -> bool:
    """True if Spark runs on this computer, in processes of ours."""
    return master.startswith("local") and not master.startswith("local-cluster")


def checked_master(master: str) -> str:
    """Validates a master, and adds the attempts to `local[N]`, which would try a task only once."""
    if master.startswith(PREFIX):
        return checked_remote(master)
    if not _MASTER.fullmatch(master) or master in ("local[0]", "spark://", "k8s://"):
        raise ValueRefused(
            f"{shorten(master)} is no Spark master",
            remedy="local[*], local[2], spark://host:7077, yarn or k8s://https://host:port",
        )
    if found := _LOCAL.fullmatch(master):
        cores = _cores() if found[1] == "*" else int(found[1] or 1)
        return f"local[{cores},{ATTEMPTS}]"
    return master


def _cores() -> int:
    """The number of cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def has_cluster(spark: SparkSession) -> bool:
    """True if this process is the driver of a cluster, so that it can count the executors."""
    return not is_remote(spark) and not is_local(str(spark.sparkContext.master))


def executors(context: SparkContext) -> int:
    """The current number of executors without the driver."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def wait_for_executors(context: SparkContext, patience_s: float) -> None:
    end = monotonic() + patience_s
    while not executors(context):
        if monotonic() > end:
            raise SparkFailed(
                f"no executor within {patience_s:.0f} s",
                place=str(context.master),
                remedy="are workers running that have free cores and memory?",
            )
        sleep(0.1)


def failure(problem: Exception, log: Path | None = None) -> SparkFailed:
    """Translates an error of Java, Spark or py4j into its innermost cause, in one line."""
    text = str(getattr(problem, "java_exception", "") or problem)
    if log is not None:
        with suppress(OSError):
            text += "\n" + log.read_text(encoding="utf-8", errors="replace")[-100_000:]
    causes = _CAUSE.findall(text)
    reason = str(causes[-1] if causes else text.strip().splitlines()[0] if text.strip() else "")
    return SparkFailed(
        f"Spark has failed: {reason[:300] or type(problem).__name__}",
        remedy=f"more is in {log}" if log is not None else "",
    )


# -- starting -------------------------------------------------------------------------------------


def _start(conf: SparkConf, log: Path) -> SparkContext:
    try:
        with log.open("wb") as output:
            # The gateway of spark-submit, or a new JVM that ends with this process.
            gateway = launch_gateway(conf, popen_kwargs={"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
            return SparkContext(gateway=gateway, conf=conf)
    except (PySparkException, Py4JError, OSError, ValueError) as problem:
        raise failure(problem, log) from None


def _conf(master: str | None, app: str, scratch: Path) -> SparkConf:
    conf = SparkConf(loadDefaults=False).setAppName(app)
    conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.log.level", "WARN").set("spark.task.maxFailures", str(ATTEMPTS))
    conf.set("spark.local.dir", str(scratch)).set("spark.sql.warehouse.dir", str(scratch))
    # A resource manager that does not answer is reported after one minute instead of fifteen.
    conf.set("spark.hadoop.yarn.resourcemanager.connect.max-wait.ms", "60000")
    # Executors of a cluster unpack our code into their folder; local workers import it from here.
    here = str(Path(qns.__file__).parents[1])
    conf.set("spark.executorEnv.PYTHONPATH", os.pathsep.join((_CODE, here)))
    if master is not None:
        conf.setMaster(master)
        if is_local(master):
            conf.set("spark.driver.memory", "2g")
            conf.set("spark.driver.extraJavaOptions", _SMALL_JVM)
    return conf


def _variables(master: str | None, scratch: Path, is_submitted: bool) -> dict[str, str | None]:
    """Environment variables for the start of Spark; None removes a variable."""
    changes: dict[str, str | None] = dict.fromkeys(_MISLEADING)
    if not is_submitted:
        changes["JAVA_HOME"] = str(java_home(scratch))
    if master is None:
        return changes
    if is_local(master):
        changes |= {"SPARK_HOME": None, "PYSPARK_PYTHON": sys.executable}
        changes["PYSPARK_DRIVER_PYTHON"] = sys.executable
    elif "PYSPARK_PYTHON" not in os.environ:
        changes["PYSPARK_PYTHON"] = sys.executable
    hosts = [host for host, _ in _addresses(master)]
    if is_local(master) or (hosts and all(host in _LOOPBACK for host in hosts)):
        changes["SPARK_LOCAL_IP"] = "127.0.0.1"
    return changes


_SMALL_JVM: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Nearly all work is done by the Python workers. In a run of minutes, the JVM's second compiler
and a collector with threads of its own cost more than they save: half of the JVM's time."""

_LOOPBACK: Final = ("127.0.0.1", "localhost")


def _addresses(master: str) -> list[tuple[str, int]]:
    """The addresses of a standalone cluster: `spark://host:7077`, or several with commas."""
    found = []
    for each in master.removeprefix("spark://").split(",") if "spark://" in master else ():
        if not (address := _ADDRESS.fullmatch(each)) or not 0 < int(address[2]) < 65_536:
            raise ValueRefused(f"{shorten(master)} is no Spark master", remedy="spark://host:7077")
        found.append((address[1], int(address[2])))
    return found


def _check_reachable(master: str) -> None:
    """Raises SparkFailed at once; Spark would try for a minute and print a stack trace."""
    addresses, reason = _addresses(master), ""
    for address in addresses:
        try:
            socket.create_connection(address, timeout=CONNECT_S).close()
        except OSError as problem:
            reason = problem.strerror or str(problem)
        else:
            return
    if addresses:
        raise SparkFailed(
            f"no Spark master answers: {reason}", place=master, remedy="is it started?"
        )


def _packed_code(scratch: Path) -> Path:
    """Packs the package and its data files into an archive that executors unpack."""
    package = Path(qns.__file__).parent
    files = {each: each.relative_to(package.parent) for each in package.rglob("*")}
    if not (package / "schemas").is_dir():  # in a checkout they are beside the package
        beside = package.parent / "schemas"
        files |= {each: Path("qns/schemas", each.name) for each in beside.iterdir()}
    packed = scratch / "qns.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, name in sorted(files.items()):
            if file.is_file() and file.suffix not in _NOT_PYTHON:
                archive.write(file, name)
    return packed


# -- ending ---------------------------------------------------------------------------------------


def _end(context: SparkContext | None) -> None:
    """Ends the session and its JVM, and resets the state of pyspark."""
    gateway: Any = SparkContext._gateway
    session_ = SparkSession._instantiatedSession
    with suppress(Exception):  # the JVM may be gone already
        if session_ is not None:
            session_.stop()
        elif context is not None:
            context.stop()
    SparkContext._active_spark_context = None
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:  # the JVM of spark-submit ends with this process
        return
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()  # makes the JVM end
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set(changes)
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
