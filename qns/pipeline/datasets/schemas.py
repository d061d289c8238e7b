"""Schemas: the datasets of a workload, with the meaning of each column.

docs/datasets.md is the data dictionary; a test compares it with these schemas.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

_TEXT: Final = StringType()
_NUMBER: Final = LongType()


def _column(name: str, kind: DataType, meaning: str, nullable: bool = False) -> StructField:
    return StructField(name, kind, nullable, {"comment": meaning})


CONSTRAINT: Final = StructType(
    [
        _column("attribute", _TEXT, "property, or property.dimension", True),
        _column("low", _NUMBER, "least key; null without a lower bound and for strings", True),
        _column("high", _NUMBER, "greatest key; null without an upper bound and for strings", True),
        _column("value", _TEXT, "the only value of a string; otherwise null", True),
    ]
)

SUBSCRIPTIONS: Final = StructType(
    [
        _column("organisation", _TEXT, "whose user subscribes"),
        _column("number", _NUMBER, "1, 2, 3, … in the order of arrival at the organisation"),
        _column("id", _TEXT, "identifies the subscription in its organisation"),
        _column("class", _TEXT, "path of the class"),
        _column("only", BooleanType(), "true if the classes below are excluded"),
        _column("sources", ArrayType(_TEXT), "sources; null if it names none", True),
        _column("constraints", ArrayType(CONSTRAINT), "at most one for each attribute"),
        _column("subscription", _TEXT, "the same as text in D2Q"),
    ]
)

UNSUBSCRIPTIONS: Final = StructType(
    [
        _column("organisation", _TEXT, "whose user unsubscribes"),
        _column("number", _NUMBER, "the number of the subscription that ends"),
        _column("after", _NUMBER, "the number of the newest subscription at that moment"),
    ]
)

PUBLICATIONS: Final = StructType(
    [
        _column("number", _NUMBER, "1, 2, 3, … in the order of publication"),
        _column("id", _TEXT, "identifies the event at its source"),
        _column("class", _TEXT, "path of the class"),
        _column("source", _TEXT, "the organisation that publishes"),
        _column("event", _TEXT, "the event as D2Q XML"),
    ]
)

MAPPING: Final = StructType(
    [
        _column("mapping", _TEXT, "name of the mapping"),
        _column("organisation", _TEXT, "the organisation that hosts the class"),
        _column("class", _TEXT, "path of the class"),
    ]
)

DATASETS: Final = {
    "subscriptions": SUBSCRIPTIONS,
    "unsubscriptions": UNSUBSCRIPTIONS,
    "publications": PUBLICATIONS,
    "mapping": MAPPING,
}
"""Name of a dataset, and of its folder -> its columns."""
