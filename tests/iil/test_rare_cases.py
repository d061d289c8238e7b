"""Rare requests that were got wrong once."""

from __future__ import annotations

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES, WEATHER
from qns.d2q.subscription_xml import write_subscription
from qns.errors import DuplicateId, LimitExceeded, QnsError
from qns.federation.document import Federation
from qns.iil.interpreter import interpret
from qns.iil.requests import AcknowledgeDeliveries, Publish, Published, Read, Subscribe
from qns.simulation.world import World
from tests.iil.conftest import OpenOffice
from tests.iil.office import OWNER, Office, event

# --- publishing -----------------------------------------------------------------------------------


def test_an_event_that_could_not_be_read_again_is_refused() -> None:
    """Each `&` takes five bytes in XML: 300 kB of JSON become 1.5 MB, more than is ever read."""
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


SPELLED = {
    "order of the names": (
        {"data": {"Region": "north", "Station": "x"}},
        {"data": {"Station": "x", "Region": "north"}},
    ),
    "availability left out": ({}, {"available": 0}),
    "nothing under previous": ({}, {"previous": {}}),
}


@pytest.mark.parametrize(("first", "second"), SPELLED.values(), ids=SPELLED)
def test_the_same_event_written_otherwise_is_recognised(
    first: dict[str, object], second: dict[str, object]
) -> None:
    office = Office()
    assert event("e1", **first) == event("e1", **second)
    office.do(Publish(event("e1", **first)))
    assert office.do(Publish(event("e1", **second))) == Published("e1", (), again=True)


def test_the_same_event_from_xml_is_recognised() -> None:
    office = Office()
    from_json = event("e1", data={"Region": "north", "Station": "x"})
    from_xml = read_event(write_event(from_json, WEATHER), WEATHER)
    office.do(Publish(from_json))
    assert office.do(Publish(from_xml)) == Published("e1", (), again=True)


def test_an_event_that_is_still_here_is_recognised_when_its_id_is_no_longer_remembered(
    open_office: OpenOffice,
) -> None:
    office = open_office(publications_remembered=1)
    office.publish("e1", "e2", available="INF")
    answer = office.do(Publish(event("e1", available="INF")))
    assert answer == Published("e1", (), again=True)


# --- ids ------------------------------------------------------------------------------------------


def test_an_id_that_looks_like_one_of_the_peers_own_keeps_nobody_from_subscribing() -> None:
    office = Office()
    office.subscribe("1-2", owner="eve")
    assert office.subscribe("").id != "1-2"


def test_an_id_is_never_used_again(office: Office) -> None:
    """Else its numbers begin at 1 again, and a late acknowledgement takes what nobody has read."""
    office.subscribe("s")
    office.publish("e1", available="INF")
    office.unsubscribe("s")
    office.crash()
    with pytest.raises(DuplicateId):
        office.subscribe("s")


def test_an_acknowledgement_of_a_former_subscription_takes_nothing_from_a_later_one() -> None:
    office = Office()
    office.subscribe("s")
    office.publish("old 1", "old 2")
    late = AcknowledgeDeliveries(OWNER, "s", 2)
    office.unsubscribe("s")
    try:
        office.subscribe("s")
    except DuplicateId:
        return
    office.publish("new 1", "new 2")
    office.do(late)
    assert office.events("s") == ["new 1", "new 2"]


# --- subscribing ----------------------------------------------------------------------------------


def test_a_repeated_call_is_recognised_when_the_table_is_full(open_office: OpenOffice) -> None:
    office = open_office(most_subscriptions=1)
    first = office.subscribe("s")
    assert office.subscribe("s") == first


def test_who_is_told_that_he_is_subscribed_is(office: Office) -> None:
    """A repeated call that comes in the very turn in which the subscription expires."""
    until = office.subscribe("s", lifetime_s=10).expires_at
    office.world.run_until(until - 0.001)
    try:
        office.subscribe("s", lifetime_s=10)
    except QnsError:
        return
    assert office.events("s") == []


def test_what_is_dropped_at_expiry_is_counted(office: Office) -> None:
    office.subscribe("s", lifetime_s=10)
    office.publish("e1")
    office.pause("s")
    office.publish("e2")
    office.wait(11)
    (end,) = office.records("usub")
    assert end["dropped"] == 2


XML = write_subscription(parse_subscription("Report/Wind", WEATHER), WEATHER).decode()
BARE = XML[XML.index("<subscription") :]
XML_SPELLINGS = {
    "another prefix": BARE.replace("<subscription xmlns=", "<q:subscription xmlns:q="),
    "a comment first": f"<!-- wind -->{BARE}",
    "a byte order mark": f"\ufeff{XML}",
}


@pytest.mark.parametrize("text", XML_SPELLINGS.values(), ids=XML_SPELLINGS)
def test_xml_is_recognised_however_it_begins(text: str) -> None:
    assert interpret(text, WEATHER) == parse_subscription("Report/Wind", WEATHER)


def test_the_history_of_a_subscription_in_xml_can_be_judged() -> None:
    office = Office()
    office.subscribe("s", XML)
    office.publish("e1", kind="Report/Wind")
    assert office.events("s") == ["e1"]
    assert office.violations() == []


# --- reading --------------------------------------------------------------------------------------


def test_a_negative_limit_is_refused_or_gives_nothing() -> None:
    office = Office()
    office.subscribe("s")
    office.publish("e1", "e2")
    try:
        answer = office.do(Read(OWNER, "s", limit=-1))
    except QnsError:
        return
    assert answer.deliveries == ()  # type: ignore[union-attr]


# --- availability ---------------------------------------------------------------------------------


def test_peer_and_judge_agree_on_the_very_end_of_an_events_time(office: Office) -> None:
    """A request that comes just before shares the turn of the expiry: is that still within Δ?"""
    office.publish("e1", available=10)
    until = office.now + 10
    office.world.run_until(until - 0.001)
    office.subscribe("s")
    assert office.now == until
    assert office.violations() == []


# --- delivery groups ------------------------------------------------------------------------------


def test_what_gathered_at_several_members_is_handed_out_in_publication_order(
    office: Office,
) -> None:
    office.subscribe("wind", "Report/Wind", group="desk")
    office.subscribe("all", "Report", group="desk")
    office.pause("wind", "all")
    office.publish("e1")
    office.publish("e2", kind="Report/Wind")
    office.publish("e3")
    office.resume("all")
    assert office.events("all") == ["e1", "e2", "e3"]


def test_members_with_different_wishes_take_turns_too(office: Office) -> None:
    """Every second event is for one of them only, which must not use up the other's turn."""
    office.subscribe("all", "Report", group="desk")
    office.subscribe("wind", "Report/Wind", group="desk")
    for number in range(5):
        office.publish(f"w{number}", kind="Report/Wind")
        office.publish(f"p{number}")
    assert len(office.events("wind")) >= 2
