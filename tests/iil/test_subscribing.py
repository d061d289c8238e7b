"""Subscribing, and how long a subscription lives: repeated calls, ids, expiry, renewal."""

from __future__ import annotations

from math import inf

import pytest

from qns.errors import DuplicateId, NameNotKnown
from qns.iil.requests import Renew, Subscribe, Unsubscribe
from qns.simulation.node import KillPoint
from tests.iil.office import OWNER, Office


def test_a_repeated_call_changes_nothing_and_gets_the_same_answer(office: Office) -> None:
    first = office.subscribe("s", "Report/Wind", lifetime_s=60)
    office.publish("e1", kind="Report/Wind")
    before = office.rows()
    assert office.subscribe("s", "Report/Wind", lifetime_s=60) == first
    assert office.rows() == before
    office.crash()
    assert office.subscribe("s", "Report/Wind", lifetime_s=60) == first
    assert office.notified("s") == ["e1"]
    assert len(office.records("sub")) == 1


def test_a_repeated_call_does_not_prolong_it(office: Office) -> None:
    first = office.subscribe("s", lifetime_s=10)
    office.wait(5)
    assert office.subscribe("s", lifetime_s=100).expires_at == first.expires_at


@pytest.mark.parametrize(
    "other",
    [
        Subscribe(OWNER, "Report/Wind", "s", "desk"),
        Subscribe(OWNER, "Report", "s", "another desk"),
        Subscribe(OWNER, "Report", "s"),
        Subscribe("bob", "Report", "s", "desk"),
    ],
    ids=["text", "group", "no group", "owner"],
)
def test_an_id_that_means_something_else_already_is_refused(
    office: Office, other: Subscribe
) -> None:
    office.subscribe("s", "Report", group="desk")
    before = office.rows()
    with pytest.raises(DuplicateId):
        office.do(other)
    assert office.rows() == before


def test_an_id_of_one_that_has_ended_is_refused_with_that_reason(office: Office) -> None:
    office.subscribe("s")
    office.unsubscribe("s")
    with pytest.raises(DuplicateId, match="s has ended, and its id is not given again"):
        office.subscribe("s")


def test_whoever_leaves_the_id_out_gets_a_new_one_each_time(office: Office) -> None:
    ids = [office.subscribe("").id for _ in range(3)]
    office.crash()
    ids += [office.subscribe("").id for _ in range(3)]
    assert len(set(ids)) == 6
    office.publish("e1")
    assert all(office.events(id) == ["e1"] for id in ids)


def test_an_id_that_was_given_out_is_not_given_out_again(office: Office) -> None:
    given = set()
    for _ in range(3):
        for _ in range(2):
            id = office.subscribe("").id
            assert id not in given
            given.add(id)
            office.unsubscribe(id)
        office.crash()


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_a_call_whose_answer_was_lost_may_be_repeated(office: Office, point: KillPoint) -> None:
    office.crash_during(Subscribe(OWNER, "Report", "s"), point)
    office.subscribe("s")
    office.publish("e1")
    assert office.read("s") == [(1, "e1")]
    assert office.violations() == []


def test_subscriptions_are_served_in_order_of_arrival_also_after_a_crash(office: Office) -> None:
    for id in ("z", "a", "m"):
        office.subscribe(id)
    office.publish("e1")
    office.crash()
    office.publish("e2")
    assert [each["sub"] for each in office.records("ntfy")] == ["z", "a", "m"] * 2


# --- ending ---------------------------------------------------------------------------------------


def test_what_ended_gets_nothing_more(office: Office) -> None:
    office.subscribe("s")
    office.subscribe("t")
    office.publish("e1")
    assert office.unsubscribe("s") == 1
    office.crash()
    office.publish("e2")
    assert office.notified("s") == ["e1"]
    assert office.notified("t") == ["e1", "e2"]
    with pytest.raises(NameNotKnown):
        office.read("s")


def test_the_same_text_can_be_subscribed_to_again(office: Office) -> None:
    office.subscribe("s")
    office.unsubscribe("s")
    office.subscribe("t")
    office.publish("e1")
    assert office.events("t") == ["e1"]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_an_end_is_committed_whole_or_not_at_all(office: Office, point: KillPoint) -> None:
    office.subscribe("s")
    office.publish("e1")
    office.crash_during(Unsubscribe(OWNER, "s"), point)
    if point is KillPoint.BEFORE_COMMIT:
        assert office.read("s") == [(1, "e1")]
        assert office.unsubscribe("s") == 1
    assert office.left_over() == {}
    assert "subscriptions" not in office.rows()


# --- expiry and renewal ---------------------------------------------------------------------------


def test_it_ends_when_its_lifetime_is_over(office: Office) -> None:
    answer = office.subscribe("s", lifetime_s=10)
    assert answer.expires_at == office.now + 10
    office.wait(9.9)
    office.publish("in time")
    office.wait(0.2)
    office.publish("too late")
    assert office.notified("s") == ["in time"]
    (end,) = office.records("usub")
    assert (end["t"], end["why"]) == (answer.expires_at, "expired")
    assert office.left_over() == {}


def test_it_lives_for_ever_if_no_lifetime_is_given(office: Office) -> None:
    assert office.subscribe("s").expires_at == inf
    office.wait(10_000_000)
    office.crash()
    office.publish("e1")
    assert office.events("s") == ["e1"]


def test_a_crash_does_not_prolong_it(office: Office) -> None:
    office.subscribe("s", lifetime_s=10)
    office.wait(6)
    office.crash()
    office.publish("in time")
    office.wait(5)
    office.publish("too late")
    assert office.notified("s") == ["in time"]


def test_it_ends_at_the_start_if_its_lifetime_was_over_while_the_peer_was_down(
    office: Office,
) -> None:
    office.subscribe("s", lifetime_s=10)
    office.subscribe("t")
    office.publish("e1")
    office.crash(down_s=20)
    assert [each["sub"] for each in office.records("usub")] == ["s"]
    office.publish("e2")
    assert office.notified("s") == ["e1"]
    assert office.events("t") == ["e1", "e2"]


def test_renewing_prolongs_it(office: Office) -> None:
    office.subscribe("s", lifetime_s=10)
    office.wait(9)
    assert office.renew("s", 10) == office.now + 10
    office.wait(9)
    office.publish("e1")
    assert office.events("s") == ["e1"]
    office.wait(2)
    with pytest.raises(NameNotKnown):
        office.read("s")


def test_a_renewal_survives_a_crash(office: Office) -> None:
    office.subscribe("s", lifetime_s=10)
    until = office.renew("s", 100)
    office.crash(down_s=50)
    office.publish("e1")
    assert office.events("s") == ["e1"]
    office.world.run_until(until)
    assert [each["t"] for each in office.records("usub")] == [until]


def test_renewing_can_shorten_it(office: Office) -> None:
    office.subscribe("s")
    office.renew("s", 5)
    office.wait(5.1)
    assert [each["sub"] for each in office.records("usub")] == ["s"]


def test_renewing_for_ever_outlives_the_first_lifetime(office: Office) -> None:
    office.subscribe("s", lifetime_s=5)
    assert office.renew("s") == inf
    office.crash(down_s=10)
    assert office.records("usub") == []
    assert office.events("s") == []


def test_renewing_keeps_what_it_has(office: Office) -> None:
    office.subscribe("s", lifetime_s=10)
    office.publish("e1", available=100)
    office.renew("s", 20)
    office.publish("e2")
    assert office.read("s") == [(1, "e1"), (2, "e2")]
    assert len(office.records("sub")) == 1


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_what_has_ended_cannot_be_renewed(office: Office, crash: bool) -> None:
    office.subscribe("expires", lifetime_s=5)
    office.subscribe("leaves")
    office.unsubscribe("leaves")
    office.wait(6)
    if crash:
        office.crash()
    before = office.rows()
    for id in ("expires", "leaves"):
        with pytest.raises(NameNotKnown):
            office.renew(id)
    assert office.rows() == before


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_a_renewal_counts_from_its_commit(office: Office, point: KillPoint) -> None:
    office.subscribe("s", lifetime_s=10)
    office.crash_during(Renew(OWNER, "s", 100), point)
    office.wait(20)
    ended = [each["sub"] for each in office.records("usub")]
    assert ended == (["s"] if point is KillPoint.BEFORE_COMMIT else [])


def test_many_that_expire_together_all_end(office: Office) -> None:
    for number in range(20):
        office.subscribe(f"s{number}", lifetime_s=30 - 0.002 * number)
    office.publish("e1")
    office.wait(31)
    assert len(office.records("usub")) == 20
    assert office.left_over() == {}
