"""Delivery groups: each event goes to one member, and to another if it is not acknowledged."""

from __future__ import annotations

import pytest

from qns.iil.requests import Publish, Unsubscribe
from qns.simulation.node import KillPoint
from tests.iil.conftest import OpenOffice
from tests.iil.office import OWNER, Office, event

LEASE_S = 15.0


def joined(office: Office, *members: str, group: str = "desk", text: str = "Report") -> None:
    for member in members:
        office.subscribe(member, text, group=group)


def holders(office: Office, *members: str) -> dict[str, list[str]]:
    return {member: office.events(member) for member in members}


# --- handing out ----------------------------------------------------------------------------------


def test_each_event_goes_to_one_member_in_turn(office: Office) -> None:
    joined(office, "a", "b", "c")
    office.publish("e1", "e2", "e3", "e4", "e5")
    assert holders(office, "a", "b", "c") == {"a": ["e1", "e4"], "b": ["e2", "e5"], "c": ["e3"]}
    assert office.violations() == []


def test_two_groups_and_a_lone_subscriber_each_get_every_event(office: Office) -> None:
    joined(office, "a", "b")
    joined(office, "c", "d", group="shift")
    office.subscribe("alone")
    office.publish("e1", "e2", available="INF")
    for members in (("a", "b"), ("c", "d"), ("alone",)):
        found = [event for member in members for event in office.events(member)]
        assert sorted(found) == ["e1", "e2"]


def test_after_a_crash_each_event_still_goes_to_one_member(office: Office) -> None:
    joined(office, "a", "b")
    office.publish("e1", "e2", "e3")
    before = holders(office, "a", "b")
    office.crash()
    assert holders(office, "a", "b") == before
    office.publish("e4", "e5")
    found = holders(office, "a", "b")
    assert sorted(found["a"] + found["b"]) == ["e1", "e2", "e3", "e4", "e5"]
    assert office.violations() == []


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_an_event_is_handed_out_once_wherever_the_peer_dies(
    office: Office, point: KillPoint
) -> None:
    joined(office, "a", "b")
    office.crash_during(Publish(event("e1")), point)
    office.do(Publish(event("e1")))
    assert len(office.records("ntfy")) == 1
    assert sorted(office.events("a") + office.events("b")) == ["e1"]


def test_members_may_want_different_things(office: Office) -> None:
    joined(office, "wind", text="Report/Wind")
    joined(office, "warm", text="Report/Temperature")
    office.publish("w1", "w2", kind="Report/Wind")
    office.publish("t1", kind="Report/Temperature")
    office.publish("neither")
    assert holders(office, "wind", "warm") == {"wind": ["w1", "w2"], "warm": ["t1"]}
    office.unsubscribe("wind")
    assert office.events("warm") == ["t1"]
    assert office.violations() == []


def test_a_group_of_one_is_like_a_lone_subscriber(office: Office) -> None:
    joined(office, "a")
    office.publish("e1")
    office.pause("a")
    office.publish("e2", "e3")
    office.crash()
    office.resume("a")
    assert office.read("a") == [(1, "e1"), (2, "e2"), (3, "e3")]
    office.acknowledge("a", 3)
    assert office.left_over() == {}


# --- leases ---------------------------------------------------------------------------------------


def test_a_lapsed_lease_passes_the_event_on_exactly_once(office: Office) -> None:
    joined(office, "a", "b")
    office.publish("e1")
    assert holders(office, "a", "b") == {"a": ["e1"], "b": []}
    office.wait(LEASE_S - 1)
    assert holders(office, "a", "b") == {"a": ["e1"], "b": []}
    office.wait(2)
    assert holders(office, "a", "b") == {"a": [], "b": ["e1"]}
    office.acknowledge_all("b")
    office.wait(10 * LEASE_S)
    assert [each["sub"] for each in office.records("ntfy")] == ["a", "b"]
    assert len(office.records("lapse")) == 1
    assert office.left_over() == {}
    assert office.violations() == []


def test_what_was_acknowledged_in_time_does_not_lapse(office: Office) -> None:
    joined(office, "a", "b")
    office.publish("e1", available="INF")
    office.acknowledge_all("a")
    office.wait(10 * LEASE_S)
    office.crash(down_s=10 * LEASE_S)
    assert office.notified("b") == []
    assert office.records("lapse") == []


def test_acknowledging_too_late_is_harmless(office: Office) -> None:
    joined(office, "a", "b")
    office.publish("e1")
    office.wait(LEASE_S + 1)
    office.acknowledge("a", 1)
    assert office.events("b") == ["e1"]


@pytest.mark.parametrize("down_s", [0.0, 5 * LEASE_S])
def test_a_lease_runs_on_across_a_crash(office: Office, down_s: float) -> None:
    joined(office, "a", "b")
    office.publish("e1")
    office.wait(LEASE_S - 5)
    office.crash(down_s)
    office.wait(6)
    assert holders(office, "a", "b") == {"a": [], "b": ["e1"]}
    assert len(office.records("lapse")) == 1
    assert office.violations() == []


def test_an_event_goes_round_until_somebody_acknowledges_it(office: Office) -> None:
    joined(office, "a", "b")
    office.publish("e1")
    office.wait(LEASE_S * 4 + 1)
    assert [each["sub"] for each in office.records("ntfy")] == ["a", "b", "a", "b", "a"]
    assert office.read("a") == [(3, "e1")]
    assert office.violations() == []


def test_with_nobody_to_pass_it_to_an_event_stays(office: Office) -> None:
    joined(office, "a")
    joined(office, "other wishes", text="Report/Wind")
    office.publish("e1")
    office.wait(LEASE_S * 3)
    office.crash(down_s=LEASE_S * 3)
    assert office.read("a") == [(1, "e1")]
    assert office.records("lapse") == []
    joined(office, "b")
    office.wait(LEASE_S + 1)
    assert holders(office, "a", "b") == {"a": [], "b": ["e1"]}


def test_a_lapsed_event_goes_to_nobody_who_is_paused(office: Office) -> None:
    joined(office, "a", "b", "c")
    office.pause("b", "c")
    office.publish("e1")
    office.wait(LEASE_S * 2)
    assert office.events("a") == ["e1"]
    office.resume("c")
    office.wait(LEASE_S + 1)
    assert holders(office, "a", "b", "c") == {"a": [], "b": [], "c": ["e1"]}


def test_an_event_lapses_from_a_member_that_was_paused_after_it_came(office: Office) -> None:
    joined(office, "a", "b")
    office.publish("e1")
    office.pause("a")
    office.wait(LEASE_S + 1)
    assert holders(office, "a", "b") == {"a": [], "b": ["e1"]}


def test_lone_subscribers_have_no_lease(office: Office) -> None:
    office.subscribe("s")
    office.subscribe("t")
    office.publish("e1")
    office.wait(100 * LEASE_S)
    assert office.read("s") == office.read("t") == [(1, "e1")]
    assert office.records("lapse") == []


# --- leaving --------------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_who_leaves_passes_on_what_he_has_not_acknowledged(office: Office, crash: bool) -> None:
    joined(office, "a", "b")
    office.publish("e1", "e2", "e3", "e4")
    office.acknowledge("a", 1)
    if crash:
        office.crash()
    assert office.unsubscribe("a") == 0
    assert office.events("b") == ["e2", "e4", "e3"]
    office.wait(10 * LEASE_S)
    assert office.notified("b") == ["e2", "e4", "e3"]
    assert office.violations() == []


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_passing_on_is_committed_whole_or_not_at_all(office: Office, point: KillPoint) -> None:
    joined(office, "a", "b")
    office.publish("e1", "e2")
    office.crash_during(Unsubscribe(OWNER, "a"), point)
    if point is KillPoint.BEFORE_COMMIT:
        office.unsubscribe("a")
    assert office.events("b") == ["e2", "e1"]
    assert office.violations() == []


def test_who_expires_passes_on_too(office: Office) -> None:
    office.subscribe("a", group="desk", lifetime_s=5)
    joined(office, "b")
    office.publish("e1")
    office.wait(6)
    assert office.events("b") == ["e1"]
    assert office.violations() == []


def test_members_that_expire_together_pass_on_to_who_stays(office: Office) -> None:
    for member in ("a", "b"):
        office.subscribe(member, group="desk", lifetime_s=5)
    joined(office, "c")
    office.publish("e1", "e2", "e3")
    office.crash(down_s=10)
    assert sorted(office.events("c")) == ["e1", "e2", "e3"]
    assert office.violations() == []


def test_the_last_to_leave_drops_what_nobody_else_can_take(office: Office) -> None:
    joined(office, "a")
    joined(office, "other wishes", text="Report/Wind")
    office.publish("e1", "e2")
    office.acknowledge("a", 1)
    assert office.unsubscribe("a") == 1
    assert office.unsubscribe("other wishes") == 0
    assert office.left_over() == {}


def test_what_a_leaver_had_waits_for_a_paused_member(office: Office) -> None:
    joined(office, "a", "b")
    office.pause("b")
    office.publish("e1", "e2")
    assert office.unsubscribe("a") == 0
    assert office.events("b") == []
    office.crash()
    office.resume("b")
    assert office.events("b") == ["e1", "e2"]
    assert office.violations() == []


# --- pauses ---------------------------------------------------------------------------------------


def test_a_paused_member_gets_nothing_while_another_is_active(office: Office) -> None:
    joined(office, "a", "b")
    office.pause("a")
    office.publish("e1", "e2")
    assert holders(office, "a", "b") == {"a": [], "b": ["e1", "e2"]}
    office.resume("a")
    assert office.events("a") == []
    assert office.violations() == []


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_what_came_while_all_were_paused_goes_to_the_first_who_resumes(
    office: Office, first: str, crash: bool
) -> None:
    joined(office, "a", "b")
    office.pause("a", "b")
    office.publish("e1", "e2", "e3")
    assert office.records("ntfy") == []
    if crash:
        office.crash()
    office.resume(first)
    assert office.events(first) == ["e1", "e2", "e3"]
    office.resume("b" if first == "a" else "a")
    assert len(office.records("ntfy")) == 3
    assert office.violations() == []


def test_who_resumes_takes_only_what_he_wants(office: Office) -> None:
    joined(office, "all")
    joined(office, "wind", text="Report/Wind")
    office.pause("all", "wind")
    office.publish("plain")
    office.publish("windy", kind="Report/Wind")
    office.resume("wind")
    assert office.events("wind") == ["windy"]
    office.resume("all")
    assert office.events("all") == ["plain"]
    assert office.violations() == []


def test_a_paused_member_that_leaves_passes_its_queue_on(office: Office) -> None:
    joined(office, "a", "b")
    office.pause("a", "b")
    office.publish("e1", "e2")
    assert office.unsubscribe("a") == 0
    office.crash()
    office.resume("b")
    assert office.events("b") == ["e1", "e2"]


# --- coming late ----------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_who_joins_late_does_not_get_what_the_group_has_had(office: Office, crash: bool) -> None:
    joined(office, "a")
    office.publish("e1", "e2", available="INF")
    office.acknowledge("a", 1)
    if crash:
        office.crash()
    joined(office, "b")
    assert office.events("b") == []
    assert office.violations() == []


def test_the_first_who_joins_late_gets_what_is_available(office: Office) -> None:
    office.publish("e1", "e2", available="INF")
    joined(office, "a", "b")
    assert holders(office, "a", "b") == {"a": ["e1", "e2"], "b": []}
    assert office.violations() == []


def test_who_joins_late_gets_what_the_others_did_not_want(office: Office) -> None:
    joined(office, "wind", text="Report/Wind")
    office.publish("windy", kind="Report/Wind", available="INF")
    office.publish("plain", available="INF")
    joined(office, "all")
    assert holders(office, "wind", "all") == {"wind": ["windy"], "all": ["plain"]}
    assert office.violations() == []


def test_who_joins_late_takes_over_what_waits_for_a_paused_member(office: Office) -> None:
    joined(office, "a")
    office.pause("a")
    office.publish("e1", available="INF")
    joined(office, "b")
    assert office.events("b") == ["e1"]
    office.resume("a")
    assert office.events("a") == []
    assert office.violations() == []


def test_what_the_last_member_left_unread_is_available_to_the_next(office: Office) -> None:
    joined(office, "a")
    office.publish("e1", "e2", available="INF")
    office.acknowledge("a", 1)
    assert office.unsubscribe("a") == 1
    office.crash()
    joined(office, "b")
    assert office.events("b") == ["e2"]
    assert office.violations() == []


def test_what_a_group_has_had_is_forgotten_with_the_event(office: Office) -> None:
    joined(office, "a", "b")
    office.publish("e1", available=10)
    office.acknowledge_all("a", "b")
    assert [row.event for row in office.rows()["served"]] == ["e1"]
    office.crash(down_s=11)
    assert office.left_over() == {}


def test_a_long_queue_of_a_member_drops_and_counts_too(open_office: OpenOffice) -> None:
    office = open_office(longest_queue=1)
    joined(office, "a")
    office.publish("e1", "e2")
    assert office.read("a") == [(2, "e2")]
    assert office.counters("a") == (2, 1)
