"""Tasks: calls of pure functions that Spark spreads over its executors, and their tables.

A job is a function of a module; a task is one call of it. What comes out depends on the task alone:
not on where it was computed, beside what, or how often its worker had to be replaced.
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

Tables = dict[str, pa.Table]
Job = Callable[..., Tables]
Told = Callable[[float, int], None]
"""Is told now and then which share of the work is done, and how many groups."""

_POLL_S: Final = 0.2
_MOST_GROUPS: Final = 16
"""Groups that compute at a time: while the last tasks of one run, others use the free cores."""
_LEAST_SHARE: Final = 0.01
_FAILED_PARTITION: Final = re.compile(r"Task (\d+) in stage")
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")


@dataclass(frozen=True, slots=True)
class Task:
    job: Job
    arguments: tuple[object, ...]
    label: str
    """What is computed, for whoever waits, and for errors."""
    weight: float = 1.0
    """How long it takes, compared with others: the longest begin first."""


def run_tasks(
    spark: SparkSession,
    tasks: Sequence[Task],
    told: Told = lambda _share, _groups: None,
    partitions: int | None = None,
) -> Tables:
    """Every table that the tasks have made, in the order of the tasks."""
    ((_, tables),) = run_groups(spark, {"": tasks}, told, partitions)
    return tables


def run_groups(
    spark: SparkSession,
    groups: Mapping[str, Sequence[Task]],
    told: Told = lambda _share, _groups: None,
    partitions: int | None = None,
) -> Iterator[tuple[str, Tables]]:
    """The tables of each group, as soon as all its tasks are done.

    The first task that fails ends it all, with its error; a worker that dies does not count, unless
    the task kills each that tries it.
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
            told(min(1.0, done.value / total), finished)
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
        if running:
            with suppress(Py4JError, OSError):  # there may be nobody left to be told
                context.cancelJobGroup(tag)


class _Watch:
    """Notices when a cluster has taken all executors away and gives none back."""

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
                f"no executor is left, for {EXECUTORS_S:.0f} s",
                place=str(self._context.master),
                remedy="start workers; the same command goes on with what is not finished",
            )


# -- on the driver --------------------------------------------------------------------------------

_Bundle = list[tuple[int, Task]]
"""Tasks, each with its number in the group, that one worker computes one after the other."""


def _bundles(tasks: Sequence[Task], total: float, partitions: int | None) -> list[_Bundle]:
    """Long tasks alone, the longest first; short ones together, for each costs Spark a moment."""
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
    told = failure(problem)
    found = _FAILED_PARTITION.search(str(problem))
    if found and int(found[1]) < len(bundles):
        return SparkFailed(
            f"{ATTEMPTS} workers died over it, one after the other",
            place=bundles[int(found[1])][0][1].label,
            remedy="if memory ran out, give each task more of it, or use fewer cores",
        )
    return told


# -- on an executor -------------------------------------------------------------------------------

_Outcome = dict[str, bytes] | QnsError | RuntimeError
"""Tables as Arrow streams; or what is wrong with the task; or a failure of ours, with its stack.

An error comes back as a result: to try again, as Spark would, cannot mend it."""


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
