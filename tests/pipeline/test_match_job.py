"""Matching of stored events on Spark gives the oracle's pairs, in reproducible files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from qns.cbr.oracle import match
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import write_event_json
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import WEATHER
from qns.errors import QnsError
from qns.pipeline.matching import match_inputs
from qns.pipeline.matching.match_inputs import Line, Wanted, read_wanted, units_of, units_of_lines
from qns.pipeline.matching.match_job import PAIRS, SUMMARY, match_job
from qns.pipeline.replay.samples import write_sample
from qns.pipeline.replay.workload_files import Publication, read_publications, write_publications
from qns.pipeline.workload.generator import Generator
from qns.pipeline.workload.scenario import Scenario, Workload, hosts_of

SCENARIO = Scenario(
    WEATHER,
    hosts_of(WEATHER, 4, "partial"),
    "partial",
    1,
    (15,),
    0.2,
    Workload(constrained=0.2, quality_constrained=0.05),
)
EVENTS = 300


@pytest.fixture
def sample(tmp_path: Path) -> tuple[Path, Path]:
    """Writes SUBS, and EVENTS in ten files with several row groups each."""
    subs, events = write_sample(SCENARIO, EVENTS, tmp_path)
    table = pq.read_table(events)
    folder = tmp_path / "events"
    folder.mkdir()
    for part in range(10):
        some = table.slice(30 * part, 30)
        pq.write_table(some, folder / f"{part}.parquet", row_group_size=8)
    return subs, folder


def expected(events: list[Any], wanted: list[Wanted]) -> list[tuple[str, str, str, str]]:
    by_key: dict[tuple[str, str], Subscription] = {
        (each.organisation, each.id): each.subscription for each in wanted
    }
    return [
        (event.source, event.id, *key) for event in events for key in sorted(match(by_key, event))
    ]


def written(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }


def pairs_in(out: Path) -> list[tuple[Any, ...]]:
    parts = [pq.read_table(path, schema=PAIRS) for path in sorted((out / "pairs").iterdir())]
    return [tuple(row.values()) for part in parts for row in part.to_pylist()]


@pytest.mark.slow
def test_pairs_equal_those_of_the_oracle_for_any_partitions(
    spark: SparkSession, sample: tuple[Path, Path], tmp_path: Path
) -> None:
    subs, events = sample
    wanted = read_wanted(subs, WEATHER)
    units = units_of(events, tmp_path)
    assert len(units) == 40
    progress: list[float] = []
    for partitions in (1, 3, 40):
        out = tmp_path / f"out-{partitions}"
        matched = match_job(spark, units, wanted, WEATHER, out, progress.append, partitions)
        assert written(out) == written(tmp_path / "out-1")
    stored = [
        publication.event
        for publication in read_publications(tmp_path / "EVENTS.parquet", WEATHER).rows
    ]
    pairs = expected(stored, wanted)
    assert pairs_in(out) == pairs
    assert matched.pairs == len(pairs) > 100
    assert matched.events == EVENTS
    assert matched.matched == len({(source, id) for source, id, *_ in pairs})
    summary = pq.read_table(out / "summary.parquet")
    assert summary.schema == SUMMARY
    assert summary.num_rows == len(wanted) == 4 * 15
    for row in summary.to_pylist():
        got = sum(pair[2:] == (row["organisation"], row["subscription"]) for pair in pairs)
        assert (row["events"], row["share"]) == (got, got / EVENTS)
    assert all(0 <= share <= 1 for share in progress)
    assert not list(out.glob(".*"))


def test_lines_and_large_row_groups_are_divided_into_units(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_inputs, "UNIT", 40)
    monkeypatch.setattr(match_inputs, "LARGEST", 50)
    subs, events = write_sample(SCENARIO, 100, tmp_path)
    wanted = read_wanted(subs, WEATHER)
    stored = list(Generator(SCENARIO).events(100))
    lines = [
        Line(2 * number, json.dumps(write_event_json(event, WEATHER)))
        for number, event in enumerate(stored)
    ]
    (tmp_path / "staged").mkdir()
    for name, units in (
        ("file", units_of(events, tmp_path / "staged")),
        ("lines", units_of_lines(lines, "events.jsonl", tmp_path / "staged")),
    ):
        assert [unit.events for unit in units] == [40, 40, 20]
        match_job(spark, units, wanted, WEATHER, tmp_path / name)
        assert pairs_in(tmp_path / name) == expected(stored, wanted)


def test_no_events_give_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    write_publications(tmp_path / "none.parquet", iter([]), WEATHER)
    units = units_of(tmp_path / "none.parquet", tmp_path)
    wanted = [Wanted("", "s", parse_subscription("Report", WEATHER))]
    matched = match_job(spark, units, wanted, WEATHER, tmp_path / "out")
    assert matched[:3] == (0, 0, 0)
    assert pq.read_table(tmp_path / "out" / "summary.parquet")["share"].to_pylist() == [0.0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<event>", r"bad\.parquet: row 21: "),
        (None, r"bad\.parquet: row 21: 'event' is None"),
        ('{"id": "e", "class": "Rport", "source": "Met01"}', r"row 21: .*Rport"),
    ],
)
def test_invalid_event_is_reported_with_its_row_and_leaves_no_files(
    spark: SparkSession, tmp_path: Path, text: str | None, problem: str
) -> None:
    events = [Publication(number, e) for number, e in enumerate(Generator(SCENARIO).events(30))]
    write_publications(tmp_path / "good.parquet", events, WEATHER)
    rows = pq.read_table(tmp_path / "good.parquet").to_pylist()
    rows[20]["event"] = rows[25]["event"] = text
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "bad.parquet", row_group_size=7)
    wanted = [Wanted("", "s", parse_subscription("Report", WEATHER))]
    with pytest.raises(QnsError, match=problem):
        match_job(
            spark, units_of(tmp_path / "bad.parquet", tmp_path), wanted, WEATHER, tmp_path / "out"
        )
    assert not list((tmp_path / "out").iterdir())


def test_existing_results_are_not_changed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    with pytest.raises(QnsError, match=r"pairs is there already \(choose another folder\)"):
        match_job(spark, [], [], WEATHER, tmp_path)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([{"id": "a", "subscription": "Report/Wnd"}], r"SUBS\.parquet: row 1: .*Report/Wnd"),
        ([{"id": "a", "subscription": "Report"}] * 2, r"row 2: the id a is given twice, first in"),
        ([{"subscription": "Report"}], "there is no column 'id'"),
    ],
)
def test_invalid_subscription_is_reported_with_its_row(
    tmp_path: Path, rows: list[dict[str, str]], problem: str
) -> None:
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "SUBS.parquet")
    with pytest.raises(QnsError, match=problem):
        read_wanted(tmp_path / "SUBS.parquet", WEATHER)


def test_file_without_events_is_reported(tmp_path: Path) -> None:
    pq.write_table(pa.table({"evnt": ["x"]}), tmp_path / "EVENTS.parquet")
    with pytest.raises(QnsError, match=r"EVENTS\.parquet: there is no column 'event'"):
        units_of(tmp_path / "EVENTS.parquet", tmp_path)
