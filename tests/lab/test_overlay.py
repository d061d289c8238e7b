"""Overlays are trees within the fan-out; networks and message orders are reproducible."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.errors import ValueRefused
from qns.lab.simulated.network import flat, transit_stub
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Publication, System

SEEDS = st.integers(0, 10_000)


@given(st.integers(1, 40), st.integers(2, 6), SEEDS)
def test_random_overlay_is_a_tree_within_the_fan_out(brokers: int, fan_out: int, seed: int) -> None:
    overlay = Overlay.random_tree(brokers, fan_out, Random(seed))
    assert overlay.is_tree
    assert all(0 <= overlay.available(each) <= fan_out for each in range(brokers))
    again = Overlay.random_tree(brokers, fan_out, Random(seed))
    assert list(overlay.links()) == list(again.links())


@given(st.integers(2, 20), SEEDS)
def test_path_follows_links_and_visits_no_broker_twice(brokers: int, seed: int) -> None:
    random = Random(seed)
    overlay = Overlay.random_tree(brokers, 4, random)
    start, end = random.sample(range(brokers), 2)
    path = overlay.path(start, end)
    assert (path[0], path[-1]) == (start, end)
    assert len(set(path)) == len(path)
    assert all(other in overlay.neighbours(one) for one, other in pairwise(path))


def test_link_exists_once_both_ends_are_open() -> None:
    overlay = Overlay(2, 2)
    overlay.open(0, 1)
    assert 1 not in overlay.neighbours(0)
    overlay.open(1, 0)
    assert 1 in overlay.neighbours(0)
    assert 0 in overlay.neighbours(1)
    overlay.cut(1, 0)
    assert overlay.degree(0) == overlay.degree(1) == 0


def test_overlay_with_a_cycle_or_unconnected_parts_is_not_a_tree() -> None:
    ring = Overlay(4, 4)
    for one, other in ((0, 1), (1, 2), (2, 0)):
        ring.link(one, other)
    with pytest.raises(AssertionError, match="cycle"):
        ring.parents()
    apart = Overlay(3, 2)
    apart.link(0, 1)
    assert not apart.is_tree
    assert apart.parents() == [-1, 0, -1]


@given(st.integers(0, 9), st.integers(2, 4), st.integers(2, 30))
def test_each_broker_of_a_near_tree_joins_at_the_nearest_available_one(
    seed: int, fan_out: int, brokers: int
) -> None:
    latency = transit_stub(brokers, Random(seed)).latency_ms
    overlay = Overlay.near_tree(brokers, fan_out, lambda *pair: float(latency[pair]))
    assert overlay.is_tree
    assert max(map(overlay.degree, range(brokers))) <= fan_out
    links = [0] * brokers
    for broker in range(1, brokers):
        (joined,) = (each for each in overlay.neighbours(broker) if each < broker)
        room = [each for each in range(broker) if links[each] < fan_out]
        assert latency[broker, joined] == min(latency[broker, each] for each in room)
        links[broker] += 1
        links[joined] += 1


def test_fan_out_of_one_is_refused() -> None:
    with pytest.raises(ValueRefused, match="fan-out 1"):
        Overlay.random_tree(3, 1, Random(0))


@pytest.mark.parametrize("make", [flat, transit_stub])
@pytest.mark.parametrize("hosts", [2, 7, 60])
def test_same_seed_makes_the_same_network_and_latencies_are_a_metric(make: Any, hosts: int) -> None:
    network, again = make(hosts, Random(5)), make(hosts, Random(5))
    latency = network.latency_ms
    assert np.array_equal(latency, again.latency_ms)
    assert not np.array_equal(latency, make(hosts, Random(6)).latency_ms)
    assert np.array_equal(latency, latency.T)
    assert (latency.diagonal() == 0).all()
    assert (latency[~np.eye(hosts, dtype=bool)] > 0).all()
    detours = latency[:, :, None] + latency[None, :, :]
    assert (latency[:, None, :] <= detours + 1e-9).all()


@pytest.mark.parametrize("hosts", [1, 5_001])
def test_network_with_too_few_or_too_many_hosts_is_refused(hosts: int) -> None:
    with pytest.raises(ValueRefused, match="hosts"):
        flat(hosts, Random(0))


@dataclass(frozen=True)
class Slow:
    kind: ClassVar[str] = "slow"
    number: int


@dataclass(frozen=True)
class Quick:
    kind: ClassVar[str] = "quick"
    number: int


class Listener:
    table_size = 0

    def __init__(self, system: System, number: int) -> None:
        self.heard: list[int] = []

    def subscribe(self, id: str, rectangle: Rectangle) -> None: ...

    def unsubscribe(self, id: str) -> None: ...

    def publish(self, event: Publication) -> None: ...

    def receive(self, sender: int, message: Slow | Quick) -> None:
        self.heard.append(message.number)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=12), SEEDS)
def test_quickly_handled_message_does_not_overtake_earlier_ones(
    messages: list[tuple[bool, int]], seed: int
) -> None:
    random = Random(seed)
    overlay = Overlay.random_tree(2, 2, random)
    system = System(flat(2, random), overlay, Listener, random, {"slow": 10.0})
    when = 0.0
    for number, (is_slow, pause_ms) in enumerate(messages):
        when += pause_ms
        message = Slow(number) if is_slow else Quick(number)
        system.engine.at(when, system.send, 0, 1, message)
    system.settle()
    listener = system.brokers[1]
    assert isinstance(listener, Listener)
    assert listener.heard == list(range(len(messages)))
