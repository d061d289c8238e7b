"""Generated datasets: a scenario as DataFrames, drawn inside Spark.

They have the same draws as the merging of the scenario, whatever the partitions: each block of a
history has its own random stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from qns.cbr.domains import STRING
from qns.d2q.event_xml import write_event
from qns.d2q.printing import write_readable
from qns.pipeline.datasets.schemas import (
    CONSTRAINT,
    MAPPING,
    PUBLICATIONS,
    SUBSCRIPTIONS,
    UNSUBSCRIPTIONS,
)
from qns.pipeline.spark.queries import InArrow, guarded
from qns.pipeline.workload.generator import BLOCK, WORD, Block, Generator
from qns.pipeline.workload.scenario import Scenario

_MOST_TASKS: Final = 10_000
_BLOCKS_OF_TASK: Final = 4


def generated(
    scenario: Scenario, spark: SparkSession, publications: int = 0
) -> dict[str, DataFrame]:
    """Dataset -> the DataFrame; there is always one for each."""
    blocks = len(scenario.organisations) * _blocks(scenario.subscriptions)
    return {
        "subscriptions": _drawn(spark, blocks, partial(_subscriptions, scenario), SUBSCRIPTIONS),
        "unsubscriptions": _drawn(
            spark,
            len(scenario.organisations) if scenario.churn else 0,
            partial(_unsubscriptions, scenario),
            UNSUBSCRIPTIONS,
        ),
        "publications": _drawn(
            spark, _blocks(publications), partial(_publications, scenario, publications),
            PUBLICATIONS,
        ),
        "mapping": spark.createDataFrame(_mapping(scenario), MAPPING),
    }  # fmt: skip


def _drawn(spark: SparkSession, blocks: int, draw: InArrow, columns: Any) -> DataFrame:
    tasks = min(_MOST_TASKS, -(-blocks // _BLOCKS_OF_TASK))
    return spark.range(0, blocks, 1, max(1, tasks)).mapInArrow(guarded(draw, "drawing"), columns)


def _blocks(rows: int) -> int:
    return -(-rows // BLOCK)


def _mapping(scenario: Scenario) -> list[tuple[str, str, str]]:
    return [
        (scenario.mapping, name, path)
        for name, classes in scenario.hosts.items()
        for path in classes
    ]


# -- on an executor -------------------------------------------------------------------------------


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _subscriptions(
    scenario: Scenario, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    writer = _Writer(Generator(scenario))
    for number in _numbers(batches):
        own, block = divmod(number, _blocks(scenario.subscriptions))
        yield writer.rows(scenario.organisations[own], block)


def _unsubscriptions(
    scenario: Scenario, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    generator, columns = Generator(scenario), to_arrow_schema(UNSUBSCRIPTIONS)
    for number in _numbers(batches):
        organisation = scenario.organisations[number]
        victims = generator.victims(organisation, scenario.subscriptions)
        after = np.flatnonzero(victims >= 0)
        for first in range(0, len(after), BLOCK):
            some = after[first : first + BLOCK]
            names = pa.array([organisation] * len(some), pa.string())
            yield pa.RecordBatch.from_arrays(
                [names, pa.array(victims[some] + 1), pa.array(some + 1)], schema=columns
            )


def _publications(
    scenario: Scenario, publications: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    generator, columns = Generator(scenario), to_arrow_schema(PUBLICATIONS)
    for block in _numbers(batches):
        first = block * BLOCK
        rows = [
            {
                "number": number,
                "id": event.id,
                "class": event.data_class,
                "source": event.source,
                "event": write_event(event, scenario.schema).decode(),
            }
            for number, event in enumerate(
                generator.events_of(block, min(BLOCK, publications - first)), first + 1
            )
        ]
        yield pa.RecordBatch.from_pylist(rows, columns)


class _Writer:
    """Turns blocks of numbers into rows of SUBSCRIPTIONS."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._columns = to_arrow_schema(SUBSCRIPTIONS)
        self._constraint = to_arrow_schema(CONSTRAINT)
        scenario, axes = generator.scenario, generator.space.axes
        self._names = pa.array(scenario.organisations)
        self._classes = pa.array(scenario.schema.classes)
        every = {axis.number: axis for each in axes for axis in each}
        self._attributes = pa.array([every[number].name for number in sorted(every)])
        most = max(len(axis.keys) for axis in every.values())
        self._keys = np.zeros((len(every), most), np.int64)
        self._texts = pa.array(
            [
                str(axis.keys[rank]) if axis.domain is STRING and rank < len(axis.keys) else ""
                for axis in map(every.__getitem__, sorted(every))
                for rank in range(most)
            ]
        )
        self._is_text = np.array([every[number].domain is STRING for number in sorted(every)])
        self._sizes = np.array([len(every[number].keys) for number in sorted(every)])
        for number, axis in every.items():
            if axis.domain is not STRING:
                self._keys[number, : len(axis.keys)] = axis.keys
        self._number_of = np.zeros((len(axes), max(map(len, axes))), np.int64)
        for number, each in enumerate(axes):
            self._number_of[number, : len(each)] = [axis.number for axis in each]

    def rows(self, organisation: str, number: int) -> pa.RecordBatch:
        """The subscriptions of one block."""
        generator, first = self._generator, number * BLOCK
        many = min(BLOCK, generator.scenario.subscriptions - first)
        block = generator.block(organisation, number, many)
        numbers = np.arange(first + 1, first + many + 1)
        schema = generator.scenario.schema
        texts = [write_readable(generator.real(block, row), schema) for row in range(many)]
        return pa.RecordBatch.from_arrays(
            [
                pa.array([organisation] * many, pa.string()),
                pa.array(numbers),
                pa.array([f"{organisation}-{each}" for each in numbers], pa.string()),
                self._classes.take(pa.array(block.data_class)),
                pa.array(block.only),
                self._sources(block),
                self._constraints(block),
                pa.array(texts, pa.string()),
            ],
            schema=self._columns,
        )

    def _sources(self, block: Block) -> pa.Array:
        bits = np.arange(len(self._names), dtype=np.uint64)
        words = block.sources[:, (bits // WORD).astype(int)]
        is_source = (words >> (bits % np.uint64(WORD)) & np.uint64(1)).astype(bool)
        is_source &= block.named[:, None]
        ends = is_source.sum(axis=1).cumsum()
        start = pa.array(np.append(0, ends).astype(np.int32), mask=np.append(~block.named, False))
        return pa.ListArray.from_arrays(start, self._names.take(pa.array(is_source.nonzero()[1])))

    def _constraints(self, block: Block) -> pa.Array:
        classes = np.repeat(block.data_class, np.diff(block.start))
        axis = self._number_of[classes, block.axis]
        low, high, is_text = block.low, block.high, self._is_text[axis]
        most = self._keys.shape[1]
        fields = [
            self._attributes.take(pa.array(axis)),
            pa.array(self._keys[axis, np.maximum(low, 0)], mask=is_text | (low < 0)),
            pa.array(
                self._keys[axis, np.minimum(high, most - 1)],
                mask=is_text | (high >= self._sizes[axis]),
            ),
            self._texts.take(pa.array(axis * most + np.maximum(low, 0), mask=~is_text)),
        ]
        rows = pa.StructArray.from_arrays(fields, fields=list(self._constraint))
        return pa.ListArray.from_arrays(pa.array(block.start), rows).cast(
            self._columns.field("constraints").type
        )
