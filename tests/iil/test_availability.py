"""Late local subscribers and what is forgotten in the end (semantics §8)."""

from __future__ import annotations

import pytest

from qns.iil.requests import Publish, Subscribe
from qns.simulation.node import KillPoint
from tests.iil.office import OWNER, Office, event


def test_an_event_that_is_not_available_goes_to_nobody_who_comes_late(office: Office) -> None:
    office.subscribe("early")
    office.publish("e1", available=0)
    office.subscribe("late")
    assert office.events("early") == ["e1"]
    assert office.events("late") == []
    assert office.violations() == []


def test_an_event_is_available_for_its_time(office: Office) -> None:
    office.publish("e1", available=10)
    office.wait(9.9)
    office.subscribe("in time")
    office.wait(0.2)
    office.subscribe("too late")
    assert office.events("in time") == ["e1"]
    assert office.events("too late") == []
    assert office.violations() == []


def test_an_event_can_be_available_for_ever(office: Office) -> None:
    office.publish("e1", available="INF")
    office.crash(down_s=1_000_000)
    office.subscribe("s")
    assert office.events("s") == ["e1"]
    office.acknowledge_all("s")
    office.wait(1_000_000)
    office.subscribe("t")
    assert office.events("t") == ["e1"]


@pytest.mark.parametrize(("down_s", "expected"), [(5, ["e1"]), (15, [])])
def test_availability_runs_on_while_the_peer_is_down(
    office: Office, down_s: float, expected: list[str]
) -> None:
    office.publish("e1", available=10)
    office.crash(down_s)
    office.subscribe("s")
    assert office.events("s") == expected


def test_late_subscribers_get_what_is_available_in_publication_order(office: Office) -> None:
    office.publish("z", "a", available="INF")
    office.publish("gone", available=0)
    office.crash()
    office.publish("m", available=1000)
    office.publish("b", available="INF")
    office.crash()
    office.subscribe("s")
    office.publish("next")
    assert office.read("s") == [(1, "z"), (2, "a"), (3, "m"), (4, "b"), (5, "next")]
    assert office.violations() == []


def test_late_subscribers_get_only_what_matches(office: Office) -> None:
    office.publish("calm", kind="Report/Wind", data={"Speed": 3}, available="INF")
    office.publish("storm", kind="Report/Wind", data={"Speed": 30}, available="INF")
    office.publish("warm", kind="Report/Temperature", available="INF")
    office.publish("plain", available="INF")
    office.subscribe("s", "Report/Wind where Speed > 10")
    office.subscribe("t", "only Report")
    office.subscribe("u", "Report from Met02")
    assert office.events("s") == ["storm"]
    assert office.events("t") == ["plain"]
    assert office.events("u") == []


def test_everybody_gets_an_available_event_exactly_once(office: Office) -> None:
    office.subscribe("early")
    office.publish("e1", available="INF")
    office.subscribe("late")
    for id in ("early", "late"):
        office.acknowledge_all(id)
        office.pause(id)
        office.resume(id)
        office.renew(id)
    office.subscribe("early")
    office.crash()
    office.publish("e2", available="INF")
    for id in ("early", "late"):
        assert office.notified(id) == ["e1", "e2"]
    assert office.violations() == []


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_a_late_subscriber_is_served_once_wherever_the_peer_dies(
    office: Office, point: KillPoint
) -> None:
    office.publish("e1", "e2", available="INF")
    office.crash_during(Subscribe(OWNER, "Report", "s"), point)
    office.subscribe("s")
    assert office.read("s") == [(1, "e1"), (2, "e2")]
    assert office.violations() == []


def test_one_who_comes_again_under_another_id_gets_it_again(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", available="INF")
    office.acknowledge_all("s")
    office.unsubscribe("s")
    office.subscribe("t")
    assert office.events("t") == ["e1"]


# --- collection -----------------------------------------------------------------------------------


def test_an_event_that_nobody_wants_is_not_kept(office: Office) -> None:
    office.publish("e1")
    assert office.left_over() == {}
    assert len(office.gateway.peer.log) == 0


def test_an_event_is_kept_until_the_last_has_acknowledged_it(office: Office) -> None:
    office.subscribe("s")
    office.subscribe("t")
    office.publish("e1")
    office.acknowledge("s", 1)
    assert [row.id for row in office.rows()["events"]] == ["e1"]
    office.crash()
    assert office.events("t") == ["e1"]
    office.acknowledge("t", 1)
    assert office.left_over() == {}


def test_an_event_is_kept_while_it_is_available_and_no_longer(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", available=10)
    office.acknowledge("s", 1)
    office.wait(9)
    assert [row.id for row in office.rows()["events"]] == ["e1"]
    office.wait(2)
    assert office.left_over() == {}


def test_an_expired_event_is_kept_for_who_has_not_acknowledged(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", available=10)
    office.wait(100)
    office.crash()
    assert office.events("s") == ["e1"]
    office.subscribe("late")
    assert office.events("late") == []
    office.acknowledge("s", 1)
    assert office.left_over() == {}


def test_what_expired_while_the_peer_was_down_is_gone_after_the_start(office: Office) -> None:
    office.publish("e1", available=10)
    office.crash(down_s=20)
    assert office.left_over() == {}


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_nothing_is_left_when_nothing_is_owed(office: Office, crash: bool) -> None:
    office.subscribe("active")
    office.subscribe("paused")
    office.subscribe("ends")
    office.subscribe("expires", lifetime_s=20)
    for member in ("one", "two", "three"):
        office.subscribe(member, group="desk")
    office.pause("paused", "two")
    for number in range(6):
        office.publish(f"e{number}", available=(0, 5, 50)[number % 3])
    office.subscribe("late", group="desk")
    office.unsubscribe("ends")
    office.wait(60)
    if crash:
        office.crash()
    office.resume("paused", "two")
    office.acknowledge_all("active", "paused", "one", "two", "three", "late")
    assert office.violations() == []
    assert office.left_over() == {}
    assert len(office.gateway.peer.log) == 0
    for id in ("active", "paused", "one", "two", "three", "late"):
        assert office.unsubscribe(id) == 0
    assert "subscriptions" not in office.rows()


def test_ending_everybody_leaves_nothing(office: Office) -> None:
    for member in ("one", "two"):
        office.subscribe(member, group="desk")
    office.subscribe("alone")
    office.pause("two", "alone")
    office.publish("e1", "e2", "e3")
    for id in ("one", "two", "alone"):
        office.unsubscribe(id)
    assert office.left_over() == {}


def test_an_id_can_be_published_again_only_as_the_same_event(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", available=5)
    office.acknowledge_all("s")
    office.wait(10)
    assert office.left_over() == {}
    office.do(Publish(event("e1", available=5)))
    assert office.notified("s") == ["e1"]
