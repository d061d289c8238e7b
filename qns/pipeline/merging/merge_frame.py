"""Merge frame: the table `subscriptions` as a transformation of DataFrames.

1. The history of each organisation is cut into parts. Each part is filtered where it is generated
   or read, and counted (`prefilter.py`). This is most of the work, and every core takes part in it.
2. The rows that are left, which are few, are repartitioned by organisation, sorted by moment
   and merged (`merge_pass.py`). The counts of the parts are added up on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from qns.pipeline.cost import Meter
from qns.pipeline.merging.encoded import Codes, Encoder
from qns.pipeline.merging.merge_pass import Merged, MergePass
from qns.pipeline.merging.parts import PARTS_COLUMNS, Counting, decoded
from qns.pipeline.merging.prefilter import ARRIVED, GONE, Prefilter
from qns.pipeline.merging.rows import limits_of, moments_of_ends, rows_of_block
from qns.pipeline.merging.scopes import scope_bits
from qns.pipeline.spark.queries import guarded
from qns.pipeline.tables import COST, SUBSCRIPTIONS, Tables
from qns.pipeline.workload.generator import BLOCK, Generator, words
from qns.pipeline.workload.scenario import Hosts, Scenario

PART_BLOCKS: Final = 64
"""The most blocks of a part. Parts decide the load of the cores, and never a count."""
_ROWS_OF_TASK: Final = 1 << 20
"""A task has parts with so many subscriptions, because starting a task costs as much as 10,000."""
_PASSED_OF_TASK: Final = 1 << 18
_MOST_TASKS: Final = 200

_COUNTED: Final = pa.schema(
    [*SUBSCRIPTIONS, pa.field("seconds", pa.float64()), pa.field("peak_bytes", pa.int64())]
)
_COUNTED_COLUMNS: Final = (
    "scenario string, mapping string, organisations int, churn double, seed bigint, "
    "organisation string, producer string, arrived bigint, changes bigint, live bigint, "
    "messages_mapping bigint, messages_containment bigint, messages_both bigint, "
    "rows_mapping bigint, rows_containment bigint, rows_both bigint, "
    "seconds double, peak_bytes bigint"
)
"""The table SUBSCRIPTIONS with the cost of each organisation, for Spark."""


class Setting(NamedTuple):
    """What a worker must know about a workload, except its subscriptions."""

    columns: dict[str, Any]
    """The columns that every row has (`Scenario.columns`)."""
    hosts: Hosts
    scopes: tuple[frozenset[str], ...]
    checkpoints: tuple[int, ...]
    most_axes: int
    """The most constraints of a subscription."""


def merged(scenario: Scenario, spark: SparkSession, part_blocks: int = PART_BLOCKS) -> DataFrame:
    """The counts of a generated workload, with their cost (`split`)."""
    names, rows = scenario.organisations, scenario.subscriptions
    many = len(names) * _parts(rows, part_blocks)
    tasks = min(many, max(1, len(names) * rows // _ROWS_OF_TASK))
    numbers = spark.range(0, many, 1, tasks)
    filtering = guarded(partial(filtered, scenario, part_blocks), "filtering")
    parts = numbers.mapInArrow(filtering, PARTS_COLUMNS)
    return merge(parts, setting_of(scenario), len(names) * rows)


def merge(parts: DataFrame, setting: Setting, rows: int) -> DataFrame:
    """The counts of filtered parts of all organisations, which had so many rows before."""
    tasks = min(len(setting.hosts), _MOST_TASKS, max(1, rows // _PASSED_OF_TASK))
    in_order = parts.repartition(tasks, "organisation").sortWithinPartitions(
        "organisation", "moment"
    )
    merging = guarded(partial(counted, setting), "merging")
    return in_order.mapInArrow(merging, _COUNTED_COLUMNS)


def split(found: pa.Table) -> Tables:
    """The tables `subscriptions` and `cost` of the collected counts."""
    seen, cost = set(), []
    for row in found.select(
        [each for each in found.column_names if each in {*COST.names}]
    ).to_pylist():
        if (key := (row["organisation"], row["arrived"])) not in seen:
            seen.add(key)
            cost.append({**row, "job": "merge"})
    return {
        "subscriptions": found.select(SUBSCRIPTIONS.names).cast(SUBSCRIPTIONS),
        "cost": pa.Table.from_pylist(cost, COST),
    }


def setting_of(scenario: Scenario) -> Setting:
    """The setting of a generated workload."""
    space = Generator(scenario).space
    most = max(map(len, space.axes))
    columns = scenario.columns()
    return Setting(columns, scenario.hosts, space.scopes, scenario.checkpoints, most)


def _parts(rows: int, part_blocks: int) -> int:
    """The number of parts of an organisation."""
    return -(-rows // (part_blocks * BLOCK))


# -- on an executor -------------------------------------------------------------------------------


def filtered(
    scenario: Scenario, part_blocks: int, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Draws and filters the parts with these numbers."""
    generator = Generator(scenario)
    setting, limits = setting_of(scenario), limits_of(scenario.checkpoints)
    of_organisation = _parts(scenario.subscriptions, part_blocks)
    counting: Counting | None = None
    ends = np.zeros(0, np.int64)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            own, part = divmod(number, of_organisation)
            if counting is None or counting.organisation != own:
                if counting is not None:
                    yield counting.counted()
                counting = Counting(own, new_prefilter(setting, own, limits), limits)
                victims = generator.victims(scenario.organisations[own], scenario.subscriptions)
                ends = moments_of_ends(victims)
            for block in range(part * part_blocks, (part + 1) * part_blocks):
                first = block * BLOCK
                rows = min(BLOCK, scenario.subscriptions - first)
                if rows > 0:
                    drawn = generator.block(scenario.organisations[own], block, rows)
                    yield from counting.passing(
                        rows_of_block(drawn, first + 1, ends[first : first + rows])
                    )
    if counting is not None:
        yield counting.counted()


def filtered_rows(
    codes: Codes, setting: Setting, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Encodes and filters stored subscriptions, which are sorted by organisation and moment."""
    encoder, limits = Encoder(codes), limits_of(setting.checkpoints)
    for own in range(len(codes.organisations)):  # so that one without subscriptions has rows, too
        yield Counting(own, new_prefilter(setting, own, limits), limits).counted()
    counting: Counting | None = None
    for batch in batches:
        owners = encoder.organisations(batch)
        cuts = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
        for first, stop in pairwise(cuts):
            if first == stop:
                continue
            own = int(owners[first])
            if counting is None or counting.organisation != own:
                if counting is not None:
                    yield counting.counted()
                counting = Counting(own, new_prefilter(setting, own, limits), limits)
            yield from counting.passing(encoder.rows(batch.slice(first, stop - first)))
    if counting is not None:
        yield counting.counted()


def new_prefilter(setting: Setting, own: int, limits: Any) -> Prefilter:
    """A filter for a part of the history of the organisation with this number."""
    bits = scope_bits(setting.scopes, setting.hosts, own)
    return Prefilter(bits, limits, setting.most_axes)


def counted(setting: Setting, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merges the organisations of a partition, one after the other."""
    organisation: _Organisation | None = None
    for batch in batches:
        for part in _by_organisation(batch):
            own = part.column("organisation")[0].as_py()
            if organisation is None or organisation.number != own:
                if organisation is not None:
                    yield organisation.finished()
                organisation = _Organisation(setting, own)
            organisation.take(part)
    if organisation is not None:
        yield organisation.finished()


def _by_organisation(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cuts a sorted batch between organisations, and between counts and subscriptions."""
    keys = np.array(batch.column("organisation")) * 2 + (np.array(batch.column("moment")) > 0)
    cuts = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    for first, stop in pairwise(cuts):
        if stop > first:
            yield batch.slice(first, stop - first)


class _Organisation:
    def __init__(self, setting: Setting, number: int) -> None:
        self.number = number
        self._setting = setting
        limits = limits_of(setting.checkpoints)
        bits = scope_bits(setting.scopes, setting.hosts, number)
        self._pass = MergePass(bits, limits, setting.most_axes)
        width = words(len(setting.hosts)) * 64
        self._counts = np.zeros((len(limits), 2, width), np.int64)
        self._totals = np.zeros((len(limits), 2), np.int64)
        self._seconds = np.zeros(len(limits))
        self._merged: list[Merged] = []
        self._peak = 0
        self._meter = Meter()

    def take(self, part: pa.RecordBatch) -> None:
        if part.column("moment")[0].as_py():
            self._keep(self._pass.take(decoded(part)))
            return
        for row in part.select(["counts", "totals", "seconds", "peak_bytes"]).to_pylist():
            self._counts += np.array(row["counts"]).reshape(self._counts.shape)
            self._totals += np.array(row["totals"]).reshape(self._totals.shape)
            self._seconds += np.array(row["seconds"])
            self._peak = max(self._peak, row["peak_bytes"])

    def _keep(self, found: Iterator[Merged]) -> None:
        for each in found:
            self._seconds[len(self._merged)] += self._meter.lap()
            self._merged.append(each)

    def finished(self) -> pa.RecordBatch:
        """Returns the rows of SUBSCRIPTIONS with their cost."""
        self._keep(self._pass.finish())
        names = tuple(self._setting.hosts)
        counts, totals = self._counts.cumsum(axis=0), self._totals.cumsum(axis=0)
        seconds = self._seconds.cumsum()
        peak = max(self._peak, self._meter.peak_bytes())
        rows = [
            {
                **self._setting.columns,
                "organisation": names[self.number],
                "producer": producer,
                "arrived": arrived,
                "changes": int(totals[at].sum()),
                "live": int(totals[at, ARRIVED] - totals[at, GONE]),
                "messages_mapping": int(counts[at, :, bit].sum()),
                "messages_containment": int(self._merged[at].messages[-1]),
                "messages_both": int(self._merged[at].messages[bit]),
                "rows_mapping": int(counts[at, ARRIVED, bit] - counts[at, GONE, bit]),
                "rows_containment": int(self._merged[at].rows[-1]),
                "rows_both": int(self._merged[at].rows[bit]),
                "seconds": float(seconds[at]),
                "peak_bytes": peak,
            }
            for at, arrived in enumerate(self._setting.checkpoints)
            for bit, producer in enumerate(names)
            if bit != self.number
        ]
        return pa.RecordBatch.from_pylist(rows, _COUNTED)
