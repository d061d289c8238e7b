"""Tests of `qns merge`."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr import oracle
from qns.cbr.delta import Delta
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.cli.commands.merge import exactly_merged, merged
from qns.federation.shipped import WEATHER_FULL, WEATHER_PARTIAL
from tests.cli.conftest import ROOT, Cli
from tests.strategies import ALL_TYPES, subscriptions

Write = Callable[[str, str | bytes], Path]
WEATHER = ROOT / "examples" / "weather" / "subscriptions.tsv"


def test_worked_case_is_merged(cli: Cli) -> None:
    path = ROOT / "examples" / "agencies" / "subscriptions.tsv"
    outcome = cli("merge", "--schema", "agencies", path, "--json")
    assert outcome.status == 0
    assert outcome.json == {
        "merge": [
            {"subscription": "Enterprise/Holder", "ids": ["S1"], "covers": ["S2", "S3", "S4"]}
        ],
        "subscriptions": 4,
        "size": 1,
    }


def test_result_does_not_depend_on_the_order_of_the_file(cli: Cli, file: Write) -> None:
    lines = [line for line in WEATHER.read_text(encoding="utf-8").splitlines() if "\t" in line]
    for options in ([], ["--exact"], ["--json"], ["--producer", "Met06"]):
        expected = cli("merge", "--schema", "weather", WEATHER, *options)
        for seed in range(5):
            random.Random(seed).shuffle(lines)
            path = file("shuffled.tsv", "\n".join(lines))
            assert cli("merge", "--schema", "weather", path, *options) == expected


def test_equivalent_subscriptions_share_an_element(cli: Cli, file: Write) -> None:
    path = file(
        "s", "b\tReport/Visibility where Metres > 3\na\tonly Report/Visibility where Metres >= 4\n"
    )
    outcome = cli("merge", "--schema", "weather", path)
    assert outcome.out.splitlines()[2] == "a, b  only Report/Visibility where Metres >= 4"


def test_tree_is_nested_by_containment(cli: Cli, file: Write) -> None:
    path = file(
        "s",
        "a\tReport\nb\tReport/Wind where Speed > 1\nc\tReport/Wind where Speed > 2\n"
        "d\tReport/Wind where Speed > 3 and Direction = 1\nx\tReport/Wind where Direction = 1\n",
    )
    assert cli("merge", "--schema", "weather", path).out == (
        "the merge subscription of 5 subscriptions: 1 element\n"
        "\n"
        "a  Report\n"
        "├── b  Report/Wind where Speed > 1\n"
        "│   └── c  Report/Wind where Speed > 2\n"
        "│       └── d  Report/Wind where Direction = 1 and Speed > 3\n"
        "└── x  Report/Wind where Direction = 1\n"
    )


def test_empty_file_has_an_empty_merge_subscription(cli: Cli) -> None:
    assert cli("merge", "--schema", "weather", "-").out == (
        "the merge subscription of 0 subscriptions: 0 elements\n"
    )
    outcome = cli("merge", "--schema", "weather", "-", "--json", "--exact")
    assert outcome.json == {"merge": [], "subscriptions": 0, "size": 0}


def test_wrong_subscription_is_an_error(cli: Cli) -> None:
    outcome = cli("merge", "--schema", "weather", "-", stdin=b"a\tReport\nb\tRepot\nc\n")
    assert outcome.status == 2
    assert outcome.err.count("qns: error: standard input:") == 2
    assert not outcome.out


@pytest.mark.parametrize("mapping", ["partial", "full"])
def test_producer_option_prints_the_view_in_the_external_merge_table(
    mapping: str, cli: Cli
) -> None:
    hosts = WEATHER_PARTIAL if mapping == "partial" else WEATHER_FULL
    for producer in hosts.organisations:
        words = ("merge", "--schema", "weather", WEATHER, "--producer", producer, "--json")
        outcome = cli(*words, "--mapping", mapping)
        seen = [id for each in outcome.json["merge"] for id in (*each["ids"], *each["covers"])]
        assert len(set(seen)) == len(seen)
        assert sorted([*seen, *outcome.json["unconcerned"]]) == sorted(
            line.split("\t")[0]
            for line in WEATHER.read_text(encoding="utf-8").splitlines()
            if "\t" in line
        )
        for each in outcome.json["merge"]:
            assert set(each["classes"]) <= hosts.hosted_by(producer)
            assert " from " not in each["subscription"]


def test_unknown_producer_is_reported(cli: Cli) -> None:
    outcome = cli("merge", "--schema", "weather", WEATHER, "--producer", "Met11")
    assert outcome.status == 2
    assert "unknown organisation 'Met11' (did you mean Met10 or Met01" in outcome.err


def test_schema_without_shipped_mapping_is_reported(cli: Cli, file: Write) -> None:
    schema = file(
        "mine.xml", cli("schema", "weather", "--xml").out.replace('name="weather"', 'name="w"')
    )
    outcome = cli("merge", "--schema", schema, WEATHER, "--producer", "Met01")
    assert outcome.status == 2
    assert "no mapping is shipped for the schema 'w'" in outcome.err


@given(st.dictionaries(st.text(max_size=2), subscriptions(), max_size=8))
def test_elements_partition_the_ids_and_contain_what_they_cover(
    wanted: dict[str, Subscription],
) -> None:
    wanted = dict(sorted(wanted.items()))
    contained = merged(wanted)
    exact = exactly_merged(contained, ALL_TYPES)
    assert {each.subscription for each in contained} == oracle.merge_set(wanted.values())
    assert {each.subscription for each in exact} == ExactMerge(
        each.subscription for each in contained
    ).subscriptions
    for elements in (contained, exact):
        covered = [id for each in elements for id in (*each.ids, *each.covers)]
        assert sorted(covered) == sorted(wanted)
        for each in elements:
            assert all(wanted[id] == each.subscription for id in each.ids)
            assert all(each.subscription.contains(wanted[id]) for id in each.covers)


@given(st.dictionaries(st.text(max_size=2), subscriptions(), max_size=8))
def test_projection_and_merging_commute(wanted: dict[str, Subscription]) -> None:
    hosted = frozenset({"Thing", "Thing/Part"})
    projected = {id: s.projected("INPS", hosted) for id, s in wanted.items()}
    view = ProducerView("INPS", hosted)
    view.update(Delta(added=frozenset(oracle.merge_set(wanted.values()))))
    elements = merged({id: s for id, s in projected.items() if s is not None})
    assert {each.subscription for each in elements} == view.subscriptions
