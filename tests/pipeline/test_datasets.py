"""Datasets: the same draws, the same counts when they are written, read and merged."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from qns.d2q.printing import write_readable
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import QnsError
from qns.iil.interpreter import interpret
from qns.pipeline.datasets.generated import generated
from qns.pipeline.datasets.schemas import CONSTRAINT, DATASETS
from qns.pipeline.datasets.stored import read, write
from qns.pipeline.datasets.stored_workload import examined, merged_from
from qns.pipeline.datasets.texts import columns_of
from qns.pipeline.merging.merge_frame import merged, split
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LOOSE = Workload(constrained=0.3, values=4, only=0.3, sources_given=0.4)


def scenario_of(churn: float = 0.3, subscriptions: int = 300) -> Scenario:
    hosts = hosts_of(WEATHER, 4, "partial")
    points = tuple(each for each in (1, 2, 5, 10, 20, 50, 100, 200) if each < subscriptions)
    return Scenario(WEATHER, hosts, "partial", 8, (*points, subscriptions), churn, LOOSE)


def rows(frame: DataFrame) -> list[dict[str, object]]:
    found: list[dict[str, object]] = frame.toArrow().to_pylist()
    return found


def counts(table: pa.Table) -> list[str]:
    wanted = [name for name in table.column_names if name not in ("scenario", "seed", "churn")]
    return sorted(map(repr, table.select(wanted).to_pylist()))


def test_generated_rows_are_the_operations_of_the_generator(spark: SparkSession) -> None:
    scenario = scenario_of()
    frames = generated(scenario, spark, publications=50)
    expected, ended = [], []
    for name in scenario.organisations:
        for operation in Generator(scenario).operations(name, 300):
            number = int(operation.id.rpartition("-")[2])
            if operation.subscription is None:
                ended.append((name, number, operation.arrived))
                continue
            one = columns_of(operation.subscription, WEATHER)
            text = write_readable(operation.subscription, WEATHER)
            key = lambda each: each["attribute"]  # noqa: E731
            one["constraints"].sort(key=key)
            expected.append({"number": number, "id": operation.id, **one, "subscription": text})
    found = rows(frames["subscriptions"].orderBy("organisation", "number"))
    for row in found:
        row.pop("organisation")
        row["constraints"].sort(key=lambda each: each["attribute"])  # type: ignore[attr-defined]
    assert found == expected
    found = rows(frames["unsubscriptions"])
    assert sorted((row["organisation"], row["number"], row["after"]) for row in found) == sorted(
        ended
    )
    events = list(Generator(scenario).events(50))
    found = rows(frames["publications"].orderBy("number"))
    assert [row["id"] for row in found] == [event.id for event in events]


@pytest.mark.parametrize("churn", [0.0, 0.3])
def test_stored_workload_gives_the_counts_of_its_scenario(
    spark: SparkSession, tmp_path: Path, churn: float
) -> None:
    scenario = scenario_of(churn)
    path = f"file://{tmp_path}/workload"
    write(generated(scenario, spark), path)
    (workload,) = examined(spark, path, WEATHER)
    assert workload.mapping == "partial"
    assert dict(workload.hosts) == dict(scenario.hosts)
    assert workload.checkpoints == scenario.checkpoints
    stored = split(merged_from(workload, spark).toArrow())["subscriptions"]
    drawn = split(merged(scenario, spark).toArrow())["subscriptions"]
    assert counts(stored) == counts(drawn)


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_subscriptions_are_read_from_texts_of_any_format(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    scenario = scenario_of(0.0, 40)
    frames = generated(scenario, spark)
    for name in ("subscriptions", "mapping"):
        frame = frames[name]
        if name == "subscriptions":
            frame = frame.select("organisation", "number", "id", "subscription")
        frame.write.format(format_).option("header", True).save(str(tmp_path / name))
    (workload,) = examined(spark, str(tmp_path), WEATHER, format_)
    stored = split(merged_from(workload, spark).toArrow())["subscriptions"]
    drawn = split(merged(scenario, spark).toArrow())["subscriptions"]
    assert counts(stored) == counts(drawn)


def test_organisation_without_subscriptions_has_counts(spark: SparkSession, tmp_path: Path) -> None:
    frames = generated(scenario_of(0.0, 20), spark)
    frames["subscriptions"] = frames["subscriptions"].where("organisation = 'Met02'")
    write(frames, str(tmp_path))
    (workload,) = examined(spark, str(tmp_path), WEATHER)
    found = split(merged_from(workload, spark).toArrow())["subscriptions"].to_pylist()
    assert {row["organisation"] for row in found} == {"Met01", "Met02", "Met03", "Met04"}
    assert {row["changes"] for row in found if row["organisation"] == "Met01"} == {0}


def test_existing_datasets_are_not_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    frames = generated(scenario_of(0.0, 5), spark)
    write(frames, str(tmp_path))
    with pytest.raises(QnsError, match="subscriptions exists already"):
        write(frames, str(tmp_path))


def test_missing_dataset_and_missing_column_are_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(QnsError, match="there is no dataset subscriptions"):
        read(spark, str(tmp_path), WEATHER)
    spark.createDataFrame([("Met01", "a")], "organisation string, id string").write.parquet(
        str(tmp_path / "subscriptions")
    )
    with pytest.raises(QnsError, match="there is no column 'number'"):
        read(spark, str(tmp_path), WEATHER)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("number + 1", "the numbers of Met01 are not 1 to 5"),
        ("1", "the numbers of Met01 are not 1 to 5"),
    ],
)
def test_wrong_numbers_are_refused(
    spark: SparkSession, tmp_path: Path, change: str, problem: str
) -> None:
    frames = generated(scenario_of(0.0, 5), spark)
    frames["subscriptions"] = frames["subscriptions"].selectExpr(
        "* except (number)", f"cast({change} as bigint) as number"
    )
    write(frames, str(tmp_path))
    with pytest.raises(QnsError, match=problem):
        examined(spark, str(tmp_path), WEATHER)


@pytest.mark.parametrize(
    ("number", "after", "problem"),
    [(9, 9, "subscription 9 of Met01 ends and has not"), (4, 3, "subscription 4 of Met01 ends")],
)
def test_impossible_end_is_refused(
    spark: SparkSession, tmp_path: Path, number: int, after: int, problem: str
) -> None:
    frames = generated(scenario_of(0.0, 5), spark)
    frames["unsubscriptions"] = spark.createDataFrame(
        [("Met01", number, after)], DATASETS["unsubscriptions"]
    )
    write(frames, str(tmp_path))
    with pytest.raises(QnsError, match=problem):
        examined(spark, str(tmp_path), WEATHER)


def test_corrupt_file_is_an_error_with_its_place(spark: SparkSession, tmp_path: Path) -> None:
    write(generated(scenario_of(0.0, 5), spark), str(tmp_path))
    (file, *_) = (tmp_path / "subscriptions").rglob("*.parquet")
    file.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(QnsError, match=r"(?i)parquet"):
        examined(spark, str(tmp_path), WEATHER)


def test_condition_that_is_no_interval_is_refused() -> None:
    one = interpret("Enterprise where Code in {'a', 'b'}", AGENCIES)
    with pytest.raises(QnsError, match="is not one interval or one string"):
        columns_of(one, AGENCIES)


def test_data_dictionary_names_every_column() -> None:
    page = (ROOT / "docs/datasets.md").read_text(encoding="utf-8")
    for name, columns in (*DATASETS.items(), ("constraints", CONSTRAINT)):
        (section,) = re.findall(rf"^## `{name}`\n(.*?)(?=^## |\Z)", page, re.M | re.S)
        listed = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", section, re.M)
        assert [(each, meaning) for each, _, meaning in listed] == [
            (column.name, (column.metadata or {})["comment"]) for column in columns
        ]
