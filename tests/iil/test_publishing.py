"""Publishing: permissions, repeated calls and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qns.cbr.event import Event
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.errors import Busy, DuplicateId, LimitExceeded, NotAllowed
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import (
    InstallDocument,
    Publish,
    Published,
    Subscribe,
)
from qns.simulation.node import KillPoint
from qns.simulation.world import World
from tests.iil.conftest import OpenPeer
from tests.iil.single_peer import ALONE, HOSTED, ME, OWNER, SinglePeer, event


@pytest.mark.parametrize(
    ("event_", "reason"),
    [
        (event("e2", kind="Report/Visibility"), "does not host Report/Visibility"),
        (event("e2", source="Met02"), "cannot publish for Met02"),
        (event("e2", source="met01"), "cannot publish for met01"),
    ],
    ids=["unhosted class", "foreign source", "another spelling"],
)
def test_publishing_without_permission_is_rejected_and_changes_nothing(
    peer: SinglePeer, event_: Event, reason: str
) -> None:
    peer.subscribe("s")
    peer.publish("e1")
    before, recorded = peer.rows(), len(peer.world.history)
    with pytest.raises(NotAllowed, match=reason):
        peer.do(Publish(event_))
    assert peer.rows() == before
    assert len(peer.world.history) == recorded
    peer.publish("e2")
    assert peer.events("s") == ["e1", "e2"]


def test_organisation_outside_the_federation_can_neither_publish_nor_subscribe() -> None:
    two = Federation.of("weather", WEATHER, {ME: HOSTED, "Met02": HOSTED})
    peer = SinglePeer(federation=two)
    peer.wait(1)
    peer.do(InstallDocument(write_federation(two.without(ME))))
    before = peer.rows()
    with pytest.raises(NotAllowed, match="not a member"):
        peer.do(Publish(event("e1")))
    with pytest.raises(NotAllowed, match="not a member"):
        peer.subscribe("s")
    assert peer.rows() == before


def test_publishing_follows_the_hosts_of_the_document_in_force(peer: SinglePeer) -> None:
    hosting = ALONE.hosting(ME, ["Report", "Report/Visibility"])
    peer.do(InstallDocument(write_federation(hosting)))
    peer.publish("e1", kind="Report/Visibility")
    with pytest.raises(NotAllowed, match="does not host Report/Wind"):
        peer.publish("e2", kind="Report/Wind")
    peer.crash()
    peer.publish("e3", kind="Report/Visibility")


def test_duplicate_publish_returns_again_and_delivers_nothing(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", quality={})
    before = peer.rows()
    again = Published("e1", (), again=True)
    assert peer.do(Publish(event("e1", quality={}))) == again
    assert peer.rows() == before
    peer.acknowledge_all("s")
    peer.crash()
    assert peer.do(Publish(event("e1", quality={}))) == again
    assert peer.notified("s") == ["e1"]
    assert len(peer.records("pub")) == 1


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
def test_publishing_another_event_with_a_used_id_is_rejected(
    peer: SinglePeer, other: dict[str, Any]
) -> None:
    peer.subscribe("s")
    peer.publish("e1")
    for crash in (False, True):
        if crash:
            peer.crash()
        before = peer.rows()
        with pytest.raises(DuplicateId):
            peer.do(Publish(event("e1", **other)))
        assert peer.rows() == before
    assert peer.events("s") == ["e1"]


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_publish_can_be_repeated_after_a_lost_answer(peer: SinglePeer, point: KillPoint) -> None:
    peer.subscribe("s")
    peer.crash_during(Publish(event("e1")), point)
    answer = peer.do(Publish(event("e1")))
    assert answer == Published("e1", (), again=point is not KillPoint.BEFORE_COMMIT)
    assert peer.notified("s") == ["e1"]


def test_peer_remembers_only_the_newest_published_ids(open_peer: OpenPeer) -> None:
    peer = open_peer(publications_remembered=2)
    peer.publish("e1", "e2", "e3")
    assert [row.id for row in peer.rows()["publications"]] == ["e2", "e3"]
    peer.crash()
    peer.publish("e4")
    assert [row.id for row in peer.rows()["publications"]] == ["e3", "e4"]
    assert peer.do(Publish(event("e3"))) == Published("e3", (), again=True)


def test_missing_publication_time_is_filled_in_and_a_given_one_is_kept(peer: SinglePeer) -> None:
    peer.wait(3)
    peer.publish("e1")
    peer.publish("e2", published="2024-01-31T12:00:00Z")
    times = [each["event"]["published"] for each in peer.records("pub")]
    assert times == ["1970-01-01T00:00:03.002000Z", "2024-01-31T12:00:00Z"]


def test_sequence_of_publications_continues_after_a_crash(peer: SinglePeer) -> None:
    peer.publish("e1", "e2")
    peer.crash()
    peer.publish("e3")
    found = [(each["epoch"], each["sequence"]) for each in peer.records("pub")]
    assert found == [(1, 1), (1, 2), (2, 3)]


EQUAL_FIELDS = {
    "order of names": (
        {"data": {"Region": "north", "Station": "x"}},
        {"data": {"Station": "x", "Region": "north"}},
    ),
    "availability left out": ({}, {"available": 0}),
    "empty previous": ({}, {"previous": {}}),
}


@pytest.mark.parametrize(("first", "second"), EQUAL_FIELDS.values(), ids=EQUAL_FIELDS)
def test_duplicate_publish_in_another_spelling_returns_again(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    peer = SinglePeer()
    assert event("e1", **first) == event("e1", **second)
    peer.do(Publish(event("e1", **first)))
    assert peer.do(Publish(event("e1", **second))) == Published("e1", (), again=True)


def test_duplicate_publish_from_xml_returns_again() -> None:
    peer = SinglePeer()
    from_json = event("e1", data={"Region": "north", "Station": "x"})
    from_xml = read_event(write_event(from_json, WEATHER), WEATHER)
    peer.do(Publish(from_json))
    assert peer.do(Publish(from_xml)) == Published("e1", (), again=True)


def test_duplicate_of_a_logged_event_is_recognised_after_its_id_is_forgotten(
    open_peer: OpenPeer,
) -> None:
    peer = open_peer(publications_remembered=1)
    peer.publish("e1", "e2", available="INF")
    answer = peer.do(Publish(event("e1", available="INF")))
    assert answer == Published("e1", (), again=True)


# --- limits ---------------------------------------------------------------------------------------


def test_publish_to_a_full_log_is_rejected_as_busy_and_changes_nothing(open_peer: OpenPeer) -> None:
    peer = open_peer(most_events=2)
    peer.subscribe("s")
    peer.publish("e1", "e2")
    before = peer.rows()
    with pytest.raises(Busy, match="holds 2 events"):
        peer.publish("e3")
    assert peer.rows() == before
    peer.acknowledge("s", 1)
    peer.publish("e3")
    assert peer.events("s") == ["e2", "e3"]
    assert peer.violations() == []


def test_full_log_still_recognises_duplicate_publications(open_peer: OpenPeer) -> None:
    peer = open_peer(most_events=1)
    peer.publish("e1", available=100)
    assert peer.do(Publish(event("e1", available=100))) == Published("e1", (), again=True)
    with pytest.raises(DuplicateId):
        peer.do(Publish(event("e1")))


def test_expired_events_make_room_in_a_full_log(open_peer: OpenPeer) -> None:
    peer = open_peer(most_events=1)
    peer.publish("e1", available=5)
    with pytest.raises(Busy):
        peer.publish("e2")
    peer.wait(6)
    peer.publish("e2")


def test_full_disk_fails_the_turn_and_loses_nothing(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1")
    node = peer.world.nodes[ME]
    node.full_until = peer.now + 5
    peer.world.ask(ME, Publish(event("e2")))
    peer.wait(0.1)
    assert not node.is_up
    peer.wait(5)
    peer.world.start(ME)
    assert peer.events("s") == ["e1"]
    peer.publish("e2")
    assert peer.read("s") == [(1, "e1"), (2, "e2")]


def test_rejected_request_does_not_affect_others_in_the_same_turn(peer: SinglePeer) -> None:
    peer.subscribe("s")
    answers: list[object] = []
    for each in (event("e1"), event("e2", source="Met02"), event("e1"), event("e3")):
        peer.world.ask(ME, Publish(each), answers.append)
    peer.wait(0.1)
    first, rejected, again, last = answers
    assert first == Published("e1", ())
    assert isinstance(rejected, NotAllowed)
    assert again == replace(first, again=True)
    assert last == Published("e3", ())
    assert peer.read("s") == [(1, "e1"), (2, "e3")]


def test_event_whose_xml_exceeds_the_limit_is_rejected() -> None:
    """Each `&` takes five bytes in XML: 300 kB of JSON become 1.5 MB, above the limit."""
    world = World(0, Federation.of("agencies", AGENCIES, {"INPS": AGENCIES.classes}))
    world.start()
    world.do("INPS", Subscribe(OWNER, "Enterprise", "s"))
    names = ("Code", "EntName", "Name", "Address", "FiscalCode")
    fields = {"id": "e1", "class": "Enterprise/Holder", "source": "INPS"}
    large = EventReader(AGENCIES).from_fields(fields | {"data": dict.fromkeys(names, "&" * 60_000)})
    with pytest.raises(LimitExceeded):
        world.do("INPS", Publish(large))
    world.kill("INPS")
    world.start("INPS")
