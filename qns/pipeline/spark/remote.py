"""Remote: a session of a Spark Connect server, which needs neither Java nor a SparkContext here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from qns.errors import QnsError, ValueRefused, shorten

PREFIX: Final = "sc://"
_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"  # makes the functions of pyspark.sql those of Connect
_ADDRESS: Final = re.compile(r"sc://\[?[^\[\]/:;]+\]?(?::\d{1,5})?(?:/.*)?", re.ASCII)
_NEEDED: Final = ("grpc", "grpc_status", "google.rpc")

_running: list[SparkSession] = []


def is_remote(spark: SparkSession) -> bool:
    """True if the session is that of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def checked_remote(url: str) -> str:
    """Validates the address of a server."""
    if not _ADDRESS.fullmatch(url):
        raise ValueRefused(f"{shorten(url)} is no Spark Connect server", remedy="sc://host:15002")
    return url


@contextmanager
def remote_session(url: str) -> Iterator[SparkSession]:
    """Opens a session on a server; within another one of this process, that one is used."""
    if _running:
        yield _running[-1]
        return
    if missing := [name for name in _NEEDED if not _is_installed(name)]:
        raise QnsError(
            f"{missing[0]} is not installed, which Spark Connect needs",
            remedy='pip install "pyspark[connect]"',
        )
    before = {name: os.environ.get(name) for name in (_MODE, "SPARK_REMOTE")}
    spark = None
    try:
        try:
            spark = SparkSession.builder.remote(checked_remote(url)).create()
            assert spark.version  # the first call to the server
        except PySparkException as problem:
            reason = str(problem).strip().splitlines()[0]
            raise QnsError(
                f"no Spark Connect server answers: {shorten(reason)}",
                place=url,
                remedy="is it started?",
            ) from None
        _running.append(spark)
        yield spark
    finally:
        _running.clear()
        if spark is not None:
            with suppress(PySparkException):  # the server may be gone already
                spark.stop()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False
