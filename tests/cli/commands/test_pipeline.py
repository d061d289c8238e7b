"""Tests of `qns pipeline`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Cli
from tests.pipeline.conftest import spark

__all__ = ["spark"]  # the session that `qns pipeline match` finds running, and leaves alone

EVENTS = "examples/weather/events.jsonl"
SUBSCRIPTIONS = "examples/weather/subscriptions.tsv"


@pytest.mark.usefixtures("spark")
@pytest.mark.slow
def test_text_files_give_the_same_pairs_as_qns_match(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "found"
    outcome = cli(
        "pipeline", "match", EVENTS, SUBSCRIPTIONS, "--schema", "weather", "--out", out, "--json"
    )
    assert (outcome.status, outcome.err) == (0, "")
    alone = cli(
        *("match", "--schema", "weather", "--events", EVENTS, "--subscriptions", SUBSCRIPTIONS)
    )
    pairs = [(str(line["event"]), each) for line in alone.json_lines for each in line["matches"]]
    found = pq.read_table(out / "pairs")
    assert [(row["event"], row["subscription"]) for row in found.to_pylist()] == pairs
    assert outcome.json == {
        "events": len(alone.json_lines),
        "matched": sum(bool(line["matches"]) for line in alone.json_lines),
        "pairs": len(pairs),
        "subscriptions": 10,
        "out": str(out),
    }


@pytest.mark.usefixtures("spark")
def test_generated_sample_can_be_matched(cli: Cli, tmp_path: Path) -> None:
    sample, out = tmp_path / "sample", tmp_path / "found"
    options = ("--organisations", 3, "--subscriptions", 7, "--publications", 20, "--seed", 2)
    made = cli("pipeline", "generate", "--files", *options, "--out", sample)
    assert made.status == 0
    assert "SUBS.parquet: subscriptions of 3 organisations" in made.out
    assert pq.read_table(sample / "SUBS.parquet").num_rows == 21
    found = cli(
        *("pipeline", "match", sample / "EVENTS.parquet", sample / "SUBS.parquet"),
        *("--schema", "weather", "--out", out),
    )
    assert (found.status, found.err) == (0, "")
    assert " of 20 events match any of 21 subscriptions; " in found.out
    assert sorted(path.name for path in out.iterdir()) == ["pairs", "summary.parquet"]
    again = cli(
        *("pipeline", "match", sample / "EVENTS.parquet", sample / "SUBS.parquet"),
        *("--schema", "weather", "--out", out),
    )
    assert again.status == 2
    assert "pairs is there already (choose another folder)" in again.err


def test_same_seed_generates_the_same_sample(cli: Cli, tmp_path: Path) -> None:
    drawn = ("--organisations", 2, "--subscriptions", 3, "--publications", 4, "--churn", 0.3)
    options = ("--files", *drawn)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        out = tmp_path / name
        outcome = cli("pipeline", "generate", *options, "--seed", seed, "--out", out, "--json")
        assert outcome.json["events"] == str(out / "EVENTS.parquet")
    for name in ("SUBS.parquet", "EVENTS.parquet"):
        one, same, other = ((tmp_path / each / name).read_bytes() for each in "abc")
        assert one == same != other
    refused = cli("pipeline", "generate", *options, "--out", tmp_path / "a")
    assert refused.status == 2
    assert "SUBS.parquet exists already" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "--organisations", "1"), "1 organisations (from 2 to 500)"),
        (("generate", "--subscriptions", "0"), "no subscriptions"),
        (("generate", "--publications", "0"), "numbers of publications are out of range"),
        (("generate", "--churn", "1"), "churn 1 (from 0 to below 1)"),
        (("generate", "--seed", "-1"), "seed -1"),
        (("generate", "--schema", "wether"), "unknown schema 'wether'"),
        (("match", EVENTS, SUBSCRIPTIONS, "--schema", "wether"), "unknown schema 'wether'"),
        (("match", EVENTS, "absent.tsv", "--schema", "weather"), "absent.tsv: cannot be read"),
        (("match", EVENTS, "absent.parquet", "--schema", "weather"), "absent.parquet: cannot be"),
        (("match", "absent.jsonl", SUBSCRIPTIONS, "--schema", "weather"), "absent.jsonl: cannot"),
        (
            ("match", EVENTS, SUBSCRIPTIONS, "--schema", "weather", "--master", "sc://host:1"),
            "match does not run over Spark Connect (give a master)",
        ),
        (
            ("match", EVENTS, SUBSCRIPTIONS, "--schema", "weather", "--master", "lcal"),
            "'lcal' is no Spark master",
        ),
    ],
)
def test_impossible_arguments_are_reported(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = cli("pipeline", *arguments, "--out", tmp_path / "out")
    assert outcome.status == 2
    assert message in outcome.err


@pytest.mark.usefixtures("spark")
def test_wrong_line_is_reported_with_its_number(cli: Cli, tmp_path: Path) -> None:
    good = Path(EVENTS).read_text(encoding="utf-8").splitlines()[0]
    bad = json.dumps({**json.loads(good), "class": "Report/Wnd"})
    (tmp_path / "events.jsonl").write_text(f"{good}\n\n{bad}\n", encoding="utf-8")
    (tmp_path / "subs.tsv").write_text("S1\tReport/Wnd\nS2\tReport\n", encoding="utf-8")
    for events, subscriptions, message in (
        (tmp_path / "events.jsonl", SUBSCRIPTIONS, "events.jsonl: line 3: "),
        (EVENTS, tmp_path / "subs.tsv", "subs.tsv:1: "),
    ):
        outcome = cli(
            *("pipeline", "match", events, subscriptions, "--schema", "weather"),
            *("--out", tmp_path / "out"),
        )
        assert outcome.status == 2
        assert message in outcome.err
        assert "Report/Wnd" in outcome.err
