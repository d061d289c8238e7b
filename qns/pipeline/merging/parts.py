"""Parts: what the filter leaves of a workload, as the rows of one DataFrame.

There are two kinds of rows. A subscription that may change a view has its encoded columns. A count
(`moment` 0, so that it is sorted before the subscriptions) has what one task has counted of all
subscriptions that it saw, including those that it dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from qns.pipeline.cost import Meter
from qns.pipeline.merging.prefilter import Prefilter
from qns.pipeline.merging.rows import Rows

_NUMBERS: Final = pa.list_(pa.int64())
_PLACES: Final = pa.list_(pa.int32())

PARTS: Final = pa.schema(
    [
        pa.field("organisation", pa.int32()),
        pa.field("moment", pa.int64()),
        pa.field("ends", pa.int64()),
        pa.field("scope", pa.int32()),
        pa.field("sources", _NUMBERS),
        pa.field("axis", _PLACES),
        pa.field("bound", _NUMBERS),
        pa.field("pin", _PLACES),
        pa.field("counts", _NUMBERS),
        pa.field("totals", _NUMBERS),
        pa.field("seconds", pa.list_(pa.float64())),
        pa.field("peak_bytes", pa.int64()),
    ]
)
PARTS_COLUMNS: Final = (
    "organisation int, moment bigint, ends bigint, scope int, sources array<bigint>, "
    "axis array<int>, bound array<bigint>, pin array<int>, counts array<bigint>, "
    "totals array<bigint>, seconds array<double>, peak_bytes bigint"
)
"""The same as PARTS, for Spark."""
_BATCH: Final = 8_192


class Counting:
    """Filters the subscriptions of one organisation in one task, and measures what that costs."""

    def __init__(self, organisation: int, prefilter: Prefilter, limits: Any) -> None:
        self.organisation = organisation
        self._prefilter = prefilter
        self._limits = limits
        self._seconds = np.zeros(len(limits))
        self._meter = Meter()

    def passing(self, rows: Rows) -> Iterator[pa.RecordBatch]:
        """Yields the rows that pass."""
        passing = self._prefilter.passing(rows)
        places = np.searchsorted(self._limits, rows.moment, side="right")
        share = np.bincount(places, minlength=len(self._limits) + 1)[: len(self._limits)]
        self._seconds += self._meter.lap() * share / max(len(places), 1)
        for first in range(0, len(passing.scope), _BATCH):
            chosen = np.arange(first, min(first + _BATCH, len(passing.scope)))
            yield _encoded(self.organisation, passing.taken(chosen))

    def counted(self) -> pa.RecordBatch:
        """Returns the row with the counts."""
        row = {
            "organisation": self.organisation,
            "moment": 0,
            "counts": self._prefilter.counts.ravel(),
            "totals": self._prefilter.totals.ravel(),
            "seconds": self._seconds,
            "peak_bytes": self._meter.peak_bytes(),
        }
        return pa.RecordBatch.from_pylist([row], PARTS)


def _encoded(organisation: int, rows: Rows) -> pa.RecordBatch:
    many, width = rows.sources.shape
    start = pa.array(rows.start)
    of_sources = pa.array(np.arange(many + 1, dtype=np.int32) * width)
    columns = {
        "organisation": pa.array(np.full(many, organisation, np.int32)),
        "moment": pa.array(rows.moment),
        "ends": pa.array(rows.ends),
        "scope": pa.array(rows.scope),
        "sources": pa.ListArray.from_arrays(of_sources, rows.sources.view(np.int64).ravel()),
        "axis": pa.ListArray.from_arrays(start, rows.axis),
        "bound": pa.ListArray.from_arrays(start, rows.bound),
        "pin": pa.ListArray.from_arrays(start, rows.pin),
    }
    return pa.RecordBatch.from_arrays(
        [columns.get(each.name, pa.nulls(many, each.type)) for each in PARTS], schema=PARTS
    )


def decoded(batch: pa.RecordBatch) -> Rows:
    """The subscriptions in a batch without counts."""

    def numbers(name: str) -> Any:
        return np.array(batch.column(name))  # a copy: the compiled code needs writable arrays

    def nested(name: str) -> Any:
        return np.array(batch.column(name).flatten())

    sizes = batch.column("axis").value_lengths()
    start = np.zeros(batch.num_rows + 1, np.int32)
    np.cumsum(sizes, out=start[1:])
    sources = nested("sources").view(np.uint64).reshape(batch.num_rows, -1)
    return Rows(
        numbers("moment"),
        numbers("ends"),
        numbers("scope"),
        sources,
        start,
        nested("axis"),
        nested("bound"),
        nested("pin"),
    )
