"""Stored datasets: a workload at a path that Spark can read and write.

The path may be on any file system of the session (file, hdfs, s3a, abfs) and the format any that it
has (parquet, csv, json, orc, delta, …). Nothing is opened on the driver.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from qns.d2q.schema import Schema
from qns.errors import DocumentError, NameNotKnown, NotAllowed
from qns.pipeline.datasets.schemas import DATASETS
from qns.pipeline.datasets.texts import TEXTS, interpreted
from qns.pipeline.spark.queries import guarded, translated

PARQUET: Final = "parquet"
_PARTITIONED: Final = ("subscriptions", "unsubscriptions")
"""The datasets with a folder for each organisation."""
_DERIVED: Final = ("only", "subscription", "sources", "mapping")
"""Columns that may be left out of files: then they are empty."""


def write(datasets: dict[str, DataFrame], path: str, format_: str = PARQUET) -> None:
    """Writes each dataset into its folder of the path; refuses a path that has one already."""
    for name, frame in datasets.items():
        writer = frame.write.format(format_).mode("error")
        if name in _PARTITIONED:
            writer = writer.partitionBy("organisation")
        try:
            writer.save(f"{path.rstrip('/')}/{name}")
        except (PySparkException, Py4JError) as problem:
            if _condition(problem) == "PATH_ALREADY_EXISTS":
                raise NotAllowed(
                    f"{name} exists already", place=path, remedy="choose another folder"
                ) from None
            raise translated(problem, f"writing {name} into {path}") from None


def read(
    spark: SparkSession, path: str, schema: Schema, format_: str = PARQUET
) -> dict[str, DataFrame]:
    """Dataset -> its DataFrame, with exactly the columns of its schema.

    Only `subscriptions` and `mapping` must exist; the others are then empty. Subscriptions without
    the column `constraints` are read from their text.
    """
    found = {}
    for name, columns in DATASETS.items():
        place = f"{path.rstrip('/')}/{name}"
        rows = _loaded(spark, place, format_)
        if rows is None and name in ("subscriptions", "mapping"):
            raise DocumentError(
                f"there is no dataset {name}",
                place=path,
                remedy="qns pipeline generate writes one, to look at",
            )
        if rows is None:
            found[name] = spark.createDataFrame([], columns)
        elif name == "subscriptions" and "constraints" not in rows.columns:
            texts = _chosen(rows, StructType([columns[each] for each in TEXTS]), place)
            interpreting = guarded(partial(interpreted, schema), place)
            found[name] = texts.mapInArrow(interpreting, columns)
        else:
            found[name] = _chosen(rows, columns, place)
    return found


def _condition(problem: Exception) -> str | None:
    """Spark's name for an error, if it has one."""
    return problem.getCondition() if isinstance(problem, PySparkException) else None


def _loaded(spark: SparkSession, place: str, format_: str) -> DataFrame | None:
    """The dataset as it is; None if there is none, or no file in its folder."""
    reader = spark.read.format(format_)
    try:
        rows = (reader.option("header", True) if format_ == "csv" else reader).load(place)
        assert rows.columns is not None  # over Spark Connect a path is looked at only now
    except (PySparkException, Py4JError) as problem:
        if _condition(problem) in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            return None
        raise translated(problem, f"reading {place}") from None
    return rows


def _chosen(rows: DataFrame, columns: StructType, place: str) -> DataFrame:
    chosen = []
    for column in columns:
        if column.name in rows.columns:
            value = f.col(f"`{column.name}`")
        elif column.name in _DERIVED:
            value = f.lit(None)
        else:
            raise NameNotKnown(
                "column",
                column.name,
                rows.columns,
                place=place,
                problem=f"there is no column '{column.name}'",
            )
        chosen.append(value.cast(column.dataType).alias(column.name))
    return rows.select(*chosen)
