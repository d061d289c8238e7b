"""polars: a batch of events joined with the table of subscriptions, one thread.

The join carries the masks alone; the bounds of what is left are fetched column by column. Measured
three to four times faster than one lazy join with all conditions at 100,000 subscriptions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when polars is imported

import polars as pl

from benchmarks.engines import Engine, Subscriptions
from benchmarks.engines.wide import ATTRIBUTES, BATCH, Wide, in_lists

_POSSIBLE = (pl.col("need") & pl.col("lacks") == 0) & (pl.col("sources") & pl.col("source") != 0)


class PolarsEngine(Engine):
    batch = BATCH

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._wide = Wide(subscriptions)
        self._table = pl.DataFrame(self._wide.columns)
        self._keys = self._table.select("join_key", "need", "sources").with_row_index("row")
        del self._wide.columns

    def match(self, work: Sequence[bytes]) -> Any:
        events = pl.DataFrame(self._wide.events(work))
        entering = events.select("join_key", "lacks", "source").with_row_index("entry")
        joined = self._keys.lazy().join(entering.lazy(), on="join_key").filter(_POSSIBLE)
        left = joined.select("row", "entry").collect()
        for nth in range(len(ATTRIBUTES)):
            value = events[f"v{nth}"].gather(left["entry"])
            lo = self._table[f"lo{nth}"].gather(left["row"])
            hi = self._table[f"hi{nth}"].gather(left["row"])
            left = left.filter((lo <= value) & (value <= hi))
        return events["event"].gather(left["entry"]), self._table["id"].gather(left["row"])

    def ids(self, work: Sequence[bytes], answer: Any) -> list[list[int]]:
        return in_lists(len(work), answer[0].to_list(), answer[1].to_list())


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    return {"polars join": PolarsEngine(subscriptions)}
