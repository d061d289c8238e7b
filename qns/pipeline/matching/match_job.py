"""Match job: matches stored events against subscriptions.

The subscriptions are broadcast, and every Python worker builds one matching index of them. Each
unit of events is matched in Arrow batches and gives one Parquet file of pairs. The units depend on
the events alone, so any number of partitions gives the same files.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from qns.cbr.event import Event
from qns.cbr.index import MatchingIndex
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.errors import NotAllowed, QnsError
from qns.pipeline.matching.match_inputs import Unit, Wanted, events_of
from qns.pipeline.replay.workload_files import unwritable
from qns.pipeline.spark.session import failure

PAIRS: Final = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("source", "event", "organisation", "subscription")
    ]
)
"""One row for each event and each subscription that it matches, in the order of the events."""
SUMMARY: Final = pa.schema(
    [
        pa.field("organisation", pa.string(), nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("events", pa.int64(), nullable=False),
        pa.field("share", pa.float64(), nullable=False),
    ]
)
"""For each subscription: the number of events that it matches, and their share of all events."""

OnProgress = Callable[[float], None]
"""Progress callback: receives the completed fraction."""

_BATCH: Final = 1_024
_POLL_S: Final = 0.2
_UNITS: Final = "number long, path string, row_group long, events long, first long, place string"
_DONE: Final = "number long, matched long, which array<long>, counts array<long>, problem binary"


class Matched(NamedTuple):
    events: int
    matched: int
    """The number of events that match at least one subscription."""
    pairs: int
    summary: pa.Table


@dataclass(frozen=True, slots=True)
class Shared:
    """The data that every worker needs; `key` identifies the job."""

    key: str
    schema: Schema
    wanted: tuple[Wanted, ...]
    folder: str


def match_job(
    spark: SparkSession,
    units: Sequence[Unit],
    wanted: Sequence[Wanted],
    schema: Schema,
    out: Path,
    on_progress: OnProgress = lambda _fraction: None,
    partitions: int | None = None,
) -> Matched:
    """Writes the folder `pairs` and `summary.parquet` into `out`, completely or not at all."""
    refuse_results(out)
    new = out / ".pairs"
    shutil.rmtree(new, ignore_errors=True)
    in_order = tuple(sorted(wanted, key=lambda each: each[:2]))
    shared = Shared(token_hex(8), schema, in_order, str(new))
    try:
        new.mkdir(parents=True)
        done = _run(spark, units, shared, on_progress, partitions)
        counts = np.zeros(len(in_order), np.int64)
        for each in done:
            counts[each["which"]] += np.array(each["counts"], np.int64)
        events = sum(unit.events for unit in units)
        summary = _summary(in_order, schema, counts, events)
        pq.write_table(summary, new / "summary.parquet", compression="zstd")
        (new / "summary.parquet").rename(out / "summary.parquet")
        new.rename(out / "pairs")
    except OSError as problem:
        raise unwritable(out, problem) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    matched = sum(each["matched"] for each in done)
    return Matched(events, matched, int(counts.sum()), summary)


def refuse_results(out: Path) -> None:
    """Raises NotAllowed if the folder holds results of an earlier job."""
    for name in ("pairs", "summary.parquet"):
        if (out / name).exists():
            raise NotAllowed(
                f"{name} is there already", place=str(out), remedy="choose another folder"
            )


def _summary(wanted: Sequence[Wanted], schema: Schema, counts: Any, events: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "organisation": each.organisation,
                "subscription": each.id,
                "text": write_readable(each.subscription, schema),
                "events": int(count),
                "share": int(count) / events if events else 0.0,
            }
            for each, count in zip(wanted, counts, strict=True)
        ],
        SUMMARY,
    )


# -- on the driver --------------------------------------------------------------------------------


def _run(
    spark: SparkSession,
    units: Sequence[Unit],
    shared: Shared,
    on_progress: OnProgress,
    partitions: int | None,
) -> list[dict[str, Any]]:
    """Returns the outcome of each unit, in the order of the units."""
    if not units:
        return []
    context = spark.sparkContext
    try:
        broadcast = context.broadcast(shared)
        finished = context.accumulator(0)
        slices = min(len(units), partitions or 8 * context.defaultParallelism)
        rows = context.parallelize([tuple(unit) for unit in units], slices)
        done = spark.createDataFrame(rows, _UNITS).mapInArrow(
            partial(_match_units, broadcast, finished), _DONE
        )
        outcomes = _collected(done, lambda: on_progress(min(1.0, finished.value / len(units))))
        broadcast.destroy()
    except (PySparkException, Py4JError) as problem:
        raise failure(problem) from None
    for outcome in outcomes:
        if outcome["problem"] is not None:
            refusal = pickle.loads(outcome["problem"])  # noqa: S301  # our own worker wrote it
            assert isinstance(refusal, QnsError)
            raise refusal
    return outcomes


def _collected(done: DataFrame, on_poll: Callable[[], None]) -> list[dict[str, Any]]:
    pool = ThreadPoolExecutor(1, "match")
    try:
        collecting = pool.submit(done.toArrow)
        while not wait([collecting], _POLL_S).done:
            on_poll()
        rows: list[dict[str, Any]] = collecting.result().to_pylist()
    finally:
        pool.shutdown(wait=False)  # an interrupt must not wait for Spark
    return sorted(rows, key=lambda each: int(each["number"]))


# -- on an executor -------------------------------------------------------------------------------

_indexes: dict[str, MatchingIndex[int]] = {}
"""Key of the job -> its index; at most one."""


def _match_units(
    broadcast: Any, finished: Any, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Writes a file of pairs for each unit and yields one row of `_DONE`."""
    for batch in batches:
        for row in batch.to_pylist():
            shared: Shared = broadcast.value
            outcome: dict[str, Any] = {"number": row["number"]}
            try:
                outcome |= match_unit(Unit(**row), shared, _index(shared))
            except QnsError as problem:  # returned as a result, because a retry would fail again
                outcome["problem"] = pickle.dumps(problem)
            finished.add(1)
            yield pa.RecordBatch.from_pylist([outcome], _done_schema())


def match_unit(unit: Unit, shared: Shared, index: MatchingIndex[int]) -> dict[str, Any]:
    """Writes the pairs of one unit.

    Returns the number of events that match, and how often each subscription occurs in the pairs.
    """
    pairs = _Pairs(shared)
    for events in events_of(unit, shared.schema, _BATCH):
        pairs.add(events, index.match_all(events))
    path = Path(shared.folder, f"part-{unit.number:06}.parquet")
    # Spark may run the same task twice at a time.
    partial_ = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        pq.write_table(pairs.table(), partial_, compression="zstd")
        partial_.rename(path)
    except OSError as problem:
        partial_.unlink(missing_ok=True)
        raise unwritable(path, problem) from None
    which = np.flatnonzero(pairs.counts)
    counts = pairs.counts[which]
    return {"matched": pairs.matched, "which": which.tolist(), "counts": counts.tolist()}


class _Pairs:
    def __init__(self, shared: Shared) -> None:
        self.matched = 0
        self.counts = np.zeros(len(shared.wanted), np.int64)
        self._shared = shared
        self._batches: list[pa.RecordBatch] = []
        self._organisations = pa.array([each.organisation for each in shared.wanted], pa.string())
        self._ids = pa.array([each.id for each in shared.wanted], pa.string())

    def add(self, events: list[Event], found: list[list[int]]) -> None:
        for each in found:
            each.sort()
        sizes = np.fromiter(map(len, found), np.int64, len(found))
        ordinals = np.fromiter((one for each in found for one in each), np.int64, sizes.sum())
        self.matched += int((sizes > 0).sum())
        self.counts += np.bincount(ordinals, minlength=len(self.counts))
        places = pa.array(np.repeat(np.arange(len(events)), sizes))
        columns = [
            pa.array([event.source for event in events], pa.string()).take(places),
            pa.array([event.id for event in events], pa.string()).take(places),
            self._organisations.take(pa.array(ordinals)),
            self._ids.take(pa.array(ordinals)),
        ]
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=PAIRS))

    def table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, PAIRS)


def _index(shared: Shared) -> MatchingIndex[int]:
    index = _indexes.get(shared.key)
    if index is None:
        _indexes.clear()
        wanted = {ordinal: each.subscription for ordinal, each in enumerate(shared.wanted)}
        index = _indexes[shared.key] = MatchingIndex(wanted)
    return index


def _done_schema() -> pa.Schema:
    numbers = pa.list_(pa.int64())
    return pa.schema(
        [
            ("number", pa.int64()),
            ("matched", pa.int64()),
            ("which", numbers),
            ("counts", numbers),
            ("problem", pa.binary()),
        ]
    )
