"""Comparison: the rows of table 2.1 and the points of fig. 4.2, on small systems."""

from __future__ import annotations

from random import Random

import pytest

from qns.errors import ValueRefused
from qns.lab.experiments.comparison import compare, grouped_tree, locality
from qns.lab.simulated.workload import Shape
from qns.lab.strategies.catalogue import STRATEGIES, Setting


def test_table_2_1_shows_the_costs_of_each_strategy() -> None:
    rows = compare(Setting(12, 3, fan_out=4), 30, 30, shape=Shape(longest=500.0))
    assert [row.strategy for row in rows] == list(STRATEGIES)
    by_name = {row.strategy: row for row in rows}
    ideal = {row.ideal_hops for row in rows}
    assert len(ideal) == 1
    flooded, match_first = by_name["notification flooding"], by_name["subscription flooding"]
    assert (flooded.messages_per_subscription, flooded.hops_per_notification) == (0, 11)
    assert (match_first.messages_per_subscription, match_first.mean_table) == (11, 30)
    for name in ("subscription flooding", "QNS direct", "QNS tree"):
        assert {by_name[name].hops_per_notification} == ideal
        assert by_name[name].pure_forwarders == 0
    cbr = by_name["CBR"]
    assert match_first.hops_per_notification < cbr.hops_per_notification < 11
    assert cbr.pure_forwarders == pytest.approx(cbr.hops_per_notification - cbr.ideal_hops)
    assert by_name["rendezvous"].mean_table < cbr.mean_table
    assert by_name["QNS direct"].sent.keys() == {"changeSub", "notify"}
    assert match_first.last_subscriber_ms < cbr.last_subscriber_ms


def test_hops_of_cbr_fall_with_locality_and_are_near_flooding_without_it() -> None:
    rows = locality(
        40, 3_000, 300, seeds=[1, 2], localities=(0.0, 0.5, 1.0), shape=Shape(longest=500.0)
    )
    for seed in (1, 2):
        none, half, full = [row for row in rows if row.seed == seed]
        assert full.cbr < half.cbr < none.cbr <= none.flooding == 39
        assert none.cbr > 0.9 * none.flooding
        assert full.cbr < 0.6 * none.cbr
        assert all(row.ideal <= row.cbr for row in (none, half, full))


@pytest.mark.parametrize(("brokers", "fan_out"), [(4, 2), (7, 2), (30, 3), (100, 10)])
def test_each_group_is_a_connected_part_of_the_tree(brokers: int, fan_out: int) -> None:
    overlay, groups = grouped_tree(brokers, fan_out, Random(brokers))
    assert overlay.is_tree
    assert max(map(overlay.degree, range(brokers))) <= fan_out
    assert sorted(broker for group in groups for broker in group) == list(range(brokers))
    for group in groups:
        inside = sum(one in group and other in group for one, other in overlay.links())
        assert inside == len(group) - 1


def test_fewer_brokers_than_groups_are_refused() -> None:
    with pytest.raises(ValueRefused, match="4 groups of 3 brokers"):
        grouped_tree(3, 10, Random(1))
