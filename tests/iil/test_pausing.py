"""Pause queues without loss, resume delivers in order, an end drops and counts (semantics §9)."""

from __future__ import annotations

import pytest

from qns.errors import NotAllowed
from qns.iil.requests import Resume
from qns.simulation.node import KillPoint
from tests.iil.office import OWNER, Office


def test_while_paused_nothing_is_notified(office: Office) -> None:
    office.subscribe("s")
    office.pause("s")
    office.publish("e1", "e2")
    assert office.events("s") == []
    assert office.notified("s") == []
    assert office.counters("s") == (0, 0)


def test_resuming_delivers_what_gathered_in_order(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1")
    office.pause("s")
    office.publish("e3", "e2", "e4")
    office.resume("s")
    office.publish("e5")
    assert office.read("s") == [(1, "e1"), (2, "e3"), (3, "e2"), (4, "e4"), (5, "e5")]
    assert office.violations() == []


def test_more_than_nine_keep_their_order_across_a_crash(office: Office) -> None:
    names = [f"e{number}" for number in range(12)]
    office.subscribe("s")
    office.pause("s")
    office.publish(*names)
    office.crash()
    office.resume("s")
    assert office.events("s") == names


def test_a_pause_and_its_queue_survive_crashes(office: Office) -> None:
    office.subscribe("s")
    office.pause("s")
    office.publish("e1")
    office.crash()
    office.publish("e2")
    office.crash(down_s=100)
    assert office.notified("s") == []
    office.resume("s")
    office.crash()
    assert office.read("s") == [(1, "e1"), (2, "e2")]
    assert office.notified("s") == ["e1", "e2"]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_a_resumption_is_committed_whole_or_not_at_all(office: Office, point: KillPoint) -> None:
    office.subscribe("s")
    office.pause("s")
    office.publish("e1", "e2")
    office.crash_during(Resume(OWNER, "s"), point)
    if point is KillPoint.BEFORE_COMMIT:
        office.resume("s")
    assert office.read("s") == [(1, "e1"), (2, "e2")]
    assert office.violations() == []


def test_what_was_delivered_before_the_pause_can_be_read_in_it(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", "e2")
    office.pause("s")
    office.publish("e3")
    assert office.events("s") == ["e1", "e2"]
    office.acknowledge("s", 2)
    assert office.events("s") == []
    office.resume("s")
    assert office.read("s") == [(3, "e3")]


def test_a_pause_concerns_one_subscription_only(office: Office) -> None:
    office.subscribe("s")
    office.subscribe("t")
    office.pause("s")
    office.publish("e1")
    assert office.events("t") == ["e1"]


def test_an_event_waits_as_long_as_the_pause_whatever_its_availability(office: Office) -> None:
    office.subscribe("s")
    office.pause("s")
    office.publish("none", available=0)
    office.publish("short", available=5)
    office.wait(1000)
    office.crash()
    office.resume("s")
    assert office.events("s") == ["none", "short"]
    office.acknowledge("s", 2)
    assert office.left_over() == {}


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_unsubscribing_while_paused_drops_and_counts(office: Office, crash: bool) -> None:
    office.subscribe("s")
    office.publish("read", "not read")
    office.acknowledge("s", 1)
    office.pause("s")
    office.publish("queued 1", "queued 2")
    if crash:
        office.crash()
    assert office.unsubscribe("s") == 3
    assert office.notified("s") == ["read", "not read"]
    assert office.left_over() == {}


def test_expiry_while_paused_drops_the_queue(office: Office) -> None:
    office.subscribe("s", lifetime_s=10)
    office.pause("s")
    office.publish("e1")
    office.wait(11)
    assert office.notified("s") == []
    assert office.left_over() == {}


def test_a_paused_subscription_can_be_renewed_and_stays_paused(office: Office) -> None:
    office.subscribe("s", lifetime_s=10)
    office.pause("s")
    office.publish("e1")
    office.renew("s", 100)
    office.crash(down_s=20)
    assert office.notified("s") == []
    office.resume("s")
    assert office.events("s") == ["e1"]


def test_resuming_what_is_not_paused_is_refused(office: Office) -> None:
    office.subscribe("s")
    before = office.rows()
    with pytest.raises(NotAllowed, match="active already"):
        office.resume("s")
    assert office.rows() == before


def test_pausing_what_is_paused_is_refused(office: Office) -> None:
    office.subscribe("s")
    office.pause("s")
    office.publish("e1")
    before = office.rows()
    with pytest.raises(NotAllowed, match="paused already"):
        office.pause("s")
    assert office.rows() == before


def test_pausing_and_resuming_again_and_again_loses_and_repeats_nothing(office: Office) -> None:
    office.subscribe("s")
    expected = []
    for number in range(6):
        office.pause("s")
        office.publish(f"in pause {number}")
        office.crash()
        office.resume("s")
        office.publish(f"after {number}")
        expected += [f"in pause {number}", f"after {number}"]
    assert office.events("s") == expected
    assert office.notified("s") == expected
