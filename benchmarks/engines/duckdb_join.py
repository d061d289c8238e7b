"""DuckDB: a batch of events joined with the table of subscriptions, one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from benchmarks.engines import Engine, Subscriptions
from benchmarks.engines.wide import ATTRIBUTES, BATCH, Wide, in_lists

_HOLDS = " AND ".join(f"e.v{n} BETWEEN s.lo{n} AND s.hi{n}" for n in range(len(ATTRIBUTES)))
QUERY = f"""
    SELECT e.event, s.id FROM events e JOIN subscriptions s ON s.join_key = e.join_key
    WHERE (s.need & e.lacks) = 0 AND (s.sources & e.source) <> 0 AND {_HOLDS}
"""


class DuckdbEngine(Engine):
    batch = BATCH

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._wide = Wide(subscriptions)
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.register("given", self._wide.columns)
        self._connection.execute("CREATE TABLE subscriptions AS SELECT * FROM given")
        self._connection.unregister("given")
        del self._wide.columns

    def match(self, work: Sequence[bytes]) -> Any:
        self._connection.register("events", self._wide.events(work))
        found = self._connection.execute(QUERY).fetchnumpy()
        return found["event"], found["id"]

    def ids(self, work: Sequence[bytes], answer: Any) -> list[list[int]]:
        return in_lists(len(work), answer[0].tolist(), answer[1].tolist())


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    return {"DuckDB join": DuckdbEngine(subscriptions)}
