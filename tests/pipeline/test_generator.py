"""The generated workload is reproducible and follows its parameters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from qns.cbr.intervals import Intervals
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.pipeline.workload.generator import BLOCK, Generator
from qns.pipeline.workload.scenario import HARD, Scenario, Workload, hosts_of

TYPES = Schema(
    "types",
    {
        "All": {
            "text": "string",
            "whole": "integer",
            "part": "decimal",
            "flag": "boolean",
            "day": "date",
            "moment": "dateTime",
        }
    },
)


def generator(
    workload: Workload | None = None, schema: Schema = WEATHER, **fields: int
) -> Generator:
    return Generator(
        Scenario(
            schema,
            hosts_of(schema, fields.get("organisations", 5), "partial"),
            "partial",
            fields.get("seed", 3),
            (BLOCK,),
            workload=workload or Workload(),
        )
    )


def test_block_does_not_depend_on_earlier_draws_or_on_its_used_rows() -> None:
    whole, other = generator(), generator()
    other.block("Met04", 2)
    list(other.events(5))
    first = whole.block("Met02", 1)
    again = other.block("Met02", 1, rows=100)
    used = first.start[100]
    assert (first.scope[:100] == again.scope).all()
    assert (first.sources[:100] == again.sources).all()
    assert (first.bound[:used] == again.bound).all()
    assert (first.axis[:used] == again.axis).all()


def test_organisations_blocks_and_seeds_draw_different_rows() -> None:
    draws = [
        generator().block("Met01", 0),
        generator().block("Met02", 0),
        generator().block("Met01", 1),
        generator(seed=4).block("Met01", 0),
    ]
    assert len({each.bound.tobytes() for each in draws}) == 4


@pytest.mark.parametrize("schema", [WEATHER, AGENCIES, TYPES], ids=lambda each: each.name)
@pytest.mark.parametrize("workload", [Workload(), HARD, Workload(only=1.0, mildest_first=True)])
def test_every_generated_subscription_can_be_written_and_read(
    schema: Schema, workload: Workload
) -> None:
    made = generator(workload, schema)
    name = made.scenario.organisations[1]
    for operation in made.operations(name, 300):
        assert operation.subscription is not None
        text = write_readable(operation.subscription, schema)
        assert parse_subscription(text, schema) == operation.subscription


def test_shares_are_those_of_the_parameters() -> None:
    made = generator(Workload(constrained=0.4, sources_given=0.3, least_constraints=0))
    block = made.block("Met03", 0)
    data = np.array(made.space.data_axes)[block.data_class]
    lineage = np.repeat(data, np.diff(block.start))
    constrained = (block.axis < lineage).sum() / data.sum()
    assert abs(constrained - 0.4) < 0.02
    assert abs(block.named.mean() - 0.3) < 0.02
    given = Counter(int(row[0]).bit_count() for row in block.sources[block.named])
    assert set(given) == {1, 2, 3}
    assert all(abs(number / block.named.sum() - 1 / 3) < 0.04 for number in given.values())
    assert not (block.sources[block.named][:, 0] >> np.uint64(2) & np.uint64(1)).any()  # itself


def test_popularity_follows_zipf_and_no_order_of_the_values() -> None:
    made = generator(Workload(zipf=1.0, values=8, constrained=1.0, equality=1.0, between=0.0))
    block = made.block("Met01", 0)
    at_station = block.axis == 0
    counts = np.sort(np.bincount(block.pin[at_station], minlength=8))[::-1]
    expected = 1 / np.arange(1, 9)
    expected *= counts.sum() / expected.sum()
    assert np.abs(counts / expected - 1).max() < 0.15
    popular = [
        np.bincount(block.pin[block.axis == axis], minlength=8).argmax() for axis in (0, 1, 2)
    ]
    assert len(set(popular)) > 1


def test_all_four_kinds_of_threshold_are_equally_frequent() -> None:
    made = generator(Workload(constrained=1.0, values=1_000, zipf=0.0), TYPES)
    block = made.block("Org01", 0)
    whole = block.axis == 1
    low, high = block.low[whole], block.high[whole]
    kinds = Counter(
        zip((low < 0).tolist(), (high == 1_000).tolist(), (low == high).tolist(), strict=True)
    )
    assert len(kinds) == 4
    assert all(abs(number / whole.sum() - 0.25) < 0.02 for number in kinds.values())


def test_subscriptions_have_constraints_unless_the_workload_allows_none() -> None:
    sparse = Workload(constrained=0.01, quality_constrained=0.0)
    assert np.diff(generator(sparse).block("Met01", 0).start).min() == 1
    asked = replace(sparse, least_constraints=0)
    assert np.diff(generator(asked).block("Met01", 0).start).min() == 0


def test_events_are_uniform_and_published_by_hosts_of_their_class() -> None:
    made = generator()
    events = list(made.events(4_000))
    assert [event.id for event in events[:2]] == ["e1", "e2"]
    hosts = made.scenario.hosts
    assert all(event.data_class in hosts[event.source] for event in events)
    classes = Counter(event.data_class for event in events)
    hosted = {path for classes in hosts.values() for path in classes}
    assert set(classes) == hosted
    assert max(classes.values()) < 1.3 * min(classes.values())
    for event in events[:50]:
        assert {each.name for each in WEATHER.attributes(event.data_class)} == set(event.values)
    stations = Counter(event.values["Report.Station"] for event in events)
    assert len(stations) == 10
    assert max(stations.values()) < 1.3 * min(stations.values())


def test_churn_removes_live_subscriptions_at_the_given_rate() -> None:
    made = Generator(replace(generator().scenario, churn=0.4))
    live: set[str] = set()
    arrived = gone = 0
    for operation in made.operations("Met01", 3_000):
        if operation.subscription is not None:
            live.add(operation.id)
            arrived += 1
        else:
            live.remove(operation.id)
            gone += 1
    assert arrived == 3_000
    assert abs(gone / arrived - 0.4) < 0.03


def test_bounds_equal_those_of_the_real_subscription() -> None:
    made = generator(Workload(constrained=1.0, values=5), TYPES)
    block = made.block("Org02", 0, rows=200)
    axes = made.space.axes[0]
    for row in range(200):
        real = made.real(block, row)
        for place in range(block.start[row], block.start[row + 1]):
            axis = axes[block.axis[place]]
            values = real.constraints[axis.name]
            if isinstance(values, Intervals) and axis.is_ordered:
                assert (values.lowest == axis.domain.lo) == (block.low[place] < 0)
                assert block.bound[place] >> 16 == block.low[place] + 1
