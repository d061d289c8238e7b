"""Publishing: who may, repeated calls, limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.d2q.shipped import WEATHER
from qns.errors import Busy, DuplicateId, NotAllowed
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument, Publish, Published
from qns.simulation.node import KillPoint
from tests.iil.conftest import OpenOffice
from tests.iil.office import ALONE, HOSTED, ME, Office, event


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (event("e2", kind="Report/Visibility"), "does not host Report/Visibility"),
        (event("e2", source="Met02"), "cannot publish for Met02"),
        (event("e2", source="met01"), "cannot publish for met01"),
    ],
    ids=["unhosted class", "foreign source", "another spelling"],
)
def test_what_it_may_not_publish_is_refused_and_changes_nothing(
    office: Office, refused: object, reason: str
) -> None:
    office.subscribe("s")
    office.publish("e1")
    before, told = office.rows(), len(office.world.history)
    with pytest.raises(NotAllowed, match=reason):
        office.do(Publish(refused))  # type: ignore[arg-type]
    assert office.rows() == before
    assert len(office.world.history) == told
    office.publish("e2")
    assert office.events("s") == ["e1", "e2"]


def test_who_is_not_a_member_publishes_nothing() -> None:
    two = Federation.of("weather", WEATHER, {ME: HOSTED, "Met02": HOSTED})
    office = Office(federation=two)
    office.wait(1)
    office.do(InstallDocument(write_federation(two.without(ME))))
    before = office.rows()
    with pytest.raises(NotAllowed, match="not a member"):
        office.do(Publish(event("e1")))
    with pytest.raises(NotAllowed, match="not a member"):
        office.subscribe("s")
    assert office.rows() == before


def test_hosting_follows_the_document_in_force(office: Office) -> None:
    hosting = ALONE.hosting(ME, ["Report", "Report/Visibility"])
    office.do(InstallDocument(write_federation(hosting)))
    office.publish("e1", kind="Report/Visibility")
    with pytest.raises(NotAllowed, match="does not host Report/Wind"):
        office.publish("e2", kind="Report/Wind")
    office.crash()
    office.publish("e3", kind="Report/Visibility")


def test_a_repeated_publication_is_recognised(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1", quality={})
    before = office.rows()
    again = Published("e1", (), again=True)
    assert office.do(Publish(event("e1", quality={}))) == again
    assert office.rows() == before
    office.acknowledge_all("s")
    office.crash()
    assert office.do(Publish(event("e1", quality={}))) == again
    assert office.notified("s") == ["e1"]
    assert len(office.records("pub")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"data": {"Region": "south"}},
        {"data": {}},
        {"kind": "Report/Wind"},
        {"available": 5},
        {"published": "2024-01-31T12:00:00Z"},
        {"quality": {"Region.accuracy": 0.5}},
        {"previous": {"Region.accuracy": 0.5}},
    ],
    ids=lambda fields: ",".join(fields),
)
def test_another_event_with_a_used_id_is_refused(office: Office, other: dict[str, object]) -> None:
    office.subscribe("s")
    office.publish("e1")
    for crash in (False, True):
        if crash:
            office.crash()
        before = office.rows()
        with pytest.raises(DuplicateId):
            office.do(Publish(event("e1", **other)))
        assert office.rows() == before
    assert office.events("s") == ["e1"]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_a_factory_may_repeat_a_call_whose_answer_was_lost(
    office: Office, point: KillPoint
) -> None:
    office.subscribe("s")
    office.crash_during(Publish(event("e1")), point)
    answer = office.do(Publish(event("e1")))
    assert answer == Published("e1", (), again=point is not KillPoint.BEFORE_COMMIT)
    assert office.notified("s") == ["e1"]


def test_only_the_newest_ids_are_remembered(open_office: OpenOffice) -> None:
    office = open_office(publications_remembered=2)
    office.publish("e1", "e2", "e3")
    assert [row.id for row in office.rows()["publications"]] == ["e2", "e3"]
    office.crash()
    office.publish("e4")
    assert [row.id for row in office.rows()["publications"]] == ["e3", "e4"]
    assert office.do(Publish(event("e3"))) == Published("e3", (), again=True)


def test_publication_times_are_filled_in_and_given_ones_are_kept(office: Office) -> None:
    office.wait(3)
    office.publish("e1")
    office.publish("e2", published="2024-01-31T12:00:00Z")
    told = [each["event"]["published"] for each in office.records("pub")]
    assert told == ["1970-01-01T00:00:03.002000Z", "2024-01-31T12:00:00Z"]


def test_publications_are_counted_across_crashes(office: Office) -> None:
    office.publish("e1", "e2")
    office.crash()
    office.publish("e3")
    found = [(each["epoch"], each["sequence"]) for each in office.records("pub")]
    assert found == [(1, 1), (1, 2), (2, 3)]


# --- limits ---------------------------------------------------------------------------------------


def test_a_full_log_refuses_for_the_moment_and_changes_nothing(open_office: OpenOffice) -> None:
    office = open_office(most_events=2)
    office.subscribe("s")
    office.publish("e1", "e2")
    before = office.rows()
    with pytest.raises(Busy, match="holds 2 events"):
        office.publish("e3")
    assert office.rows() == before
    office.acknowledge("s", 1)
    office.publish("e3")
    assert office.events("s") == ["e2", "e3"]
    assert office.violations() == []


def test_a_full_log_still_recognises_what_was_published(open_office: OpenOffice) -> None:
    office = open_office(most_events=1)
    office.publish("e1", available=100)
    assert office.do(Publish(event("e1", available=100))) == Published("e1", (), again=True)
    with pytest.raises(DuplicateId):
        office.do(Publish(event("e1")))


def test_events_that_expire_make_room(open_office: OpenOffice) -> None:
    office = open_office(most_events=1)
    office.publish("e1", available=5)
    with pytest.raises(Busy):
        office.publish("e2")
    office.wait(6)
    office.publish("e2")


def test_a_full_disk_refuses_the_turn_and_loses_nothing(office: Office) -> None:
    office.subscribe("s")
    office.publish("e1")
    node = office.world.nodes[ME]
    node.full_until = office.now + 5
    office.world.ask(ME, Publish(event("e2")))
    office.wait(0.1)
    assert not node.is_up
    office.wait(5)
    office.world.start(ME)
    assert office.events("s") == ["e1"]
    office.publish("e2")
    assert office.read("s") == [(1, "e1"), (2, "e2")]


def test_requests_of_one_turn_are_judged_one_by_one(office: Office) -> None:
    """A refused one changes nothing; its neighbours are served."""
    office.subscribe("s")
    answers: list[object] = []
    for each in (event("e1"), event("e2", source="Met02"), event("e1"), event("e3")):
        office.world.ask(ME, Publish(each), answers.append)
    office.wait(0.1)
    first, refused, again, last = answers
    assert first == Published("e1", ())
    assert isinstance(refused, NotAllowed)
    assert again == replace(first, again=True)  # type: ignore[type-var]
    assert last == Published("e3", ())
    assert office.read("s") == [(1, "e1"), (2, "e3")]
