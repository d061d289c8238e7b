"""Measures that are computed for many notifications equal those of running brokers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import Zone
from qns.lab.simulated.measure import (
    Demand,
    Diffusion,
    associativity,
    diffuse,
    ideal_hops,
    last_ms,
    latency_ms,
    tree_hops,
    tree_latency_ms,
)
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.space import rounded, rounded_rectangle
from qns.lab.simulated.system import Publication
from qns.lab.simulated.workload import Shape, Workload
from qns.lab.strategies.catalogue import Setting
from qns.lab.strategies.cbr import CbrBroker
from qns.lab.strategies.flooding import NotificationFloodingBroker, SubscriptionFloodingBroker

FEWER = settings(max_examples=max(5, settings.default.max_examples // 20))  # whole systems


def _drawn(
    brokers: int, seed: int, subscriptions: int, publications: int
) -> tuple[list[tuple[int, Rectangle]], list[Publication]]:
    draw = Workload(Shape(longest=500.0), Random(seed), [list(range(brokers))])
    asked = [draw.subscription() for _ in range(subscriptions)]
    published = [draw.publication() for _ in range(publications)]
    return [(broker, rounded_rectangle(each)) for broker, each in asked], [
        Publication(f"e{n}", rounded(point), broker) for n, (broker, point) in enumerate(published)
    ]


@FEWER
@given(st.integers(0, 10**6), st.integers(1, 25), st.integers(0, 40))
def test_computed_hops_and_latencies_equal_those_of_running_brokers(
    seed: int, brokers: int, subscriptions: int
) -> None:
    asked, events = _drawn(brokers, seed, subscriptions, 15)
    run = Setting(brokers, seed, fan_out=3).run(CbrBroker)
    for number, (broker, rectangle) in enumerate(asked):
        run.subscribe(broker, f"s{number}", rectangle)
    run.settle()
    seen = [diffuse(run, event) for event in events]

    overlay = run.system.overlay
    publishers = np.array([event.publisher for event in events])
    wanted = Demand(brokers, asked).wanted(np.array([event.point for event in events]))
    hops = tree_hops(overlay, wanted, publishers)
    ideal = ideal_hops(wanted, publishers)
    assert hops.tolist() == [each.hops for each in seen]
    assert ideal.tolist() == [each.ideal for each in seen]
    assert (hops - ideal).tolist() == [each.pure_forwarders for each in seen]
    last = last_ms(tree_latency_ms(overlay, latency_ms(run.system)), wanted, publishers)
    for computed, each in zip(last.tolist(), seen, strict=True):
        if each.last_ms is None:
            assert np.isnan(computed)
        else:
            assert computed == pytest.approx(each.last_ms)


@FEWER
@given(st.integers(0, 10**6), st.integers(1, 20))
def test_subscription_flooding_has_ideal_hops_and_notification_flooding_reaches_all(
    seed: int, brokers: int
) -> None:
    asked, events = _drawn(brokers, seed, 20, 5)
    first = Setting(brokers, seed, fan_out=3).run(SubscriptionFloodingBroker)
    flood = Setting(brokers, seed, fan_out=3).run(NotificationFloodingBroker)
    for number, (broker, rectangle) in enumerate(asked):
        first.subscribe(broker, f"s{number}", rectangle)
        flood.subscribe(broker, f"s{number}", rectangle)
    first.settle()
    for event in events:
        direct, everywhere = diffuse(first, event), diffuse(flood, event)
        assert (direct.hops, direct.pure_forwarders) == (direct.ideal, 0)
        assert everywhere.hops == brokers - 1
        assert everywhere.pure_forwarders == brokers - 1 - everywhere.ideal
        assert everywhere.ideal == direct.ideal


def test_notification_on_a_line_passes_only_brokers_before_the_subscriber() -> None:
    """On 0 – 1 – 2 – 3, an event from 0 for a subscriber at 2 passes 1 and never reaches 3."""
    overlay = Overlay(4, 2)
    for broker in range(3):
        overlay.link(broker, broker + 1)
    demand = Demand(4, [(2, Rectangle((0.0, 0.0), (10.0, 10.0)))])
    wanted = demand.wanted(np.array([[5.0, 10.0], [5.0, 10.1], [0.0, 0.0], [0.0, 0.0]]))
    publishers = np.array([0, 0, 3, 2])
    assert wanted[:, 2].tolist() == [True, False, True, True]
    assert tree_hops(overlay, wanted, publishers).tolist() == [2, 0, 1, 0]
    assert ideal_hops(wanted, publishers).tolist() == [1, 0, 1, 0]


def test_notification_without_remote_subscribers_has_no_latency() -> None:
    run = Setting(3, 1).run(CbrBroker)
    run.subscribe(0, "own", Rectangle((0.0, 0.0), (9.0, 9.0)))
    run.settle()
    assert diffuse(run, Publication("e", (1.0, 1.0), 0)) == Diffusion(0, 0, 0, 0, None)


def test_associativity_is_the_mean_share_in_common_with_neighbours() -> None:
    overlay = Overlay(3, 2)
    overlay.link(0, 1)
    overlay.link(1, 2)
    zones = [
        Zone.from_rectangles([("a", Rectangle((0.0, 0.0), (2.0, 1.0)))]),
        Zone.from_rectangles([("b", Rectangle((1.0, 0.0), (2.0, 1.0)))]),
        Zone(),
    ]
    assert associativity(zones, overlay) == pytest.approx((0.5 + 1.0) / 3)
