"""Encoded datasets: stored subscriptions as the numbers that the compiled code compares.

Containment of intervals depends only on the order of their bounds. So each key that occurs in a
bound is replaced by its rank among all keys of its attribute in the dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from qns.d2q.schema import Schema
from qns.errors import DocumentError, LimitExceeded
from qns.pipeline.merging.rows import Rows
from qns.pipeline.workload.generator import WORD, words
from qns.pipeline.workload.space import RANGE, scopes_of

MOST_RANKS: Final = 32_000
"""The most different bounds of one attribute: a rank has 15 bits."""


@dataclass(frozen=True)
class Codes:
    """The numbers of everything that subscriptions name."""

    organisations: tuple[str, ...]
    scopes: tuple[frozenset[str], ...]
    scope_of: dict[tuple[str, bool], int]
    """(class, only) -> the number of the scope."""
    attributes: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    """For each attribute its keys in ascending order."""


def codes_of(subscriptions: DataFrame, schema: Schema, organisations: Sequence[str]) -> Codes:
    """Collects the bounds that occur, of which there are few: MOST_RANKS for each attribute."""
    each = subscriptions.select(f.explode("constraints").alias("one")).select("one.*")
    bounds = each.select(
        "attribute", f.explode(f.array("low", "high")).alias("key"), f.lit(None).alias("value")
    ).where("key is not null")
    texts = each.select("attribute", f.lit(None).alias("key"), "value").where("value is not null")
    distinct = bounds.union(texts).distinct()
    crowded = distinct.groupBy("attribute").count().where(f.col("count") > MOST_RANKS)
    for row in crowded.limit(1).collect():
        raise LimitExceeded(
            f"{row['count']:,} different bounds of {row['attribute']}",
            remedy=f"at most {MOST_RANKS:,}: round them, or leave the attribute out",
        )
    keys: dict[str, list[Any]] = {}
    for row in distinct.collect():
        keys.setdefault(row["attribute"], []).append(
            row["key"] if row["value"] is None else row["value"]
        )
    scopes = scopes_of(schema)
    names = tuple(
        dict.fromkeys(one.name for path in schema.classes for one in schema.attributes(path))
    )
    return Codes(
        tuple(organisations),
        scopes,
        {
            (path, only): scopes.index(schema.scope(path, only))
            for path in schema.classes
            for only in (False, True)
        },
        names,
        tuple(tuple(sorted(keys.get(name, ()))) for name in names),
    )


class Encoder:
    """Turns rows of `subscriptions` with `moment` and `ends` into Rows."""

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._organisations = pa.array(codes.organisations, pa.string())
        self._attributes = pa.array(codes.attributes, pa.string())
        self._scopes = pa.array([f"{path} {only}" for path, only in codes.scope_of], pa.string())
        self._scope_numbers = np.array([*codes.scope_of.values()], np.int32)

    def organisations(self, batch: pa.RecordBatch) -> Any:
        """The number of the organisation of each row."""
        return _numbers(batch.column("organisation"), self._organisations, "organisation")

    def rows(self, batch: pa.RecordBatch) -> Rows:
        constraints = batch.column("constraints")
        sizes = np.array(pc.fill_null(constraints.value_lengths(), 0))
        start = np.zeros(batch.num_rows + 1, np.int32)
        np.cumsum(sizes, out=start[1:])
        axis, low, high = self._constraints(constraints.flatten())
        counts = np.array([len(each) for each in self._codes.keys], np.int64)[axis]
        in_order = np.lexsort((axis, np.repeat(np.arange(batch.num_rows), sizes)))
        bound = (low + 1) << 16 | (counts - high)
        pin = np.where(low == high, low, RANGE)
        classes = pc.binary_join_element_wise(
            batch.column("class"),
            pc.if_else(pc.fill_null(batch.column("only"), False), "True", "False"),
            " ",
        )
        return Rows(
            np.array(batch.column("moment")),
            np.array(batch.column("ends")),
            self._scope_numbers[_numbers(classes, self._scopes, "class")],
            self._sources(batch.column("sources")),
            start,
            axis[in_order].astype(np.int32),
            bound[in_order],
            pin[in_order].astype(np.int32),
        )

    def _constraints(self, rows: pa.StructArray) -> tuple[Any, Any, Any]:
        axis = _numbers(rows.field("attribute"), self._attributes, "attribute")
        low = np.full(len(axis), -1, np.int64)
        high = np.array([len(each) for each in self._codes.keys], np.int64)[axis]
        for number in np.unique(axis):
            here = np.flatnonzero(axis == number)
            keys = pa.array(self._codes.keys[number])
            fields = rows.take(pa.array(here))
            is_text = pa.types.is_string(keys.type)
            for name, ranks in (("low", low), ("high", high)):
                given = fields.field("value" if is_text else name)
                is_given = np.array(given.is_valid())
                found = np.array(pc.fill_null(pc.index_in(given, keys.cast(given.type)), 0))
                ranks[here[is_given]] = found[is_given]
        return axis, low, high

    def _sources(self, named: pa.ListArray) -> Any:
        many, width = len(named), words(len(self._organisations))
        sources = np.zeros((many, width), np.uint64)
        sources[np.array(named.is_null())] = ~np.uint64(0)
        bits = _numbers(named.flatten(), self._organisations, "source").astype(np.uint64)
        sizes = np.array(pc.fill_null(named.value_lengths(), 0))
        places = np.repeat(np.arange(many), sizes), (bits // np.uint64(WORD)).astype(np.int64)
        np.bitwise_or.at(sources, places, np.uint64(1) << (bits % np.uint64(WORD)))
        return sources


def _numbers(values: pa.Array, known: pa.Array, kind: str) -> Any:
    """The place of each value among the known ones."""
    found = pc.index_in(values, known)
    if found.null_count:
        missing = values.filter(found.is_null())[0].as_py()
        raise DocumentError(
            f"unknown {kind} {missing!r}", remedy="it must be in the schema or in the mapping"
        )
    return np.array(found, np.int64)
