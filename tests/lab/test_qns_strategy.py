"""QNS as a strategy: the traffic of production peers gives the measures of table 2.1."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.lab.simulated.measure import diffuse
from qns.lab.simulated.system import Publication
from qns.lab.strategies.catalogue import Setting
from qns.lab.strategies.qns_strategy import DIRECT, QnsRun

FEWER = settings(max_examples=max(5, settings.default.max_examples // 50))  # whole federations
ALL = Rectangle((0.0, 0.0), (1000.0, 1000.0))


def _run(brokers: int, fan_out: int, seed: int = 1) -> QnsRun:
    return QnsRun(Setting(brokers, seed).network(), brokers, Random(seed), fan_out)


def test_subscription_that_changes_the_merge_subscription_is_sent_once_to_each_peer() -> None:
    run = _run(6, DIRECT)
    before = run.sent.copy()
    run.subscribe(2, "wide", Rectangle((0.0, 0.0), (500.0, 500.0)))
    run.settle()
    assert run.sent - before == {"changeSub": 5}
    run.subscribe(2, "inside", Rectangle((1.0, 1.0), (2.5, 2.5)))
    run.settle()
    assert run.sent - before == {"changeSub": 5}
    assert run.table_sizes == [1, 1, 2, 1, 1, 1]
    run.unsubscribe(2, "wide")
    run.settle()
    assert run.sent - before == {"changeSub": 10}


def test_direct_diffusion_takes_one_hop_for_each_interested_organisation() -> None:
    run = _run(8, DIRECT)
    for broker in (1, 3, 5, 7):
        run.subscribe(broker, f"s{broker}", ALL)
        run.subscribe(broker, f"t{broker}", ALL)
    run.settle()
    before = run.sent.copy()
    seen = diffuse(run, Publication("e", (1.0, 2.0), 1))
    assert (seen.messages, seen.hops, seen.ideal, seen.pure_forwarders) == (3, 3, 3, 0)
    assert run.sent - before == {"notify": 3}
    assert run.served["e"] == {1: 3}


@pytest.mark.parametrize("fan_out", [1, 2, 3])
def test_no_peer_of_a_diffusion_tree_sends_to_more_than_its_fan_out(fan_out: int) -> None:
    run = _run(10, fan_out)
    for broker in range(10):
        run.subscribe(broker, f"s{broker}", ALL)
    run.settle()
    before = run.sent.copy()
    seen = diffuse(run, Publication("e", (1.0, 2.0), 4))
    assert (seen.hops, seen.ideal, seen.pure_forwarders) == (9, 9, 0)
    assert max(run.served["e"].values()) == fan_out
    # A receiver behind a forwarder acknowledges to the producer.
    assert run.sent - before == {"notify": 9, "acknowledge": 9 - fan_out}


@FEWER
@given(st.integers(0, 10**6))
def test_latency_is_that_of_the_network_plus_a_turn_at_each_end(seed: int) -> None:
    run = _run(5, DIRECT, seed)
    run.subscribe(3, "s", ALL)
    run.settle()
    seen = diffuse(run, Publication("e", (1.0, 2.0), 0))
    latency = Setting(5, seed).network().latency_ms[run.hosts[0], run.hosts[3]]
    assert seen.last_ms == pytest.approx(latency + 4, abs=2)
