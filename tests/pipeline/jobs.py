"""Small jobs for tests of Spark, some of which fail, and a way to run queries."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from qns.errors import QnsError
from qns.pipeline.spark.queries import Query, run_groups
from qns.pipeline.tables import Tables


def run_queries(spark: SparkSession, *queries: Query) -> Tables:
    """Returns the tables of one group of queries."""
    ((_, tables),) = run_groups(spark, {"": queries})
    return tables


def squares(first: int, count: int) -> Tables:
    numbers = range(first, first + count)
    return {
        "squares": pa.table({"number": list(numbers), "square": [n * n for n in numbers]}),
        "counts": pa.table({"count": [count]}),
    }


def refusing(_: int) -> Tables:
    raise QnsError("no squares today", remedy="come tomorrow")


def broken(_: int) -> Tables:
    raise LookupError("a bug")


def greedy(_: int) -> Tables:
    raise MemoryError


def noisy(count: int) -> Tables:
    sys.stdout.write("noise\n" * count)
    sys.stderr.write("noise\n" * count)
    return squares(0, count)


def fatal(_: int) -> Tables:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody is here any more")


def fatal_once(marker: str, count: int) -> Tables:
    """Kills its worker the first time that it is called."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return squares(0, count)
    return fatal(count)


def waiting(folder: str, name: str, count: int) -> Tables:
    """Writes the number of its process into a file, and waits until the file `go` exists."""
    begun = Path(folder, f"{name}.begun")
    begun.with_suffix(".new").write_text(str(os.getpid()), encoding="ascii")
    begun.with_suffix(".new").rename(begun)
    while not Path(folder, "go").exists():
        time.sleep(0.05)
    return squares(0, count)
