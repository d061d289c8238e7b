"""Reading and acknowledging: numbers as a cursor, queues that are too long, counters."""

from __future__ import annotations

import pytest

from qns.d2q.event_xml import read_event
from qns.d2q.shipped import WEATHER
from qns.iil.requests import AcknowledgeDeliveries, Deliveries, Publish, Read
from qns.simulation.node import KillPoint
from tests.iil.conftest import OpenOffice
from tests.iil.office import ME, OWNER, Office, event


def test_reading_changes_nothing(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", "e2")
    before, told = office.rows(), len(office.world.history)
    first = office.read("s")
    assert office.read("s") == first == [(1, "e1"), (2, "e2")]
    assert office.read("s", after=1) == [(2, "e2")]
    assert office.rows() == before
    assert len(office.world.history) == told
    office.crash()
    assert office.read("s") == first


def test_one_can_read_on_from_a_number_in_portions(office: Office) -> None:
    office.subscribe("s")
    office.publish(*(f"e{number}" for number in range(1, 8)))
    assert office.read("s", limit=3) == [(1, "e1"), (2, "e2"), (3, "e3")]
    assert office.read("s", after=3, limit=3) == [(4, "e4"), (5, "e5"), (6, "e6")]
    assert office.read("s", after=6, limit=3) == [(7, "e7")]
    assert office.read("s", after=7) == []
    assert office.read("s", after=1000) == []
    assert office.read("s", limit=0) == []


def test_a_delivery_carries_the_event_as_it_was_published(office: Office) -> None:
    office.subscribe("s", "Report/Wind")
    office.publish(
        "e1",
        kind="Report/Wind",
        data={"Speed": 12.5, "Region": 'a "quoted" <north> & é'},
        quality={"Speed.currency": 0.4},
        previous={"Speed.currency": 0.9},
        available=30,
    )
    office.crash()
    answer = office.do(Read(OWNER, "s"))
    assert isinstance(answer, Deliveries)
    (delivery,) = answer.deliveries
    found = read_event(delivery.xml, WEATHER)
    assert (delivery.source, delivery.event) == (found.source, found.id) == (ME, "e1")
    published = office.records("pub")[0]["event"]
    again = event("e1", kind="Report/Wind", **{k: published[k] for k in ("data", "quality")})
    assert found.values == again.values
    assert found.previous == {"Report/Wind.Speed.currency": 900_000_000_000_000}
    assert found.available_s == 30
    assert found.published_us == int(office.records("pub")[0]["t"] * 1_000_000)


# --- acknowledging --------------------------------------------------------------------------------


def test_acknowledging_is_cumulative(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", "e2", "e3", "e4")
    office.acknowledge("s", 3)
    assert office.read("s") == [(4, "e4")]
    office.crash()
    assert office.read("s") == [(4, "e4")]


def test_acknowledging_again_or_less_changes_nothing(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", "e2", "e3")
    office.acknowledge("s", 2)
    before = office.rows()
    for upto in (2, 1, 0, -5):
        office.acknowledge("s", upto)
        assert office.rows() == before


def test_acknowledging_beyond_the_end_does_not_touch_what_comes_later(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1")
    office.acknowledge("s", 1_000)
    office.publish("e2")
    assert office.read("s") == [(2, "e2")]
    office.crash()
    assert office.read("s") == [(2, "e2")]


def test_acknowledging_what_is_queued_in_a_pause_is_not_possible(office: Office) -> None:
    office.subscribe("s")
    office.pause("s")
    office.publish("e1")
    office.acknowledge("s", 1_000)
    office.resume("s")
    assert office.events("s") == ["e1"]


def test_one_user_acknowledges_for_himself_only(office: Office) -> None:
    office.subscribe("s")
    office.subscribe("t")
    office.publish("e1")
    office.acknowledge("s", 1)
    office.crash()
    assert office.read("t") == [(1, "e1")]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_an_acknowledgement_is_committed_whole_or_not_at_all(
    office: Office, point: KillPoint
) -> None:
    office.subscribe("s")
    office.publish("e1", "e2", "e3")
    office.crash_during(AcknowledgeDeliveries(OWNER, "s", 2), point)
    everything = [(1, "e1"), (2, "e2"), (3, "e3")]
    assert office.read("s") == everything[0 if point is KillPoint.BEFORE_COMMIT else 2 :]
    office.acknowledge("s", 3)
    assert office.left_over() == {}


# --- numbers --------------------------------------------------------------------------------------


def test_numbers_are_never_used_again(office: Office) -> None:
    office.subscribe("s")
    used = []
    for number in range(5):
        office.publish(f"e{number}")
        used += [each for each, _ in office.read("s")]
        office.acknowledge_all("s")
        office.crash()
    assert used == [1, 2, 3, 4, 5]
    assert office.counters("s") == (5, 0)


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_a_publication_is_delivered_once_wherever_the_peer_dies(
    office: Office, point: KillPoint
) -> None:
    office.subscribe("s")
    office.subscribe("t")
    office.pause("t")
    request = Publish(event("e1"))
    office.crash_during(request, point)
    office.do(request)
    office.publish("e2")
    office.resume("t")
    for id in ("s", "t"):
        assert office.read(id) == [(1, "e1"), (2, "e2")]
        assert office.notified(id) == ["e1", "e2"]
    assert office.violations() == []


# --- queues that are too long ---------------------------------------------------------------------


def test_of_a_queue_that_is_too_long_the_oldest_goes_and_is_counted(
    open_office: OpenOffice,
) -> None:
    office = open_office(longest_queue=3)
    office.subscribe("s")
    office.publish("e1", "e2", "e3", "e4", "e5")
    assert office.read("s") == [(3, "e3"), (4, "e4"), (5, "e5")]
    assert office.counters("s") == (5, 2)
    office.crash()
    office.publish("e6")
    assert office.read("s") == [(4, "e4"), (5, "e5"), (6, "e6")]
    assert office.counters("s") == (6, 3)


def test_acknowledging_makes_room_in_the_queue(open_office: OpenOffice) -> None:
    office = open_office(longest_queue=3)
    office.subscribe("s")
    office.publish("e1", "e2", "e3")
    office.acknowledge("s", 2)
    office.publish("e4", "e5")
    assert office.events("s") == ["e3", "e4", "e5"]
    assert office.counters("s") == (5, 0)


def test_one_long_queue_does_not_shorten_another(open_office: OpenOffice) -> None:
    office = open_office(longest_queue=2)
    office.subscribe("slow")
    office.subscribe("quick")
    for number in range(4):
        office.publish(f"e{number}")
        assert office.events("quick") == [f"e{number}"]
        office.acknowledge_all("quick")
    assert office.counters("slow") == (4, 2)
    assert office.counters("quick") == (4, 0)


def test_what_gathered_in_a_long_pause_is_cut_at_its_end_not_before(
    open_office: OpenOffice,
) -> None:
    office = open_office(longest_queue=2)
    office.subscribe("s")
    office.pause("s")
    office.publish("e1", "e2", "e3")
    assert office.counters("s") == (0, 0)
    office.crash()
    office.resume("s")
    assert office.read("s") == [(2, "e2"), (3, "e3")]
    assert office.counters("s") == (3, 1)


def test_a_dropped_event_is_not_kept(open_office: OpenOffice) -> None:
    office = open_office(longest_queue=1)
    office.subscribe("s")
    office.publish("e1", "e2", "e3")
    assert [row.id for row in office.rows()["events"]] == ["e3"]
    office.acknowledge("s", 3)
    assert office.left_over() == {}


def test_a_late_subscriber_with_a_short_queue_gets_the_newest(open_office: OpenOffice) -> None:
    office = open_office(longest_queue=2)
    office.publish("e1", "e2", "e3", available=100)
    office.subscribe("s")
    assert office.read("s") == [(2, "e2"), (3, "e3")]
    assert office.counters("s") == (3, 1)


# --- counters -------------------------------------------------------------------------------------


def test_counters_survive_crashes(open_office: OpenOffice) -> None:
    office = open_office(longest_queue=1)
    office.subscribe("s")
    office.publish("e1", "e2")
    office.crash()
    office.crash()
    assert office.counters("s") == (2, 1)
    office.publish("e3")
    assert office.counters("s") == (3, 2)
