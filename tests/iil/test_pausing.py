"""Pause queues events without loss, and resume delivers them in order (semantics §9)."""

from __future__ import annotations

import pytest

from qns.errors import NotAllowed
from qns.iil.requests import Resume
from qns.simulation.node import KillPoint
from tests.iil.single_peer import OWNER, SinglePeer


def test_paused_subscription_is_not_notified(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.pause("s")
    peer.publish("e1", "e2")
    assert peer.events("s") == []
    assert peer.notified("s") == []
    assert peer.counters("s") == (0, 0)


def test_resume_delivers_queued_events_in_order(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1")
    peer.pause("s")
    peer.publish("e3", "e2", "e4")
    peer.resume("s")
    peer.publish("e5")
    assert peer.read("s") == [(1, "e1"), (2, "e3"), (3, "e2"), (4, "e4"), (5, "e5")]
    assert peer.violations() == []


def test_twelve_queued_events_keep_their_order_across_a_crash(peer: SinglePeer) -> None:
    names = [f"e{number}" for number in range(12)]
    peer.subscribe("s")
    peer.pause("s")
    peer.publish(*names)
    peer.crash()
    peer.resume("s")
    assert peer.events("s") == names


def test_pause_and_its_queue_survive_crashes(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.pause("s")
    peer.publish("e1")
    peer.crash()
    peer.publish("e2")
    peer.crash(down_s=100)
    assert peer.notified("s") == []
    peer.resume("s")
    peer.crash()
    assert peer.read("s") == [(1, "e1"), (2, "e2")]
    assert peer.notified("s") == ["e1", "e2"]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_resume_is_atomic_wherever_the_peer_crashes(peer: SinglePeer, point: KillPoint) -> None:
    peer.subscribe("s")
    peer.pause("s")
    peer.publish("e1", "e2")
    peer.crash_during(Resume(OWNER, "s"), point)
    if point is KillPoint.BEFORE_COMMIT:
        peer.resume("s")
    assert peer.read("s") == [(1, "e1"), (2, "e2")]
    assert peer.violations() == []


def test_paused_subscription_can_read_and_acknowledge_earlier_deliveries(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", "e2")
    peer.pause("s")
    peer.publish("e3")
    assert peer.events("s") == ["e1", "e2"]
    peer.acknowledge("s", 2)
    assert peer.events("s") == []
    peer.resume("s")
    assert peer.read("s") == [(3, "e3")]


def test_pause_does_not_affect_other_subscriptions(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.subscribe("t")
    peer.pause("s")
    peer.publish("e1")
    assert peer.events("t") == ["e1"]


def test_queued_event_outlives_its_availability_during_a_pause(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.pause("s")
    peer.publish("none", available=0)
    peer.publish("short", available=5)
    peer.wait(1000)
    peer.crash()
    peer.resume("s")
    assert peer.events("s") == ["none", "short"]
    peer.acknowledge("s", 2)
    assert peer.left_over() == {}


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_unsubscribing_while_paused_drops_and_counts_the_queue(
    peer: SinglePeer, crash: bool
) -> None:
    peer.subscribe("s")
    peer.publish("read", "not read")
    peer.acknowledge("s", 1)
    peer.pause("s")
    peer.publish("queued 1", "queued 2")
    if crash:
        peer.crash()
    assert peer.unsubscribe("s") == 3
    assert peer.notified("s") == ["read", "not read"]
    assert peer.left_over() == {}


def test_expiry_while_paused_drops_the_queue(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.pause("s")
    peer.publish("e1")
    peer.wait(11)
    assert peer.notified("s") == []
    assert peer.left_over() == {}


def test_renewed_subscription_stays_paused(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.pause("s")
    peer.publish("e1")
    peer.renew("s", 100)
    peer.crash(down_s=20)
    assert peer.notified("s") == []
    peer.resume("s")
    assert peer.events("s") == ["e1"]


def test_resuming_an_active_subscription_is_rejected(peer: SinglePeer) -> None:
    peer.subscribe("s")
    before = peer.rows()
    with pytest.raises(NotAllowed, match="active already"):
        peer.resume("s")
    assert peer.rows() == before


def test_pausing_a_paused_subscription_is_rejected(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.pause("s")
    peer.publish("e1")
    before = peer.rows()
    with pytest.raises(NotAllowed, match="paused already"):
        peer.pause("s")
    assert peer.rows() == before


def test_repeated_pauses_and_resumes_lose_and_duplicate_nothing(peer: SinglePeer) -> None:
    peer.subscribe("s")
    expected = []
    for number in range(6):
        peer.pause("s")
        peer.publish(f"in pause {number}")
        peer.crash()
        peer.resume("s")
        peer.publish(f"after {number}")
        expected += [f"in pause {number}", f"after {number}"]
    assert peer.events("s") == expected
    assert peer.notified("s") == expected
