"""Reading and acknowledging deliveries: numbers, queue limits and counters."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from qns.d2q.event_xml import read_event
from qns.d2q.shipped import WEATHER
from qns.errors import QnsError
from qns.iil.requests import (
    AcknowledgeDeliveries,
    Deliveries,
    Publish,
    PullDeliveries,
)
from qns.peer.tuning import Tuning
from qns.simulation.node import KillPoint
from tests.iil.conftest import OpenPeer
from tests.iil.single_peer import ME, OWNER, SinglePeer, event


def test_pull_changes_nothing(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", "e2")
    before, recorded = peer.rows(), len(peer.world.history)
    first = peer.read("s")
    assert peer.read("s") == first == [(1, "e1"), (2, "e2")]
    assert peer.read("s", after=1) == [(2, "e2")]
    assert peer.rows() == before
    assert len(peer.world.history) == recorded
    peer.crash()
    assert peer.read("s") == first


def test_pull_returns_portions_after_a_number(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish(*(f"e{number}" for number in range(1, 8)))
    assert peer.read("s", limit=3) == [(1, "e1"), (2, "e2"), (3, "e3")]
    assert peer.read("s", after=3, limit=3) == [(4, "e4"), (5, "e5"), (6, "e6")]
    assert peer.read("s", after=6, limit=3) == [(7, "e7")]
    assert peer.read("s", after=7) == []
    assert peer.read("s", after=1000) == []
    assert peer.read("s", limit=0) == []


def test_delivery_contains_the_event_as_it_was_published(peer: SinglePeer) -> None:
    peer.subscribe("s", "Report/Wind")
    peer.publish(
        "e1",
        kind="Report/Wind",
        data={"Speed": 12.5, "Region": 'a "quoted" <north> & é'},
        quality={"Speed.currency": 0.4},
        previous={"Speed.currency": 0.9},
        available=30,
    )
    peer.crash()
    answer = peer.do(PullDeliveries(OWNER, "s"))
    assert isinstance(answer, Deliveries)
    (delivery,) = answer.deliveries
    found = read_event(delivery.xml, WEATHER)
    assert (delivery.source, delivery.event) == (found.source, found.id) == (ME, "e1")
    published = peer.records("pub")[0]["event"]
    again = event("e1", kind="Report/Wind", **{k: published[k] for k in ("data", "quality")})
    assert found.values == again.values
    assert found.previous == {"Report/Wind.Speed.currency": 900_000_000_000_000}
    assert found.available_s == 30
    assert found.published_us == int(peer.records("pub")[0]["t"] * 1_000_000)


def test_pull_with_a_negative_limit_is_rejected_or_returns_nothing() -> None:
    peer = SinglePeer()
    peer.subscribe("s")
    peer.publish("e1", "e2")
    try:
        answer = peer.do(PullDeliveries(OWNER, "s", limit=-1))
    except QnsError:
        return
    assert answer.deliveries == ()  # type: ignore[union-attr]


# --- acknowledging --------------------------------------------------------------------------------


def test_acknowledgement_is_cumulative(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3", "e4")
    peer.acknowledge("s", 3)
    assert peer.read("s") == [(4, "e4")]
    peer.crash()
    assert peer.read("s") == [(4, "e4")]


def test_repeated_or_lower_acknowledgement_changes_nothing(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3")
    peer.acknowledge("s", 2)
    before = peer.rows()
    for upto in (2, 1, 0, -5):
        peer.acknowledge("s", upto)
        assert peer.rows() == before


def test_acknowledgement_beyond_the_end_keeps_later_deliveries(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1")
    peer.acknowledge("s", 1_000)
    peer.publish("e2")
    assert peer.read("s") == [(2, "e2")]
    peer.crash()
    assert peer.read("s") == [(2, "e2")]


def test_acknowledgement_during_a_pause_keeps_queued_events(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.pause("s")
    peer.publish("e1")
    peer.acknowledge("s", 1_000)
    peer.resume("s")
    assert peer.events("s") == ["e1"]


def test_acknowledgement_affects_one_subscription_only(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.subscribe("t")
    peer.publish("e1")
    peer.acknowledge("s", 1)
    peer.crash()
    assert peer.read("t") == [(1, "e1")]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_acknowledgement_is_atomic_wherever_the_peer_crashes(
    peer: SinglePeer, point: KillPoint
) -> None:
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3")
    peer.crash_during(AcknowledgeDeliveries(OWNER, "s", 2), point)
    everything = [(1, "e1"), (2, "e2"), (3, "e3")]
    assert peer.read("s") == everything[0 if point is KillPoint.BEFORE_COMMIT else 2 :]
    peer.acknowledge("s", 3)
    assert peer.left_over() == {}


# --- numbers --------------------------------------------------------------------------------------


def test_delivery_numbers_are_never_reused(peer: SinglePeer) -> None:
    peer.subscribe("s")
    used = []
    for number in range(5):
        peer.publish(f"e{number}")
        used += [each for each, _ in peer.read("s")]
        peer.acknowledge_all("s")
        peer.crash()
    assert used == [1, 2, 3, 4, 5]
    assert peer.counters("s") == (5, 0)


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_event_is_delivered_once_wherever_the_peer_crashes(
    peer: SinglePeer, point: KillPoint
) -> None:
    peer.subscribe("s")
    peer.subscribe("t")
    peer.pause("t")
    request = Publish(event("e1"))
    peer.crash_during(request, point)
    peer.do(request)
    peer.publish("e2")
    peer.resume("t")
    for id in ("s", "t"):
        assert peer.read(id) == [(1, "e1"), (2, "e2")]
        assert peer.notified(id) == ["e1", "e2"]
    assert peer.violations() == []


# --- queue limits ---------------------------------------------------------------------------------


def test_queue_has_no_limit_by_default() -> None:
    assert Tuning().longest_queue == inf


def test_full_queue_drops_the_oldest_delivery_and_declares_it(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=3)
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3", "e4", "e5")
    assert peer.read("s") == [(3, "e3"), (4, "e4"), (5, "e5")]
    assert peer.dropped("s") == [(1, 2)]
    assert peer.counters("s") == (5, 2)
    peer.crash()
    peer.publish("e6")
    assert peer.read("s") == [(4, "e4"), (5, "e5"), (6, "e6")]
    assert peer.dropped("s") == [(1, 3)]
    assert peer.counters("s") == (6, 3)
    assert peer.violations() == []


def test_pull_declares_only_the_dropped_numbers_after_its_cursor(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=2)
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3", "e4", "e5")
    assert peer.dropped("s", after=1) == [(2, 3)]
    assert peer.dropped("s", after=3) == []


def test_acknowledgement_ends_the_declaration_of_dropped_numbers(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=2)
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3", "e4", "e5")
    peer.acknowledge("s", 2)
    peer.crash()
    assert peer.dropped("s") == [(3, 3)]
    peer.acknowledge("s", 4)
    assert peer.dropped("s") == []
    peer.publish("e6", "e7")
    assert peer.read("s") == [(6, "e6"), (7, "e7")]
    assert peer.dropped("s") == [(5, 5)]
    assert peer.violations() == []


def test_each_dropped_delivery_is_recorded(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=1)
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3")
    assert [(each["event"], each["number"]) for each in peer.records("overflow")] == [
        ("e1", 1),
        ("e2", 2),
    ]
    peer.acknowledge("s", 3)
    assert peer.records("ack")[-1]["count"] == 1
    assert peer.violations() == []


def test_acknowledgement_makes_room_in_the_queue(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=3)
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3")
    peer.acknowledge("s", 2)
    peer.publish("e4", "e5")
    assert peer.events("s") == ["e3", "e4", "e5"]
    assert peer.dropped("s") == []
    assert peer.counters("s") == (5, 0)


def test_full_queue_does_not_affect_other_queues(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=2)
    peer.subscribe("slow")
    peer.subscribe("quick")
    for number in range(4):
        peer.publish(f"e{number}")
        assert peer.events("quick") == [f"e{number}"]
        peer.acknowledge_all("quick")
    assert peer.counters("slow") == (4, 2)
    assert peer.counters("quick") == (4, 0)


def test_events_that_wait_for_the_end_of_a_pause_count_for_the_limit(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=2)
    peer.subscribe("s")
    peer.publish("e1")
    peer.pause("s")
    peer.publish("e2", "e3", "e4")
    assert peer.read("s") == []
    assert peer.dropped("s") == [(1, 2)]
    peer.crash()
    peer.resume("s")
    assert peer.read("s") == [(3, "e3"), (4, "e4")]
    assert peer.dropped("s") == [(1, 2)]
    assert peer.counters("s") == (4, 2)
    peer.acknowledge_all("s")
    assert peer.violations() == []
    assert peer.left_over() == {}


def test_lower_limit_drops_what_waits_already_with_the_next_event(open_peer: OpenPeer) -> None:
    peer = open_peer()
    peer.subscribe("s")
    peer.publish("e1", "e2")
    peer.pause("s")
    peer.publish("e3", "e4", "e5")
    node = peer.world.nodes[ME]
    node.settings = replace(node.settings, tuning=replace(node.settings.tuning, longest_queue=2))
    peer.crash()
    assert peer.dropped("s") == []
    peer.resume("s")
    assert peer.read("s") == [(4, "e4"), (5, "e5")]
    assert peer.dropped("s") == [(1, 3)]
    peer.acknowledge_all("s")
    assert peer.violations() == []
    assert peer.left_over() == {}


def test_dropped_event_leaves_the_log(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=1)
    peer.subscribe("s")
    peer.publish("e1", "e2", "e3")
    assert [row.id for row in peer.rows()["events"]] == ["e3"]
    peer.acknowledge("s", 3)
    assert peer.left_over() == {}


def test_end_of_a_subscription_removes_its_dropped_numbers(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=1)
    peer.subscribe("s")
    peer.publish("e1", "e2")
    assert peer.unsubscribe("s") == 1
    assert peer.left_over() == {}


def test_late_subscriber_with_a_short_queue_gets_the_newest_events(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=2)
    peer.publish("e1", "e2", "e3", available=100)
    peer.subscribe("s")
    assert peer.read("s") == [(2, "e2"), (3, "e3")]
    assert peer.dropped("s") == [(1, 1)]
    assert peer.counters("s") == (3, 1)


# --- counters -------------------------------------------------------------------------------------


def test_counters_survive_crashes(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=1)
    peer.subscribe("s")
    peer.publish("e1", "e2")
    peer.crash()
    peer.crash()
    assert peer.counters("s") == (2, 1)
    peer.publish("e3")
    assert peer.counters("s") == (3, 2)
