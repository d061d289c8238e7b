"""A schema grows while peers run: new classes, properties and labels (semantics §1, §3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.schema import Schema
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Envelope, Fault
from qns.errors import FederationError, QnsError
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import (
    InstallDocument,
    ListSubscriptions,
    Publish,
    Subscribe,
    Subscriptions,
    Unsubscribe,
)
from qns.peer.tables import SUBSCRIPTIONS
from qns.peer.turn import Turn
from qns.simulation.world import World
from tests.edl.peers import OWNER, cut, delivered, install, peer_of, publish, subscribe, world_of

CLASSES = {
    path: {prop.name: prop.domain.name for prop in WEATHER.properties[path]}
    for path in WEATHER.classes
}
GROWN = Schema(
    "weather",
    {
        **CLASSES,
        "Report": {**CLASSES["Report"], "Altitude": "integer"},
        "Report/Wind/Squall": {"Minutes": "integer"},
    },
    {"low": 0.2, "medium": 0.5, "superb": 1.0},
)


def grown(federation: Federation, *hosts: str, schema: Schema = GROWN) -> Federation:
    """Returns the next version, with the grown schema; `hosts` host the new class."""
    organisations = {
        name: replace(each, hosts=each.hosts | {"Report/Wind/Squall"}) if name in hosts else each
        for name, each in federation.organisations.items()
    }
    return Federation(federation.name, schema, organisations, federation.version + 1)


def publish_as(world: World, org: str, id: str, path: str, **data: object) -> None:
    fields = {"id": id, "class": path, "source": org, "data": data}
    event = EventReader(world.federation.schema).from_fields(fields)
    world.do(org, Publish(event))


def test_events_of_a_new_class_reach_old_and_new_subscriptions_without_a_restart() -> None:
    world = world_of("A", "B", "C")
    subscribe(world, "B", "below", "Report/Wind")
    subscribe(world, "B", "exact", "only Report/Wind")
    world.run_for(2.0)
    install(world, grown(world.federation, "A"), "A")
    world.run_for(5.0)
    assert [peer_of(world, name).federation.version for name in "ABC"] == [2, 2, 2]
    subscribe(world, "C", "new", "Report/Wind/Squall where Minutes > 3 and Altitude exists")
    world.run_for(5.0)
    publish_as(world, "A", "e1", "Report/Wind/Squall", Minutes=5, Altitude=80)
    publish_as(world, "A", "e2", "Report/Wind/Squall", Minutes=2, Altitude=80)
    world.run_for(5.0)
    assert delivered(world, "B", "below") == ["e1", "e2"]
    assert delivered(world, "B", "exact") == []
    assert delivered(world, "C", "new") == ["e1"]


def test_events_of_a_new_class_that_wait_on_the_disk_are_delivered() -> None:
    world = world_of("A", "B", events_in_memory=1)
    subscribe(world, "B", "below", "Report/Wind")
    world.run_for(2.0)
    install(world, grown(world.federation, "A"), "A")
    world.run_for(5.0)
    cut(world, "A", "B")
    for number in range(5):
        publish_as(world, "A", f"e{number}", "Report/Wind/Squall", Minutes=number)
    world.network.heal()
    world.run_for(20.0)
    assert delivered(world, "B", "below") == ["e0", "e1", "e2", "e3", "e4"]


def test_class_and_only_that_class_part_when_a_class_is_added_below() -> None:
    world = world_of("A", "B")
    subscribe(world, "B", "exact", "only Report/Pressure")
    subscribe(world, "B", "below", "Report/Pressure")  # equivalent while nothing is below
    world.run_for(2.0)
    assert len(peer_of(world, "A").edl.producer.table.view("B")) == 0  # A does not host it
    classes = {**CLASSES, "Report/Pressure/Sea": {}}
    document = grown(world.federation, schema=Schema("weather", classes, WEATHER.labels))
    hosts = replace(document["A"], hosts=frozenset(["Report/Pressure", "Report/Pressure/Sea"]))
    document = replace(document, organisations={**document.organisations, "A": hosts})
    install(world, document, "B")
    world.run_for(5.0)
    publish_as(world, "A", "e1", "Report/Pressure/Sea")
    publish_as(world, "A", "e2", "Report/Pressure")
    world.run_for(5.0)
    assert delivered(world, "B", "below") == ["e1", "e2"]
    assert delivered(world, "B", "exact") == ["e2"]


@pytest.mark.parametrize("first", ["below", "exact"])
def test_only_that_class_stays_in_the_view_when_its_former_equivalent_ends(first: str) -> None:
    world = world_of("A", "B")
    hosts = ("Report/Wind/Gust", "Report/Wind/Gust/Coastal")
    install(world, world.federation.hosting("A", hosts[:1]), "A", "B")
    world.run_for(2.0)
    texts = {"below": "Report/Wind/Gust", "exact": "only Report/Wind/Gust"}
    for id in sorted(texts, key=lambda each: each != first):
        subscribe(world, "B", id, texts[id])  # equivalent while nothing is below
    world.run_for(2.0)
    classes = {**CLASSES, "Report/Wind/Gust/Coastal": {}}
    document = grown(world.federation, schema=Schema("weather", classes, WEATHER.labels))
    host = replace(document["A"], hosts=frozenset(hosts))
    document = replace(document, organisations={**document.organisations, "A": host})
    install(world, document, "A", "B")
    world.run_for(5.0)
    world.do("B", Unsubscribe(OWNER, "below"))
    world.run_for(5.0)
    view = peer_of(world, "A").edl.producer.table.view("B")
    assert [each.scope for each in view.values()] == [frozenset(["Report/Wind/Gust"])]


def test_stored_subscriptions_and_events_keep_their_meaning_after_a_restart() -> None:
    world = world_of("A", "B")
    text = 'Report/Wind where Speed.accuracy <= MEDIUM and Region in {"medium", "low"}'
    subscribe(world, "B", "s", text)
    world.run_for(2.0)
    publish(world, "A", "before", available=1_000)
    before = peer_of(world, "B").iil.table["s"].subscription
    install(world, grown(world.federation), "A", "B")
    world.run_for(2.0)
    for name in "AB":
        world.kill(name)
    world.start()
    world.run_for(5.0)
    after = peer_of(world, "B").iil.table["s"]
    assert after.subscription.constraints == before.constraints
    assert after.text == text
    assert ("A", "before") in peer_of(world, "A").log
    view = peer_of(world, "A").edl.producer.table.view("B")
    assert {each.constraints["Report/Wind.Speed.accuracy"] for each in view.values()} == {
        before.constraints["Report/Wind.Speed.accuracy"]
    }
    world.do("B", Subscribe(OWNER, text, id="s"))  # a repetition, though the label has changed
    listed = world.do("B", ListSubscriptions(OWNER))
    assert isinstance(listed, Subscriptions)
    assert [each.text for each in listed.subscriptions] == [text]


def test_subscription_of_an_earlier_release_keeps_its_meaning_when_labels_change() -> None:
    world = world_of("A", "B")
    subscribe(world, "B", "s", "Report/Wind where Speed.accuracy <= medium")
    world.run_for(1.0)
    found = peer_of(world, "B").iil.table["s"]
    found.reading = ""  # as a store of version 2 has it
    before = found.subscription
    install(world, grown(world.federation), "B")
    world.kill("B")
    world.start()
    world.run_for(1.0)
    assert peer_of(world, "B").iil.table["s"].subscription == before
    gateway = world.nodes["B"].gateway
    assert gateway is not None
    (row,) = gateway.store.rows(SUBSCRIPTIONS)
    assert row.reading == "Report/Wind where Speed.accuracy <= 0.6"


def test_peer_with_the_older_schema_asks_for_a_repetition_and_fetches_the_document() -> None:
    world = world_of("A", "B")
    document = grown(world.federation, "A")
    hello = peer_of(world, "A").edl.dialogue.hello("B")
    newer = Envelope("A", document.version, (), hello)
    (answer,) = peer_of(world, "B").edl.handle_requests(Turn(world.now), [newer])
    assert isinstance(answer, Envelope)
    assert isinstance(answer.body, Fault)
    assert not answer.body.permanent
    install(world, document, "A")
    world.run_for(5.0)
    assert peer_of(world, "B").federation.schema == GROWN


@pytest.mark.parametrize("name", ["A", "B"])
def test_document_that_removes_or_changes_a_property_is_refused_by_name(name: str) -> None:
    world = world_of("A", "B")
    lesser = {**CLASSES, "Report/Wind": {"Speed": "integer", "Direction": "integer"}}
    document = grown(world.federation, schema=Schema("weather", lesser, WEATHER.labels))
    with pytest.raises(FederationError, match=r"the property Report/Wind.Speed was decimal and"):
        world.do(name, InstallDocument(write_federation(document)))
    assert peer_of(world, name).federation == world.federation


def test_new_label_can_be_used_at_once_and_a_removed_one_not_any_more() -> None:
    world = world_of("A", "B")
    install(world, grown(world.federation), "B")
    subscribe(world, "B", "s", "Report/Wind where Speed.accuracy >= superb")
    with pytest.raises(QnsError, match="high"):
        subscribe(world, "B", "t", "Report/Wind where Speed.accuracy >= high")
