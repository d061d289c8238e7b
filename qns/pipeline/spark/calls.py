"""Calls: pure functions that Spark calls on executors, for work that is sequential by nature.

A call returns tables, which reach the driver as Arrow streams. Its tables depend on its arguments
alone, not on the worker, on other calls, or on how often a worker had to be replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from qns.pipeline.spark.queries import Query, guarded
from qns.pipeline.tables import Tables

Job = Callable[..., Tables]

_LEAST_TASK: Final = 50_000
"""The weight of a task that is worth to be started: about a tenth of a second."""
_ROWS: Final = pa.schema([("number", pa.int64()), ("name", pa.string()), ("rows", pa.binary())])
_COLUMNS: Final = "number bigint, name string, rows binary"
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")


def calls(
    label: str, job: Job, arguments: Sequence[tuple[object, ...]], weight: float = 1.0
) -> Query:
    """A query that calls the job with each of these arguments."""
    tasks = max(1, min(len(arguments), int(weight) // _LEAST_TASK))
    return Query(label, partial(_frame, label, job, tuple(arguments), tasks), _tables, weight)


def _frame(
    label: str,
    job: Job,
    arguments: tuple[tuple[object, ...], ...],
    tasks: int,
    spark: SparkSession,
) -> DataFrame:
    numbers = spark.range(0, len(arguments), 1, tasks)
    return numbers.mapInArrow(guarded(partial(_call, job, arguments), label), _COLUMNS)


def _tables(found: pa.Table) -> Tables:
    by_name: dict[str, list[pa.Table]] = {}
    for row in found.sort_by([("number", "ascending"), ("name", "ascending")]).to_pylist():
        by_name.setdefault(row["name"], []).append(pa.ipc.open_stream(row["rows"]).read_all())
    return {name: pa.concat_tables(parts) for name, parts in by_name.items()}


# -- on an executor -------------------------------------------------------------------------------


def _call(
    job: Job, arguments: tuple[tuple[object, ...], ...], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            rows = [
                {"number": number, "name": name, "rows": _packed(table)}
                for name, table in job(*arguments[number]).items()
            ]
            yield pa.RecordBatch.from_pylist(rows, _ROWS)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
