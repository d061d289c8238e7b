"""Texts: subscriptions that a dataset has only as text, as typed columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.schema import Schema
from qns.errors import QnsError, ValueRefused
from qns.iil.interpreter import interpret
from qns.pipeline.datasets.schemas import SUBSCRIPTIONS

TEXTS: Final = ("organisation", "number", "id", "subscription")
"""The columns of a dataset with texts."""


def interpreted(schema: Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of TEXTS -> rows of SUBSCRIPTIONS; an error names the subscription."""
    columns = to_arrow_schema(SUBSCRIPTIONS)

    @lru_cache(maxsize=1 << 16)
    def typed(text: str) -> dict[str, Any]:
        return columns_of(interpret(text, schema), schema)

    for batch in batches:
        rows = []
        for row in batch.to_pylist():
            try:
                rows.append({**row, **typed(row["subscription"] or "")})
            except QnsError as problem:
                raise problem.at(f"subscription {row['id']} of {row['organisation']}") from None
        yield pa.RecordBatch.from_pylist(rows, columns)


def columns_of(subscription: Subscription, schema: Schema) -> dict[str, Any]:
    """The typed columns of a subscription."""
    path = subscription.data_class
    return {
        "class": path,
        "only": subscription.only or subscription.scope != schema.scope(path),
        "sources": None if subscription.sources is None else sorted(subscription.sources),
        "constraints": [
            {"attribute": name, **_bounds(name, values, schema, path)}
            for name, values in subscription.constraints.items()
        ],
    }


def _bounds(name: str, values: ValueSet, schema: Schema, path: str) -> dict[str, Any]:
    if isinstance(values, Region) and values.previous is None and not values.change:
        values = values.new
    if isinstance(values, Strings) and values.listed is not None and len(values.listed) == 1:
        return {"low": None, "high": None, "value": next(iter(values.listed))}
    if isinstance(values, Intervals) and len(values.spans) == 1:
        domain = schema.attribute(path, name).domain
        ((low, high),) = values.spans
        if low == high:  # also at the end of a domain, as with `= true`
            return {"low": low, "high": high, "value": None}
        return {
            "low": None if low == domain.lo else low,
            "high": None if high == domain.hi else high,
            "value": None,
        }
    raise ValueRefused(
        f"the condition on {name} is not one interval or one string",
        remedy="qns savings --from computes any subscription",
    )
