"""Stored workload: what a run must know about datasets before it merges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from qns.d2q.schema import Schema
from qns.errors import DocumentError, NameNotKnown, ValueRefused
from qns.pipeline.datasets.stored import PARQUET, read
from qns.pipeline.merging.encoded import codes_of
from qns.pipeline.merging.merge_frame import Setting, filtered_rows, merge
from qns.pipeline.merging.parts import PARTS_COLUMNS
from qns.pipeline.merging.rows import STEP
from qns.pipeline.replay.real_workload import steps
from qns.pipeline.spark.queries import guarded, translated
from qns.pipeline.workload.generator import NEVER
from qns.pipeline.workload.scenario import FEWEST_ORGANISATIONS, MOST_ORGANISATIONS, Hosts


@dataclass(frozen=True)
class StoredWorkload:
    """One mapping of the datasets at a path."""

    path: str
    format: str
    schema: Schema
    hosts: Hosts
    mapping: str
    arrivals: Mapping[str, int]
    """Organisation -> its number of subscriptions."""
    gone: int
    digest: str
    """Identifies the rows of the datasets."""

    @property
    def id(self) -> str:
        parts = self.digest, self.mapping, sorted((name, *of) for name, of in self.hosts.items())
        return sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def checkpoints(self) -> tuple[int, ...]:
        return steps(max(self.arrivals.values()))

    @property
    def subscriptions(self) -> int:
        return sum(self.arrivals.values())

    def columns(self) -> dict[str, Any]:
        """The columns that every row of every table has."""
        return {
            "scenario": self.id,
            "mapping": self.mapping,
            "organisations": len(self.hosts),
            "churn": self.gone / self.subscriptions,
            "seed": 0,
        }

    def described(self) -> dict[str, object]:
        """A description for reports, like `Scenario.described`."""
        return {
            "id": self.id,
            "schema": {
                path: {each.name: each.domain.name for each in self.schema.properties[path]}
                for path in self.schema.classes
            },
            "hosts": {name: list(classes) for name, classes in self.hosts.items()},
            "mapping": self.mapping,
            "seed": 0,
            "checkpoints": list(self.checkpoints),
            "churn": self.columns()["churn"],
            "path": self.path,
            "subscriptions": self.subscriptions,
            "unsubscriptions": self.gone,
        }


def examined(
    spark: SparkSession, path: str, schema: Schema, format_: str = PARQUET
) -> list[StoredWorkload]:
    """Checks the datasets at a path, and returns the workload with each of its mappings."""
    try:
        return _examined(spark, path, schema, format_)
    except (PySparkException, Py4JError) as problem:
        raise translated(problem, path) from None


def _examined(spark: SparkSession, path: str, schema: Schema, format_: str) -> list[StoredWorkload]:
    frames = read(spark, path, schema, format_)
    arrivals = _arrivals(frames["subscriptions"], path)
    gone = _gone(frames, path)
    digest = sha256()
    for name in ("subscriptions", "unsubscriptions"):
        columns = [each for each in frames[name].columns if each != "subscription"]
        hashed = frames[name].select(f.xxhash64(*columns).cast("decimal(38,0)").alias("hash"))
        digest.update(repr(hashed.agg(f.count("*"), f.sum("hash")).first()).encode())
    found = []
    for mapping, hosts in _mappings(frames["mapping"], schema, path).items():
        for name in arrivals:
            if name not in hosts:
                raise NameNotKnown("organisation", name, hosts, place=f"{path}/subscriptions")
        found.append(
            StoredWorkload(
                path, format_, schema, hosts, mapping, arrivals, gone, digest.hexdigest()
            )
        )
    return found


def _arrivals(subscriptions: DataFrame, path: str) -> dict[str, int]:
    numbers = subscriptions.groupBy("organisation").agg(
        f.count("*").alias("rows"), f.min("number").alias("least"), f.max("number").alias("most"),
        f.count_distinct("number").alias("different"),
    )  # fmt: skip
    arrivals = {}
    for row in numbers.orderBy("organisation").collect():
        if not (row["least"] == 1 and row["rows"] == row["most"] == row["different"]):
            raise ValueRefused(
                f"the numbers of {row['organisation']} are not 1 to {row['rows']:,}",
                place=f"{path}/subscriptions",
                remedy="number its subscriptions in the order of arrival",
            )
        arrivals[row["organisation"]] = row["rows"]
    if not arrivals:
        raise DocumentError("there are no subscriptions", place=path)
    return arrivals


def _gone(frames: Mapping[str, DataFrame], path: str) -> int:
    """The number of unsubscriptions, each of which must end a subscription that has arrived."""
    ended = frames["unsubscriptions"]
    known = frames["subscriptions"].select("organisation", "number", "id")
    joined = ended.join(known, ["organisation", "number"], "left")
    wrong = joined.where("id is null or after < number").limit(1).collect()
    twice = ended.groupBy("organisation", "number").count().where("count > 1").limit(1).collect()
    for row in (*wrong, *twice):
        raise ValueRefused(
            f"the subscription {row['number']:,} of {row['organisation']} ends "
            f"{'twice' if twice else 'and has not begun'}",
            place=f"{path}/unsubscriptions",
        )
    return ended.count()


def _mappings(mapping: DataFrame, schema: Schema, path: str) -> dict[str, Hosts]:
    found: dict[str, dict[str, set[str]]] = {}
    place = f"{path}/mapping"
    for row in mapping.distinct().collect():
        if row["class"] not in schema.classes:
            raise NameNotKnown("class", row["class"], schema.classes, place=place)
        hosts = found.setdefault(row["mapping"] or "own", {})
        hosts.setdefault(row["organisation"], set()).add(row["class"])
    for hosts in found.values():
        if not FEWEST_ORGANISATIONS <= len(hosts) <= MOST_ORGANISATIONS:
            raise ValueRefused(
                f"{len(hosts):,} organisations",
                place=place,
                remedy=f"from {FEWEST_ORGANISATIONS} to {MOST_ORGANISATIONS}",
            )
    return {
        name: {
            organisation: tuple(path for path in schema.classes if path in hosts[organisation])
            for organisation in sorted(hosts)
        }
        for name, hosts in sorted(found.items())
    }


def merged_from(workload: StoredWorkload, spark: SparkSession) -> DataFrame:
    """The counts of a stored workload, with their cost (`merge_frame.split`)."""
    frames = read(spark, workload.path, workload.schema, workload.format)
    subscriptions = frames["subscriptions"].drop("id", "subscription")
    codes = codes_of(subscriptions, workload.schema, tuple(workload.hosts))
    most_axes = max(
        len(tuple(workload.schema.attributes(path))) for path in workload.schema.classes
    )
    setting = Setting(
        workload.columns(), workload.hosts, codes.scopes, workload.checkpoints, most_axes
    )
    histories = _with_moments(subscriptions, frames["unsubscriptions"], workload.gone)
    in_order = histories.sortWithinPartitions("organisation", "moment")
    filtering = guarded(partial(filtered_rows, codes, setting), workload.path)
    parts = in_order.mapInArrow(filtering, PARTS_COLUMNS)
    return merge(parts, setting, workload.subscriptions)


def _with_moments(subscriptions: DataFrame, ended: DataFrame, gone: int) -> DataFrame:
    """Adds `moment` and `ends`; several that end after the same arrival end in their order."""
    moment = (f.col("number") * STEP).alias("moment")
    if not gone:
        return subscriptions.select("*", moment, f.lit(NEVER).alias("ends"))
    place = f.row_number().over(Window.partitionBy("organisation", "after").orderBy("number"))
    ends = ended.select("organisation", "number", (f.col("after") * STEP + place).alias("ends"))
    joined = subscriptions.join(ends, ["organisation", "number"], "left")
    return joined.select(
        *subscriptions.columns, moment, f.coalesce("ends", f.lit(NEVER)).alias("ends")
    )
