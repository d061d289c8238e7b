"""Progress: the finished share of the tasks that Spark runs now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from qns.pipeline.spark.remote import is_remote


class Progress(Protocol):
    def share(self) -> float: ...


@contextmanager
def progress_of(spark: SparkSession) -> Iterator[Progress]:
    """The progress of a session, from Spark's own status."""
    if not is_remote(spark):
        yield _OfStages(spark)
        return
    handler = _OfOperations()
    receive: Any = handler  # its type is a protocol that only the Connect client has
    spark.registerProgressHandler(receive)
    try:
        yield handler
    finally:
        spark.removeProgressHandler(receive)


class _OfStages:
    """From the status tracker of a classic session."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()

    def share(self) -> float:
        done = all_ = 0
        with suppress(Py4JError, OSError):  # the JVM may be gone; the query reports it
            for stage in self._tracker.getActiveStageIds():
                if info := self._tracker.getStageInfo(stage):
                    done += info.numCompletedTasks
                    all_ += info.numTasks
        return done / all_ if all_ else 0.0


class _OfOperations:
    """From the reports of a Spark Connect server."""

    def __init__(self) -> None:
        self._operations: dict[str, tuple[int, int]] = {}

    def __call__(
        self,
        stages: Any,
        inflight_tasks: int,  # noqa: ARG002  # the client passes it by name
        operation_id: str | None,
        done: bool,
    ) -> None:
        if operation_id is None:
            return
        if done:
            self._operations.pop(operation_id, None)
            return
        self._operations[operation_id] = (
            sum(each.num_completed_tasks for each in stages or ()),
            sum(each.num_tasks for each in stages or ()),
        )

    def share(self) -> float:
        counts = list(self._operations.values())
        all_ = sum(tasks for _, tasks in counts)
        return sum(done for done, _ in counts) / all_ if all_ else 0.0
