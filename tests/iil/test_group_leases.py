"""Leases: an event that a member of a group does not acknowledge in time passes to another."""

from __future__ import annotations

import pytest

from tests.iil.groups import LEASE_S, deliveries_of, subscribe_members
from tests.iil.single_peer import ME, SinglePeer


def test_lapsed_lease_passes_the_event_on_exactly_once(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1")
    assert deliveries_of(peer, "a", "b") == {"a": ["e1"], "b": []}
    peer.wait(LEASE_S - 1)
    assert deliveries_of(peer, "a", "b") == {"a": ["e1"], "b": []}
    peer.wait(2)
    assert deliveries_of(peer, "a", "b") == {"a": [], "b": ["e1"]}
    peer.acknowledge_all("b")
    peer.wait(10 * LEASE_S)
    assert [each["sub"] for each in peer.records("ntfy")] == ["a", "b"]
    assert len(peer.records("lapse")) == 1
    assert peer.left_over() == {}
    assert peer.violations() == []


def test_acknowledged_event_does_not_lapse(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1", available="INF")
    peer.acknowledge_all("a")
    peer.wait(10 * LEASE_S)
    peer.crash(down_s=10 * LEASE_S)
    assert peer.notified("b") == []
    assert peer.records("lapse") == []


def test_late_acknowledgement_does_not_remove_the_event_from_the_next_member(
    peer: SinglePeer,
) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1")
    peer.wait(LEASE_S + 1)
    peer.acknowledge("a", 1)
    assert peer.events("b") == ["e1"]


@pytest.mark.parametrize("down_s", [0.0, 5 * LEASE_S])
def test_lease_continues_across_a_crash(peer: SinglePeer, down_s: float) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1")
    peer.wait(LEASE_S - 5)
    peer.crash(down_s)
    peer.wait(6)
    assert deliveries_of(peer, "a", "b") == {"a": [], "b": ["e1"]}
    assert len(peer.records("lapse")) == 1
    assert peer.violations() == []


def test_lease_lapses_although_the_clock_was_set_back_before_a_restart(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.world.set_clock(ME, 86_400.0)
    peer.crash()  # a process believes such a step at its start
    peer.publish("e1")
    peer.world.set_clock(ME, -86_400.0)
    peer.crash()
    peer.wait(LEASE_S - 1)
    assert deliveries_of(peer, "a", "b") == {"a": ["e1"], "b": []}
    peer.wait(2)
    assert deliveries_of(peer, "a", "b") == {"a": [], "b": ["e1"]}


def test_unacknowledged_event_circulates_among_the_members(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1")
    peer.wait(LEASE_S * 4 + 1)
    assert [each["sub"] for each in peer.records("ntfy")] == ["a", "b", "a", "b", "a"]
    assert peer.read("a") == [(3, "e1")]
    assert peer.violations() == []


def test_lapsed_event_stays_while_no_other_member_can_take_it(peer: SinglePeer) -> None:
    subscribe_members(peer, "a")
    subscribe_members(peer, "other interest", text="Report/Wind")
    peer.publish("e1")
    peer.wait(LEASE_S * 3)
    peer.crash(down_s=LEASE_S * 3)
    assert peer.read("a") == [(1, "e1")]
    assert peer.records("lapse") == []
    subscribe_members(peer, "b")
    peer.wait(LEASE_S + 1)
    assert deliveries_of(peer, "a", "b") == {"a": [], "b": ["e1"]}


def test_lapsed_event_is_not_passed_to_a_paused_member(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b", "c")
    peer.pause("b", "c")
    peer.publish("e1")
    peer.wait(LEASE_S * 2)
    assert peer.events("a") == ["e1"]
    peer.resume("c")
    peer.wait(LEASE_S + 1)
    assert deliveries_of(peer, "a", "b", "c") == {"a": [], "b": [], "c": ["e1"]}


def test_event_lapses_at_a_member_that_is_paused_after_its_delivery(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1")
    peer.pause("a")
    peer.wait(LEASE_S + 1)
    assert deliveries_of(peer, "a", "b") == {"a": [], "b": ["e1"]}


def test_deliveries_outside_groups_have_no_lease(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.subscribe("t")
    peer.publish("e1")
    peer.wait(100 * LEASE_S)
    assert peer.read("s") == peer.read("t") == [(1, "e1")]
    assert peer.records("lapse") == []
