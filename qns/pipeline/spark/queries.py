"""Queries: DataFrames that Spark computes at the same time, and the tables that come of them.

Only DataFrames are used, so that everything runs on a classic session and over Spark Connect. An
error in the input that a worker detects reaches the caller as the same QnsError.
"""

from __future__ import annotations

import pickle
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from threading import Event
from time import monotonic
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from qns.errors import QnsError
from qns.pipeline.spark.progress import Progress, progress_of
from qns.pipeline.spark.session import (
    ATTEMPTS,
    EXECUTORS_S,
    SparkFailed,
    executors,
    failure,
    has_cluster,
)
from qns.pipeline.tables import Tables

InArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A transformation of Arrow batches, as `DataFrame.mapInArrow` takes it."""
OnProgress = Callable[[float, int], None]
"""Progress callback: receives the completed fraction and the number of finished groups."""

_POLL_S: Final = 0.2
_MOST_GROUPS: Final = 16
"""The most groups at a time: while the last tasks of one run, others use the free cores."""
_REFUSED: Final = re.compile(r"qns-refused:([A-Za-z0-9+/=]+):")
_WORKER_DIED: Final = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|Python worker \S* ?crashed"
)


@dataclass(frozen=True, slots=True)
class Query:
    label: str
    """A description for errors, and for the jobs in Spark's pages."""
    frame: Callable[[SparkSession], DataFrame]
    tables: Callable[[pa.Table], Tables]
    """Makes tables of the collected rows, which must be few."""
    weight: float = 1.0
    """The relative duration."""


def run_groups(
    spark: SparkSession,
    groups: Mapping[str, Sequence[Query]],
    on_progress: OnProgress = lambda _fraction, _groups: None,
) -> Iterator[tuple[str, Tables]]:
    """Yields the tables of each group as soon as all its queries are done.

    The first error ends all groups. The death of a worker is no error, unless a task kills every
    worker that tries it.
    """
    total = sum(query.weight for queries in groups.values() for query in queries) or 1.0
    watch = _Watch(spark)
    pool = ThreadPoolExecutor(_MOST_GROUPS, "group")
    running: dict[Future[Tables], str] = {}
    tag, stopped, done = f"qns-{token_hex(8)}", Event(), list[float]()
    reached = 0.0
    with progress_of(spark) as progress:
        try:
            for name, queries in groups.items():
                group = partial(_run_group, spark, tag, stopped, queries, done)
                running[pool.submit(group)] = name
            finished = 0
            while running:
                ready, _ = wait(running, _POLL_S, FIRST_COMPLETED)
                watch.check()
                for future in ready:
                    name = running.pop(future)
                    finished += 1
                    yield name, future.result()
                reached = max(reached, _reached(progress, sum(done) / total, bool(running)))
                on_progress(reached, finished)
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            if running:
                with suppress(PySparkException, Py4JError, OSError):  # the JVM may be gone
                    spark.interruptTag(tag)


def guarded(work: InArrow, label: str) -> InArrow:
    """The transformation with its errors in a form that reaches the caller (`translated`)."""
    return partial(_guarded, work, label)


def _guarded(
    work: InArrow, label: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    try:
        yield from work(batches)
    except QnsError as problem:
        raise _refused(problem.at(label)) from None
    except MemoryError:
        raise _refused(
            QnsError(
                "there is not enough memory",
                place=label,
                remedy="give each task more of it, or use fewer cores",
            )
        ) from None


def _refused(problem: QnsError) -> RuntimeError:
    return RuntimeError(f"qns-refused:{b64encode(pickle.dumps(problem)).decode()}:")


# -- on the driver --------------------------------------------------------------------------------


def _run_group(
    spark: SparkSession, tag: str, stopped: Event, queries: Sequence[Query], done: list[float]
) -> Tables:
    by_name: dict[str, list[pa.Table]] = {}
    spark.addTag(tag)
    for query in queries:
        if stopped.is_set():
            return {}
        for name, table in collected(spark, query).items():
            by_name.setdefault(name, []).append(table)
        done.append(query.weight)
    return {name: pa.concat_tables(parts) for name, parts in by_name.items()}


def collected(spark: SparkSession, query: Query) -> Tables:
    """Computes one query. Errors of Spark become those of QNS."""
    with suppress(AttributeError):  # Spark Connect has no names for jobs
        spark.sparkContext.setLocalProperty("spark.job.description", query.label)
    try:
        return query.tables(query.frame(spark).toArrow())
    except (PySparkException, Py4JError, OSError) as problem:
        raise translated(problem, query.label) from None


def translated(problem: Exception, label: str) -> Exception:
    """The error of QNS for an error of Spark: what a worker refused, died of, or could not do."""
    text = str(problem)
    if refused := _REFUSED.search(text):
        found = pickle.loads(b64decode(refused[1]))  # noqa: S301  # our own worker wrote it
        assert isinstance(found, QnsError)
        return found
    if _WORKER_DIED.search(text):
        return SparkFailed(
            f"{ATTEMPTS} workers died on this task, one after the other",
            place=label,
            remedy="if memory ran out, give each task more of it, or use fewer cores",
        )
    if "No module named 'qns" in text:
        return SparkFailed(
            "the workers cannot import qns",
            place=label,
            remedy="install the same version of qns where Spark runs",
        )
    if "Traceback" in text:
        return RuntimeError(f"{label}\n{text}")
    return failure(problem).at(label)


def _reached(progress: Progress, finished: float, is_running: bool) -> float:
    """The completed fraction: finished queries, and the finished tasks of those that run."""
    return min(1.0, finished + (1 - finished) * progress.share()) if is_running else finished


class _Watch:
    """Detects that a cluster has removed all executors and gives none back."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._has_cluster = has_cluster(spark)
        self._seen_s = monotonic()

    def check(self) -> None:
        if not self._has_cluster:
            return
        try:
            if executors(self._spark.sparkContext):
                self._seen_s = monotonic()
        except (Py4JError, OSError) as problem:
            raise failure(problem) from None
        if monotonic() > self._seen_s + EXECUTORS_S:
            raise SparkFailed(
                f"there was no executor for {EXECUTORS_S:.0f} s",
                place=str(self._spark.sparkContext.master),
                remedy="start workers; the same command resumes the run",
            )
