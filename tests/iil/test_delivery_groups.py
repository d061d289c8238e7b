"""Delivery groups: each event goes to one member of each group."""

from __future__ import annotations

import pytest

from qns.iil.requests import (
    Publish,
    Unsubscribe,
)
from qns.simulation.node import KillPoint
from tests.iil.conftest import OpenPeer
from tests.iil.groups import LEASE_S, deliveries_of, subscribe_members
from tests.iil.single_peer import OWNER, SinglePeer, event

# --- handing out ----------------------------------------------------------------------------------


def test_group_hands_events_to_its_members_in_turn(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b", "c")
    peer.publish("e1", "e2", "e3", "e4", "e5")
    assert deliveries_of(peer, "a", "b", "c") == {"a": ["e1", "e4"], "b": ["e2", "e5"], "c": ["e3"]}
    assert peer.violations() == []


def test_each_group_and_each_single_subscriber_gets_every_event(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    subscribe_members(peer, "c", "d", group="shift")
    peer.subscribe("alone")
    peer.publish("e1", "e2", available="INF")
    for members in (("a", "b"), ("c", "d"), ("alone",)):
        found = [event for member in members for event in peer.events(member)]
        assert sorted(found) == ["e1", "e2"]


def test_each_event_goes_to_one_member_also_after_a_crash(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1", "e2", "e3")
    before = deliveries_of(peer, "a", "b")
    peer.crash()
    assert deliveries_of(peer, "a", "b") == before
    peer.publish("e4", "e5")
    found = deliveries_of(peer, "a", "b")
    assert sorted(found["a"] + found["b"]) == ["e1", "e2", "e3", "e4", "e5"]
    assert peer.violations() == []


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_event_goes_to_one_member_wherever_the_peer_crashes(
    peer: SinglePeer, point: KillPoint
) -> None:
    subscribe_members(peer, "a", "b")
    peer.crash_during(Publish(event("e1")), point)
    peer.do(Publish(event("e1")))
    assert len(peer.records("ntfy")) == 1
    assert sorted(peer.events("a") + peer.events("b")) == ["e1"]


def test_members_get_only_events_that_match_their_own_subscription(peer: SinglePeer) -> None:
    subscribe_members(peer, "wind", text="Report/Wind")
    subscribe_members(peer, "warm", text="Report/Temperature")
    peer.publish("w1", "w2", kind="Report/Wind")
    peer.publish("t1", kind="Report/Temperature")
    peer.publish("neither")
    assert deliveries_of(peer, "wind", "warm") == {"wind": ["w1", "w2"], "warm": ["t1"]}
    peer.unsubscribe("wind")
    assert peer.events("warm") == ["t1"]
    assert peer.violations() == []


def test_group_of_one_behaves_like_a_single_subscriber(peer: SinglePeer) -> None:
    subscribe_members(peer, "a")
    peer.publish("e1")
    peer.pause("a")
    peer.publish("e2", "e3")
    peer.crash()
    peer.resume("a")
    assert peer.read("a") == [(1, "e1"), (2, "e2"), (3, "e3")]
    peer.acknowledge("a", 3)
    assert peer.left_over() == {}


def test_member_that_matches_fewer_events_still_gets_its_turns(peer: SinglePeer) -> None:
    """Events that only one member matches must not use up the turn of the other."""
    peer.subscribe("all", "Report", group="desk")
    peer.subscribe("wind", "Report/Wind", group="desk")
    for number in range(5):
        peer.publish(f"w{number}", kind="Report/Wind")
        peer.publish(f"p{number}")
    assert len(peer.events("wind")) >= 2


# --- leaving members ------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_leaving_member_passes_on_its_unacknowledged_events(peer: SinglePeer, crash: bool) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1", "e2", "e3", "e4")
    peer.acknowledge("a", 1)
    if crash:
        peer.crash()
    assert peer.unsubscribe("a") == 0
    assert peer.events("b") == ["e2", "e4", "e3"]
    peer.wait(10 * LEASE_S)
    assert peer.notified("b") == ["e2", "e4", "e3"]
    assert peer.violations() == []


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_leaving_member_passes_on_its_events_atomically_wherever_the_peer_crashes(
    peer: SinglePeer, point: KillPoint
) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1", "e2")
    peer.crash_during(Unsubscribe(OWNER, "a"), point)
    if point is KillPoint.BEFORE_COMMIT:
        peer.unsubscribe("a")
    assert peer.events("b") == ["e2", "e1"]
    assert peer.violations() == []


def test_expiring_member_passes_on_its_unacknowledged_events(peer: SinglePeer) -> None:
    peer.subscribe("a", group="desk", lifetime_s=5)
    subscribe_members(peer, "b")
    peer.publish("e1")
    peer.wait(6)
    assert peer.events("b") == ["e1"]
    assert peer.violations() == []


def test_members_that_expire_together_pass_their_events_to_the_remaining_one(
    peer: SinglePeer,
) -> None:
    for member in ("a", "b"):
        peer.subscribe(member, group="desk", lifetime_s=5)
    subscribe_members(peer, "c")
    peer.publish("e1", "e2", "e3")
    peer.crash(down_s=10)
    assert sorted(peer.events("c")) == ["e1", "e2", "e3"]
    assert peer.violations() == []


def test_leaving_member_drops_events_that_no_other_member_matches(peer: SinglePeer) -> None:
    subscribe_members(peer, "a")
    subscribe_members(peer, "other interest", text="Report/Wind")
    peer.publish("e1", "e2")
    peer.acknowledge("a", 1)
    assert peer.unsubscribe("a") == 1
    assert peer.unsubscribe("other interest") == 0
    assert peer.left_over() == {}


def test_events_of_a_leaving_member_wait_for_a_paused_member(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.pause("b")
    peer.publish("e1", "e2")
    assert peer.unsubscribe("a") == 0
    assert peer.events("b") == []
    peer.crash()
    peer.resume("b")
    assert peer.events("b") == ["e1", "e2"]
    assert peer.violations() == []


# --- pauses ---------------------------------------------------------------------------------------


def test_paused_member_gets_nothing_while_another_is_active(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.pause("a")
    peer.publish("e1", "e2")
    assert deliveries_of(peer, "a", "b") == {"a": [], "b": ["e1", "e2"]}
    peer.resume("a")
    assert peer.events("a") == []
    assert peer.violations() == []


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_events_queued_while_all_were_paused_go_to_the_first_member_that_resumes(
    peer: SinglePeer, first: str, crash: bool
) -> None:
    subscribe_members(peer, "a", "b")
    peer.pause("a", "b")
    peer.publish("e1", "e2", "e3")
    assert peer.records("ntfy") == []
    if crash:
        peer.crash()
    peer.resume(first)
    assert peer.events(first) == ["e1", "e2", "e3"]
    peer.resume("b" if first == "a" else "a")
    assert len(peer.records("ntfy")) == 3
    assert peer.violations() == []


def test_resumed_member_takes_only_matching_events(peer: SinglePeer) -> None:
    subscribe_members(peer, "all")
    subscribe_members(peer, "wind", text="Report/Wind")
    peer.pause("all", "wind")
    peer.publish("plain")
    peer.publish("windy", kind="Report/Wind")
    peer.resume("wind")
    assert peer.events("wind") == ["windy"]
    peer.resume("all")
    assert peer.events("all") == ["plain"]
    assert peer.violations() == []


def test_paused_member_that_leaves_passes_on_its_queue(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.pause("a", "b")
    peer.publish("e1", "e2")
    assert peer.unsubscribe("a") == 0
    peer.crash()
    peer.resume("b")
    assert peer.events("b") == ["e1", "e2"]


def test_events_queued_at_several_members_are_handed_out_in_publication_order(
    peer: SinglePeer,
) -> None:
    peer.subscribe("wind", "Report/Wind", group="desk")
    peer.subscribe("all", "Report", group="desk")
    peer.pause("wind", "all")
    peer.publish("e1")
    peer.publish("e2", kind="Report/Wind")
    peer.publish("e3")
    peer.resume("all")
    assert peer.events("all") == ["e1", "e2", "e3"]


# --- late members ---------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_late_member_does_not_get_events_that_the_group_has_received(
    peer: SinglePeer, crash: bool
) -> None:
    subscribe_members(peer, "a")
    peer.publish("e1", "e2", available="INF")
    peer.acknowledge("a", 1)
    if crash:
        peer.crash()
    subscribe_members(peer, "b")
    assert peer.events("b") == []
    assert peer.violations() == []


def test_first_late_member_gets_the_available_events(peer: SinglePeer) -> None:
    peer.publish("e1", "e2", available="INF")
    subscribe_members(peer, "a", "b")
    assert deliveries_of(peer, "a", "b") == {"a": ["e1", "e2"], "b": []}
    assert peer.violations() == []


def test_late_member_gets_available_events_that_no_other_member_matched(peer: SinglePeer) -> None:
    subscribe_members(peer, "wind", text="Report/Wind")
    peer.publish("windy", kind="Report/Wind", available="INF")
    peer.publish("plain", available="INF")
    subscribe_members(peer, "all")
    assert deliveries_of(peer, "wind", "all") == {"wind": ["windy"], "all": ["plain"]}
    assert peer.violations() == []


def test_late_member_takes_over_events_that_wait_for_a_paused_member(peer: SinglePeer) -> None:
    subscribe_members(peer, "a")
    peer.pause("a")
    peer.publish("e1", available="INF")
    subscribe_members(peer, "b")
    assert peer.events("b") == ["e1"]
    peer.resume("a")
    assert peer.events("a") == []
    assert peer.violations() == []


def test_events_that_the_last_member_left_unread_are_available_to_the_next_member(
    peer: SinglePeer,
) -> None:
    subscribe_members(peer, "a")
    peer.publish("e1", "e2", available="INF")
    peer.acknowledge("a", 1)
    assert peer.unsubscribe("a") == 1
    peer.crash()
    subscribe_members(peer, "b")
    assert peer.events("b") == ["e2"]
    assert peer.violations() == []


def test_record_of_a_served_event_is_removed_with_the_event(peer: SinglePeer) -> None:
    subscribe_members(peer, "a", "b")
    peer.publish("e1", available=10)
    peer.acknowledge_all("a", "b")
    assert [row.event for row in peer.rows()["served"]] == ["e1"]
    peer.crash(down_s=11)
    assert peer.left_over() == {}


def test_queue_limit_applies_to_members_of_groups(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=1)
    subscribe_members(peer, "a")
    peer.publish("e1", "e2")
    assert peer.read("a") == [(2, "e2")]
    assert peer.dropped("a") == [(1, 1)]
    assert peer.counters("a") == (2, 1)
    peer.acknowledge_all("a")
    assert peer.violations() == []


def test_event_goes_to_a_member_whose_queue_has_room(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=1)
    subscribe_members(peer, "a", "b", "c")
    peer.publish("e1", "e2", "e3")
    peer.acknowledge_all("c")
    peer.publish("e4")
    assert deliveries_of(peer, "a", "b", "c") == {"a": ["e1"], "b": ["e2"], "c": ["e4"]}
    assert peer.records("overflow") == []


def test_number_that_passed_to_another_member_is_not_declared_as_dropped(
    open_peer: OpenPeer,
) -> None:
    peer = open_peer(longest_queue=3)
    subscribe_members(peer, "a")
    peer.publish("e1")
    peer.publish("e2", kind="Report/Wind")
    peer.publish("e3")
    subscribe_members(peer, "b", text="Report/Wind")
    peer.wait(LEASE_S + 1)
    assert deliveries_of(peer, "a", "b") == {"a": ["e1", "e3"], "b": ["e2"]}
    peer.publish("e4", "e5", "e6")
    assert peer.read("a") == [(4, "e4"), (5, "e5"), (6, "e6")]
    assert peer.dropped("a") == [(1, 1), (3, 3)]
    peer.crash()
    assert peer.dropped("a", after=1) == [(3, 3)]
    peer.acknowledge_all("a", "b")
    assert peer.violations() == []
    assert peer.left_over() == {}
