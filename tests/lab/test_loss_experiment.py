"""The loss experiment on a small scale: measured delays and losses, and the claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from qns.cbr.rectangles import Rectangle
from qns.errors import ValueRefused
from qns.lab.experiments.loss_experiment import (
    HANDLING_MS,
    Loss,
    Results,
    Setup,
    WatchedBroker,
    chance,
    delivered,
    experiment,
    new_system,
    spread,
)

SQUARE = Rectangle((0.0, 0.0), (1.0, 1.0))
SMALL = Setup(brokers=20, hosts=(20, 60), loss_hosts=(20,), topologies=2, pairs=60, t_on=(1.0, 5.0))


@pytest.fixture(scope="module")
def results() -> Results:
    return experiment(SMALL)


def test_delays_are_the_sums_along_the_tree() -> None:
    """Delays are only the latency and the handling of each hop, because a source is alone."""
    sub, diff = spread((SMALL, 60, 0))
    system = new_system(SMALL, 60, 0)
    for source in range(SMALL.brokers):
        for other in range(SMALL.brokers):
            path = system.overlay.path(source, other)
            hops = list(pairwise(path))
            way_ms = sum(system.latency_ms(one, next_one) for one, next_one in hops)
            took_ms = way_ms + len(hops) * HANDLING_MS["subscription"]
            assert sub[source, other] * 1_000 == pytest.approx(took_ms)
            took_ms = way_ms + len(hops) * HANDLING_MS["notification"]
            assert diff[source, other] * 1_000 == pytest.approx(took_ms)


def test_pair_is_notified_when_subscription_and_event_arrive_in_time() -> None:
    """Computes the expected outcome of every pair from the delays alone."""
    t_on_s = 2.0
    sub, diff = spread((SMALL, 20, 1))
    random = chance(SMALL, "pairs", 20, 1, t_on_s)
    expected = 0
    for _ in range(SMALL.pairs):
        subscriber, publisher = random.sample(range(SMALL.brokers), 2)
        at = random.random() * t_on_s
        expected += sub[subscriber, publisher] <= at <= t_on_s - diff[publisher, subscriber]
    assert 0 < expected < SMALL.pairs
    assert delivered((SMALL, 20, 1, t_on_s)) == expected


def test_pair_leaves_no_subscription_behind() -> None:
    system = new_system(SMALL, 20, 0)
    system.brokers[3].subscribe("s", SQUARE)
    system.settle()
    assert sum(broker.table_size for broker in system.brokers) == SMALL.brokers
    system.brokers[3].unsubscribe("s")
    system.settle()
    assert all(broker.table_size == 0 for broker in system.brokers)
    assert all(isinstance(broker, WatchedBroker) for broker in system.brokers)


def test_curves_start_at_the_source_and_end_at_all_brokers(results: Results) -> None:
    assert [(curve.name, curve.hosts) for curve in results.curves] == [
        *(("F", 20), ("G", 20)),
        *(("F", 60), ("G", 60)),
    ]
    for curve in results.curves:
        reached = np.array(curve.measured) if curve.name == "F" else 1 - np.array(curve.measured)
        assert reached[0] == pytest.approx(1 / SMALL.brokers)
        assert (np.diff(reached) >= 0).all()
        assert reached[-1] == 1
        assert curve.gap < 0.25


def test_fitted_curves_have_the_measured_area(results: Results) -> None:
    for curve in results.curves:
        areas = [np.trapezoid(values, curve.times_s) for values in (curve.measured, curve.fitted)]
        assert areas[0] == pytest.approx(areas[1], rel=0.02)


def test_rates_have_the_order_of_table_3_1(results: Results) -> None:
    assert results.is_in_order
    for row, of_topologies in zip(results.rates, results.rates_by_topology, strict=True):
        assert row.t_sub_s == max(each.t_sub_s for each in of_topologies)
        assert row.t_sub_s > row.t_diff_s
        assert row.mean_sub_s > row.mean_diff_s


def test_table_3_1_out_of_order_is_detected(results: Results) -> None:
    small, large = results.rates
    assert not replace(results, rates=(replace(small, r=small.s), large)).is_in_order
    assert not replace(results, rates=(small, replace(large, s=small.s))).is_in_order


def test_d_grows_with_t_on_and_the_models_are_near(results: Results) -> None:
    short, long = results.losses
    assert (short.published, len(short.delivered)) == (120, 2)
    assert short.d < long.d < 1
    for loss in results.losses:
        assert abs(loss.d - loss.d_means) < 2 * loss.margin
        assert abs(loss.d - loss.d_002) < 2 * loss.margin
    assert results.errors_percent() == [long.error_percent]
    assert results.errors_percent(of="error_002_percent", but=0) == [
        short.error_002_percent,
        long.error_002_percent,
    ]


def test_error_is_negative_when_the_model_predicts_too_much() -> None:
    loss = Loss(20, 10.0, 100, (50, 30), d_model=0.88, d_means=0.8, d_002=0.72)
    assert loss.d == 0.8
    assert loss.error_percent == pytest.approx(-10)
    assert loss.error_means_percent == pytest.approx(0)
    assert loss.error_002_percent == pytest.approx(10)


def test_same_seed_gives_the_same_results_on_any_executor(results: Results) -> None:
    def backwards(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [work(item) for item in reversed(list(items))][::-1]

    assert experiment(SMALL, backwards) == results
    assert experiment(replace(SMALL, seed=1)) != results


def test_full_set_up_of_loss_is_that_of_the_thesis() -> None:
    full = Setup()
    assert (full.brokers, full.hosts, full.topologies, full.pairs) == (100, (100, 250, 500), 5, 250)
    assert full.handling_ms["subscription"] > full.handling_ms["notification"]
    assert full.quick().pairs < full.pairs


@pytest.mark.parametrize(
    "wrong",
    [
        {"brokers": 2},
        {"brokers": 21},
        {"hosts": ()},
        {"loss_hosts": (30,)},
        {"topologies": 0},
        {"pairs": 0},
        {"t_on": (0.0, 1.0)},
    ],
)
def test_impossible_set_up_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueRefused):
        replace(SMALL, **wrong)
