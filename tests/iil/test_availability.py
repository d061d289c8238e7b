"""Availability: what late local subscribers get, and when events are removed (semantics §8)."""

from __future__ import annotations

import pytest

from qns.iil.requests import Publish, Subscribe
from qns.simulation.node import KillPoint
from tests.iil.single_peer import OWNER, SinglePeer, event


def test_late_subscriber_does_not_get_an_event_without_availability(peer: SinglePeer) -> None:
    peer.subscribe("early")
    peer.publish("e1", available=0)
    peer.subscribe("late")
    assert peer.events("early") == ["e1"]
    assert peer.events("late") == []
    assert peer.violations() == []


def test_late_subscriber_gets_an_event_only_during_its_availability(peer: SinglePeer) -> None:
    peer.publish("e1", available=10)
    peer.wait(9.9)
    peer.subscribe("in time")
    peer.wait(0.2)
    peer.subscribe("too late")
    assert peer.events("in time") == ["e1"]
    assert peer.events("too late") == []
    assert peer.violations() == []


def test_event_with_infinite_availability_reaches_every_late_subscriber(peer: SinglePeer) -> None:
    peer.publish("e1", available="INF")
    peer.crash(down_s=1_000_000)
    peer.subscribe("s")
    assert peer.events("s") == ["e1"]
    peer.acknowledge_all("s")
    peer.wait(1_000_000)
    peer.subscribe("t")
    assert peer.events("t") == ["e1"]


@pytest.mark.parametrize(("down_s", "expected"), [(5, ["e1"]), (15, [])])
def test_availability_elapses_while_the_peer_is_down(
    peer: SinglePeer, down_s: float, expected: list[str]
) -> None:
    peer.publish("e1", available=10)
    peer.crash(down_s)
    peer.subscribe("s")
    assert peer.events("s") == expected


def test_late_subscriber_gets_available_events_in_publication_order(peer: SinglePeer) -> None:
    peer.publish("z", "a", available="INF")
    peer.publish("gone", available=0)
    peer.crash()
    peer.publish("m", available=1000)
    peer.publish("b", available="INF")
    peer.crash()
    peer.subscribe("s")
    peer.publish("next")
    assert peer.read("s") == [(1, "z"), (2, "a"), (3, "m"), (4, "b"), (5, "next")]
    assert peer.violations() == []


def test_late_subscriber_gets_only_matching_events(peer: SinglePeer) -> None:
    peer.publish("calm", kind="Report/Wind", data={"Speed": 3}, available="INF")
    peer.publish("storm", kind="Report/Wind", data={"Speed": 30}, available="INF")
    peer.publish("warm", kind="Report/Temperature", available="INF")
    peer.publish("plain", available="INF")
    peer.subscribe("s", "Report/Wind where Speed > 10")
    peer.subscribe("t", "only Report")
    peer.subscribe("u", "Report from Met02")
    assert peer.events("s") == ["storm"]
    assert peer.events("t") == ["plain"]
    assert peer.events("u") == []


def test_available_event_reaches_each_subscription_exactly_once(peer: SinglePeer) -> None:
    peer.subscribe("early")
    peer.publish("e1", available="INF")
    peer.subscribe("late")
    for id in ("early", "late"):
        peer.acknowledge_all(id)
        peer.pause(id)
        peer.resume(id)
        peer.renew(id)
    peer.subscribe("early")
    peer.crash()
    peer.publish("e2", available="INF")
    for id in ("early", "late"):
        assert peer.notified(id) == ["e1", "e2"]
    assert peer.violations() == []


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_late_subscriber_gets_events_once_wherever_the_peer_crashes(
    peer: SinglePeer, point: KillPoint
) -> None:
    peer.publish("e1", "e2", available="INF")
    peer.crash_during(Subscribe(OWNER, "Report", "s"), point)
    peer.subscribe("s")
    assert peer.read("s") == [(1, "e1"), (2, "e2")]
    assert peer.violations() == []


def test_new_subscription_of_the_same_user_gets_an_available_event_again(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", available="INF")
    peer.acknowledge_all("s")
    peer.unsubscribe("s")
    peer.subscribe("t")
    assert peer.events("t") == ["e1"]


def test_subscribing_in_the_turn_of_an_events_expiry_causes_no_violation(peer: SinglePeer) -> None:
    """The peer and the judge must agree whether such a request is within the availability."""
    peer.publish("e1", available=10)
    until = peer.now + 10
    peer.world.run_until(until - 0.001)
    peer.subscribe("s")
    assert peer.now == until
    assert peer.violations() == []


# --- collection -----------------------------------------------------------------------------------


def test_event_without_subscribers_is_not_kept(peer: SinglePeer) -> None:
    peer.publish("e1")
    assert peer.left_over() == {}
    assert len(peer.gateway.peer.log) == 0


def test_event_is_kept_until_every_subscriber_has_acknowledged(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.subscribe("t")
    peer.publish("e1")
    peer.acknowledge("s", 1)
    assert [row.id for row in peer.rows()["events"]] == ["e1"]
    peer.crash()
    assert peer.events("t") == ["e1"]
    peer.acknowledge("t", 1)
    assert peer.left_over() == {}


def test_acknowledged_event_is_removed_when_its_availability_ends(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", available=10)
    peer.acknowledge("s", 1)
    peer.wait(9)
    assert [row.id for row in peer.rows()["events"]] == ["e1"]
    peer.wait(2)
    assert peer.left_over() == {}


def test_expired_event_is_kept_until_it_is_acknowledged(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", available=10)
    peer.wait(100)
    peer.crash()
    assert peer.events("s") == ["e1"]
    peer.subscribe("late")
    assert peer.events("late") == []
    peer.acknowledge("s", 1)
    assert peer.left_over() == {}


def test_event_that_expired_while_the_peer_was_down_is_removed_at_the_start(
    peer: SinglePeer,
) -> None:
    peer.publish("e1", available=10)
    peer.crash(down_s=20)
    assert peer.left_over() == {}


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_no_rows_are_left_when_no_event_is_owed(peer: SinglePeer, crash: bool) -> None:
    peer.subscribe("active")
    peer.subscribe("paused")
    peer.subscribe("ends")
    peer.subscribe("expires", lifetime_s=20)
    for member in ("one", "two", "three"):
        peer.subscribe(member, group="desk")
    peer.pause("paused", "two")
    for number in range(6):
        peer.publish(f"e{number}", available=(0, 5, 50)[number % 3])
    peer.subscribe("late", group="desk")
    peer.unsubscribe("ends")
    peer.wait(60)
    if crash:
        peer.crash()
    peer.resume("paused", "two")
    peer.acknowledge_all("active", "paused", "one", "two", "three", "late")
    assert peer.violations() == []
    assert peer.left_over() == {}
    assert len(peer.gateway.peer.log) == 0
    for id in ("active", "paused", "one", "two", "three", "late"):
        assert peer.unsubscribe(id) == 0
    assert "subscriptions" not in peer.rows()


def test_unsubscribing_every_subscription_leaves_no_rows(peer: SinglePeer) -> None:
    for member in ("one", "two"):
        peer.subscribe(member, group="desk")
    peer.subscribe("alone")
    peer.pause("two", "alone")
    peer.publish("e1", "e2", "e3")
    for id in ("one", "two", "alone"):
        peer.unsubscribe(id)
    assert peer.left_over() == {}


def test_publishing_an_expired_event_again_delivers_nothing(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", available=5)
    peer.acknowledge_all("s")
    peer.wait(10)
    assert peer.left_over() == {}
    peer.do(Publish(event("e1", available=5)))
    assert peer.notified("s") == ["e1"]
