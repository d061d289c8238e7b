"""Subscribing: repeated calls, ids, end, expiry and renewal of subscriptions."""

from __future__ import annotations

from math import inf

import pytest

from qns.errors import DuplicateId, NameNotKnown, QnsError
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Renew,
    Subscribe,
    Unsubscribe,
)
from qns.simulation.node import KillPoint
from tests.iil.conftest import OpenPeer
from tests.iil.single_peer import OWNER, SinglePeer


def test_duplicate_subscribe_changes_nothing_and_returns_the_same_answer(peer: SinglePeer) -> None:
    first = peer.subscribe("s", "Report/Wind", lifetime_s=60)
    peer.publish("e1", kind="Report/Wind")
    before = peer.rows()
    assert peer.subscribe("s", "Report/Wind", lifetime_s=60) == first
    assert peer.rows() == before
    peer.crash()
    assert peer.subscribe("s", "Report/Wind", lifetime_s=60) == first
    assert peer.notified("s") == ["e1"]
    assert len(peer.records("sub")) == 1


def test_duplicate_subscribe_does_not_extend_the_lifetime(peer: SinglePeer) -> None:
    first = peer.subscribe("s", lifetime_s=10)
    peer.wait(5)
    assert peer.subscribe("s", lifetime_s=100).expires_at == first.expires_at


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
def test_subscribe_with_the_id_of_a_different_subscription_is_rejected(
    peer: SinglePeer, other: Subscribe
) -> None:
    peer.subscribe("s", "Report", group="desk")
    before = peer.rows()
    with pytest.raises(DuplicateId):
        peer.do(other)
    assert peer.rows() == before


def test_subscribe_with_the_id_of_an_ended_subscription_is_rejected_with_that_reason(
    peer: SinglePeer,
) -> None:
    peer.subscribe("s")
    peer.unsubscribe("s")
    with pytest.raises(DuplicateId, match="s has ended, and its id is not given again"):
        peer.subscribe("s")


def test_subscribe_without_an_id_gets_a_new_id_each_time(peer: SinglePeer) -> None:
    ids = [peer.subscribe("").id for _ in range(3)]
    peer.crash()
    ids += [peer.subscribe("").id for _ in range(3)]
    assert len(set(ids)) == 6
    peer.publish("e1")
    assert all(peer.events(id) == ["e1"] for id in ids)


def test_generated_id_is_never_generated_again(peer: SinglePeer) -> None:
    generated = set()
    for _ in range(3):
        for _ in range(2):
            id = peer.subscribe("").id
            assert id not in generated
            generated.add(id)
            peer.unsubscribe(id)
        peer.crash()


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_subscribe_can_be_repeated_after_a_lost_answer(peer: SinglePeer, point: KillPoint) -> None:
    peer.crash_during(Subscribe(OWNER, "Report", "s"), point)
    peer.subscribe("s")
    peer.publish("e1")
    assert peer.read("s") == [(1, "e1")]
    assert peer.violations() == []


def test_subscriptions_are_notified_in_order_of_arrival_also_after_a_crash(
    peer: SinglePeer,
) -> None:
    for id in ("z", "a", "m"):
        peer.subscribe(id)
    peer.publish("e1")
    peer.crash()
    peer.publish("e2")
    assert [each["sub"] for each in peer.records("ntfy")] == ["z", "a", "m"] * 2


def test_duplicate_subscribe_returns_the_same_answer_when_the_table_is_full(
    open_peer: OpenPeer,
) -> None:
    peer = open_peer(most_subscriptions=1)
    first = peer.subscribe("s")
    assert peer.subscribe("s") == first


def test_generated_id_differs_from_a_chosen_id_of_the_same_form() -> None:
    peer = SinglePeer()
    peer.subscribe("1-2", owner="eve")
    assert peer.subscribe("").id != "1-2"


# --- ending ---------------------------------------------------------------------------------------


def test_ended_subscription_gets_no_more_events(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.subscribe("t")
    peer.publish("e1")
    assert peer.unsubscribe("s") == 1
    peer.crash()
    peer.publish("e2")
    assert peer.notified("s") == ["e1"]
    assert peer.notified("t") == ["e1", "e2"]
    with pytest.raises(NameNotKnown):
        peer.read("s")


def test_text_of_an_ended_subscription_can_be_subscribed_again(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.unsubscribe("s")
    peer.subscribe("t")
    peer.publish("e1")
    assert peer.events("t") == ["e1"]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_unsubscribe_is_atomic_wherever_the_peer_crashes(
    peer: SinglePeer, point: KillPoint
) -> None:
    peer.subscribe("s")
    peer.publish("e1")
    peer.crash_during(Unsubscribe(OWNER, "s"), point)
    if point is KillPoint.BEFORE_COMMIT:
        assert peer.read("s") == [(1, "e1")]
        assert peer.unsubscribe("s") == 1
    assert peer.left_over() == {}
    assert "subscriptions" not in peer.rows()


def test_id_of_an_ended_subscription_is_rejected_after_a_crash(peer: SinglePeer) -> None:
    """If it were accepted, a late acknowledgement would remove deliveries that were never read."""
    peer.subscribe("s")
    peer.publish("e1", available="INF")
    peer.unsubscribe("s")
    peer.crash()
    with pytest.raises(DuplicateId):
        peer.subscribe("s")


def test_late_acknowledgement_of_an_ended_subscription_removes_nothing_from_a_new_one() -> None:
    peer = SinglePeer()
    peer.subscribe("s")
    peer.publish("old 1", "old 2")
    late = AcknowledgeDeliveries(OWNER, "s", 2)
    peer.unsubscribe("s")
    try:
        peer.subscribe("s")
    except DuplicateId:
        return
    peer.publish("new 1", "new 2")
    peer.do(late)
    assert peer.events("s") == ["new 1", "new 2"]


def test_peer_never_gives_an_id_again_although_it_has_forgotten_it(open_peer: OpenPeer) -> None:
    peer = open_peer(ended_remembered=0)
    given = []
    for _ in range(3):
        given.append(peer.subscribe("").id)
        peer.unsubscribe(given[-1])
    peer.crash()
    given += [peer.subscribe("").id for _ in range(3)]
    assert len(set(given)) == 6


@pytest.mark.parametrize("crash", [False, True])
def test_ids_of_ended_subscriptions_are_remembered_up_to_a_limit(
    open_peer: OpenPeer, crash: bool
) -> None:
    peer = open_peer(ended_remembered=3)
    for number in range(5):
        peer.subscribe(f"s{number}")
        peer.unsubscribe(f"s{number}")
    assert [row.subscription for row in peer.rows()["counters"]] == ["s2", "s3", "s4"]
    if crash:
        peer.crash()
    for number in (2, 3, 4):
        with pytest.raises(DuplicateId):
            peer.subscribe(f"s{number}")
    peer.subscribe("s0")


# --- expiry and renewal ---------------------------------------------------------------------------


def test_subscription_ends_when_its_lifetime_is_over(peer: SinglePeer) -> None:
    answer = peer.subscribe("s", lifetime_s=10)
    assert answer.expires_at == peer.now + 10
    peer.wait(9.9)
    peer.publish("in time")
    peer.wait(0.2)
    peer.publish("too late")
    assert peer.notified("s") == ["in time"]
    (end,) = peer.records("usub")
    assert (end["t"], end["why"]) == (answer.expires_at, "expired")
    assert peer.left_over() == {}


def test_subscription_without_a_lifetime_never_expires(peer: SinglePeer) -> None:
    assert peer.subscribe("s").expires_at == inf
    peer.wait(10_000_000)
    peer.crash()
    peer.publish("e1")
    assert peer.events("s") == ["e1"]


def test_crash_does_not_extend_the_lifetime(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.wait(6)
    peer.crash()
    peer.publish("in time")
    peer.wait(5)
    peer.publish("too late")
    assert peer.notified("s") == ["in time"]


def test_subscription_that_expired_while_the_peer_was_down_ends_at_the_start(
    peer: SinglePeer,
) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.subscribe("t")
    peer.publish("e1")
    peer.crash(down_s=20)
    assert [each["sub"] for each in peer.records("usub")] == ["s"]
    peer.publish("e2")
    assert peer.notified("s") == ["e1"]
    assert peer.events("t") == ["e1", "e2"]


def test_renewal_extends_the_lifetime(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.wait(9)
    assert peer.renew("s", 10) == peer.now + 10
    peer.wait(9)
    peer.publish("e1")
    assert peer.events("s") == ["e1"]
    peer.wait(2)
    with pytest.raises(NameNotKnown):
        peer.read("s")


def test_renewal_survives_a_crash(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=10)
    until = peer.renew("s", 100)
    peer.crash(down_s=50)
    peer.publish("e1")
    assert peer.events("s") == ["e1"]
    peer.world.run_until(until)
    assert [each["t"] for each in peer.records("usub")] == [until]


def test_renewal_can_shorten_the_lifetime(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.renew("s", 5)
    peer.wait(5.1)
    assert [each["sub"] for each in peer.records("usub")] == ["s"]


def test_renewal_without_a_lifetime_removes_the_expiry(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=5)
    assert peer.renew("s") == inf
    peer.crash(down_s=10)
    assert peer.records("usub") == []
    assert peer.events("s") == []


def test_renewal_keeps_deliveries(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.publish("e1", available=100)
    peer.renew("s", 20)
    peer.publish("e2")
    assert peer.read("s") == [(1, "e1"), (2, "e2")]
    assert len(peer.records("sub")) == 1


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash"])
def test_ended_subscription_cannot_be_renewed(peer: SinglePeer, crash: bool) -> None:
    peer.subscribe("expires", lifetime_s=5)
    peer.subscribe("leaves")
    peer.unsubscribe("leaves")
    peer.wait(6)
    if crash:
        peer.crash()
    before = peer.rows()
    for id in ("expires", "leaves"):
        with pytest.raises(NameNotKnown):
            peer.renew(id)
    assert peer.rows() == before


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_renewal_takes_effect_only_if_it_was_committed(peer: SinglePeer, point: KillPoint) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.crash_during(Renew(OWNER, "s", 100), point)
    peer.wait(20)
    ended = [each["sub"] for each in peer.records("usub")]
    assert ended == (["s"] if point is KillPoint.BEFORE_COMMIT else [])


def test_all_subscriptions_that_expire_together_end(peer: SinglePeer) -> None:
    for number in range(20):
        peer.subscribe(f"s{number}", lifetime_s=30 - 0.002 * number)
    peer.publish("e1")
    peer.wait(31)
    assert len(peer.records("usub")) == 20
    assert peer.left_over() == {}


def test_duplicate_subscribe_in_the_turn_of_the_expiry_is_rejected_or_holds(
    peer: SinglePeer,
) -> None:
    """If the peer confirms the subscription, a pull must find it."""
    until = peer.subscribe("s", lifetime_s=10).expires_at
    peer.world.run_until(until - 0.001)
    try:
        peer.subscribe("s", lifetime_s=10)
    except QnsError:
        return
    assert peer.events("s") == []


def test_expiry_records_the_number_of_dropped_events(peer: SinglePeer) -> None:
    peer.subscribe("s", lifetime_s=10)
    peer.publish("e1")
    peer.pause("s")
    peer.publish("e2")
    peer.wait(11)
    (end,) = peer.records("usub")
    assert end["dropped"] == 2
