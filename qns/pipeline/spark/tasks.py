"""Tasks: calls of pure functions that Spark distributes over executors, and their tables.

A job is a function of a module; a task is one call of it. Its tables depend on the task alone, not
on the worker, on other tasks, or on how often a worker had to be replaced.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from threading import Event
from time import monotonic
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from qns.errors import QnsError
from qns.pipeline.spark.session import (
    ATTEMPTS,
    EXECUTORS_S,
    SparkFailed,
    executors,
    failure,
    is_local,
)
from qns.pipeline.tables import Tables

Job = Callable[..., Tables]
OnProgress = Callable[[float, int], None]
"""Progress callback: receives the completed fraction and the number of finished groups."""

_POLL_S: Final = 0.2
_MOST_GROUPS: Final = 16
"""The most groups at a time: while the last tasks of one run, others use the free cores."""
_LEAST_SHARE: Final = 0.01
_FAILED_PARTITION: Final = re.compile(r"Task (\d+) in stage")
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class Task:
    job: Job
    arguments: tuple[object, ...]
    label: str
    """A description for errors."""
    weight: float = 1.0
    """The relative duration: the longest tasks start first."""


def run_groups(
    spark: SparkSession,
    groups: Mapping[str, Sequence[Task]],
    on_progress: OnProgress = lambda _fraction, _groups: None,
    partitions: int | None = None,
) -> Iterator[tuple[str, Tables]]:
    """Yields the tables of each group as soon as all its tasks are done.

    The first error of a task ends all groups. The death of a worker is no error, unless the task
    kills every worker that tries it.
    """
    context = spark.sparkContext
    total = sum(task.weight for tasks in groups.values() for task in tasks) or 1.0
    done = context.accumulator(0.0)
    watch = _Watch(context)
    pool = ThreadPoolExecutor(_MOST_GROUPS, "group")
    running: dict[Future[Tables], str] = {}
    tag, stopped = f"qns-{token_hex(8)}", Event()
    try:
        for name, tasks in groups.items():
            bundles = _bundles(tasks, total, partitions)
            running[pool.submit(_run_group, context, tag, stopped, bundles, done)] = name
        finished = 0
        while running:
            ready, _ = wait(running, _POLL_S, FIRST_COMPLETED)
            watch.check()
            for future in ready:
                name = running.pop(future)
                finished += 1
                yield name, future.result()
            on_progress(min(1.0, done.value / total), finished)
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
        if running:
            with suppress(Py4JError, OSError):  # the JVM may be gone already
                context.cancelJobGroup(tag)


class _Watch:
    """Detects that a cluster has removed all executors and gives none back."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._seen_s = monotonic()

    def check(self) -> None:
        try:
            if is_local(str(self._context.master)) or executors(self._context):
                self._seen_s = monotonic()
        except (Py4JError, OSError) as problem:
            raise failure(problem) from None
        if monotonic() > self._seen_s + EXECUTORS_S:
            raise SparkFailed(
                f"there was no executor for {EXECUTORS_S:.0f} s",
                place=str(self._context.master),
                remedy="start workers; the same command resumes the run",
            )


# -- on the driver --------------------------------------------------------------------------------

_Bundle = list[tuple[int, Task]]
"""Tasks with their numbers in the group, which one worker computes one after the other."""


def _bundles(tasks: Sequence[Task], total: float, partitions: int | None) -> list[_Bundle]:
    """Long tasks alone, the longest first; short ones together, because of Spark's overhead."""
    numbered = sorted(enumerate(tasks), key=lambda pair: (-pair[1].weight, pair[0]))
    if partitions is not None:
        return [bundle for n in range(partitions) if (bundle := numbered[n::partitions])]
    bundles: list[_Bundle] = []
    room = 0.0
    for number, task in numbered:
        if task.weight > room:
            bundles.append([])
            room = max(total * _LEAST_SHARE, task.weight)
        bundles[-1].append((number, task))
        room -= task.weight
    return bundles


def _run_group(
    context: SparkContext, tag: str, stopped: Event, bundles: list[_Bundle], done: Any
) -> Tables:
    if not bundles or stopped.is_set():
        return {}
    context.setJobGroup(tag, bundles[0][0][1].label)
    try:
        shared = context.broadcast(bundles)
        numbers = context.parallelize(range(len(bundles)), len(bundles))
        outcomes = numbers.flatMap(partial(_compute, shared, done)).collect()
        shared.destroy()
    except (PySparkException, Py4JError, OSError) as problem:
        raise _lost(problem, bundles) from None
    by_name: dict[str, list[pa.Table]] = {}
    for _, outcome in sorted(outcomes, key=lambda pair: pair[0]):
        if isinstance(outcome, Exception):
            raise outcome
        for name, packed in outcome.items():
            by_name.setdefault(name, []).append(pa.ipc.open_stream(packed).read_all())
    return {name: pa.concat_tables(parts) for name, parts in by_name.items()}


def _lost(problem: Exception, bundles: list[_Bundle]) -> SparkFailed:
    found = _FAILED_PARTITION.search(str(problem))
    if found and int(found[1]) < len(bundles):
        return SparkFailed(
            f"{ATTEMPTS} workers died on this task, one after the other",
            place=bundles[int(found[1])][0][1].label,
            remedy="if memory ran out, give each task more of it, or use fewer cores",
        )
    return failure(problem)


# -- on an executor -------------------------------------------------------------------------------

_Outcome = dict[str, bytes] | QnsError | RuntimeError
"""Tables as Arrow streams, an error in the task's input, or a bug with its stack trace.

An error is returned as a result, because a retry by Spark would fail again."""


def _compute(shared: Any, done: Any, number: int) -> list[tuple[int, _Outcome]]:
    outcomes = []
    for nth, task in shared.value[number]:
        outcomes.append((nth, _outcome(task)))
        done.add(task.weight)
    return outcomes


def _outcome(task: Task) -> _Outcome:
    try:
        return {name: _packed(table) for name, table in task.job(*task.arguments).items()}
    except QnsError as problem:
        return problem.at(task.label)
    except MemoryError:
        return QnsError(
            "there is not enough memory",
            place=task.label,
            remedy="give each task more of it, or use fewer cores",
        )
    except Exception:
        return RuntimeError(f"{task.label}\n{traceback.format_exc()}")


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
