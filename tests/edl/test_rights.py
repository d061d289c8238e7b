"""Rights between peers: who is sent the events of which class, and what a change of rights does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.shipped import WEATHER
from qns.edl.messages import (
    ChangeSub,
    Entry,
    Envelope,
    Fault,
    Gossip,
    Notification,
    Notified,
    Notify,
)
from qns.errors import NotAllowed
from qns.federation.document import Federation
from qns.federation.rights import ReadRule
from qns.federation.schema_mapper import SchemaMapper
from qns.iil.requests import RedeliverDeadLetter, Subscribe
from qns.peer.inputs import Received
from qns.peer.turn import Turn
from qns.simulation.world import World
from tests.edl.lone_peer import LonePeer
from tests.edl.peers import (
    OWNER,
    cut,
    delivered,
    federation,
    install,
    peer_of,
    publish,
    send,
    subscribe,
    world_of,
)
from tests.edl.test_adoption import producer_of
from tests.edl.test_adoption import publish as publish_at
from tests.strategies import ALL_TYPES, events, subscriptions

WIND = "Report/Wind"
ALL = ReadRule("Report")
NO_WIND = ReadRule("Report", only=True)


def change_rights(world: World, *rules: ReadRule, at: Iterable[str] = ("P",)) -> None:
    install(world, world.federation.with_rights(rules), *at)


def sent(world: World, to: str, event: str) -> list[str]:
    """Returns the peers that have sent an event to another one."""
    return [
        sender
        for _, sender, receiver, body in world.traffic
        if receiver == to and isinstance(body, Notify)
        for item in body.items
        if isinstance(item, Notification) and item.event == event
    ]


def ruled(*names: str, rules: Iterable[ReadRule], capability: int = 4) -> World:
    """Returns a world in which these rights are in force everywhere."""
    world = world_of(*names, capability=capability)
    change_rights(world, *rules)
    world.run_for(15.0)
    return world


def settled(*names: str, rules: Iterable[ReadRule] = (), capability: int = 4) -> World:
    """Returns a world in which all but P have subscribed, with these rights."""
    world = ruled(*names, rules=rules, capability=capability)
    for name in names[1:]:
        subscribe(world, name)
    world.run_for(10.0)
    return world


def test_event_goes_only_to_those_who_may_read_its_class() -> None:
    world = settled("P", "C", "D", rules=[NO_WIND, ReadRule(WIND, "D")])
    publish(world, "P", "r")
    publish(world, "P", "w", data_class=WIND)
    world.run_for(10.0)
    assert delivered(world, "C") == ["r"]
    assert delivered(world, "D") == ["r", "w"]
    assert sent(world, "C", "w") == []


def test_view_has_only_the_classes_that_may_be_read() -> None:
    world = settled("P", "C", "D", rules=[NO_WIND])
    subscribe(world, "C", "w", WIND)
    world.run_for(5.0)
    consumer = peer_of(world, "C").edl.consumer
    assert [each.hosted for each in consumer.views()] == [{"Report"}, {"Report"}]
    (element,) = peer_of(world, "P").edl.producer.table.view("C").values()
    assert element.data_class == "Report"


def test_consumer_whose_view_is_not_known_gets_only_what_it_may_read() -> None:
    world = settled("P", "C", "D", rules=[NO_WIND])
    peer_of(world, "P").edl.producer.uncompared.doubt("C", world.now, is_lost=True)
    publish(world, "P", "w", data_class=WIND)
    world.run_for(5.0)
    assert sent(world, "C", "w") == []


def test_late_subscriber_gets_only_what_it_may_read_of_the_backlog() -> None:
    world = ruled("P", "C", rules=[NO_WIND])
    publish(world, "P", "r", available="INF")
    publish(world, "P", "w", available="INF", data_class=WIND)
    subscribe(world, "C", "late")
    world.run_for(10.0)
    assert delivered(world, "C", "late") == ["r"]
    assert sent(world, "C", "w") == []


def test_view_that_a_consumer_sent_without_the_right_is_not_served() -> None:
    """The producer's document decides, whatever the consumer believes."""
    world = ruled("P", "C", rules=[NO_WIND])
    publish(world, "P", "before", available="INF", data_class=WIND)
    stranger = ruled("P", "C", rules=[ALL])  # this C may read it, and says so
    subscribe(stranger, "C", "w", WIND)
    view = peer_of(stranger, "C").edl.consumer.merger.table["P"]
    stream = peer_of(world, "P").edl.producer.streams["C"]
    change = ChangeSub(
        1, 1, 1, None, stream.version + 1, tuple(view.texts.values()), (), str(view.digest)
    )
    send(world, "C", "P", change)
    world.run_for(0.1)
    assert stream.version == change.version
    publish(world, "P", "after", data_class=WIND)
    world.run_for(5.0)
    assert sent(world, "C", "before") == sent(world, "C", "after") == []


def test_right_that_is_taken_away_leaves_what_was_delivered_and_ends_the_rest() -> None:
    world = settled("P", "C", rules=[ALL])
    publish(world, "P", "w1", data_class=WIND)
    world.run_for(5.0)
    cut(world, "P", "C")
    publish(world, "P", "w2", data_class=WIND)
    publish(world, "P", "r")
    world.run_for(3.0)
    change_rights(world, NO_WIND)
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "C") == ["w1", "r"]
    (withheld,) = [each for each in world.history if each["do"] == "withhold"]
    assert (withheld["org"], withheld["to"], withheld["event"]) == ("P", "C", "w2")
    (skip,) = [each for each in world.history if each["do"] == "skip"]
    assert skip["why"] == "C may not read Report/Wind of P (document version 3)"
    assert not peer_of(world, "P").edl.producer.streams["C"].owes


def items_under_way(lone: LonePeer, to: str) -> list[tuple[str, tuple[str, ...]]]:
    """Returns the events in the notify under way to a peer, each with all its receivers."""
    request = lone.request(to)
    items = request.items if isinstance(request, Notify) else ()
    return [
        (each.event, tuple(each.entry.receivers()))
        for each in items
        if isinstance(each, Notification)
    ]


@pytest.mark.parametrize("first", ["C", "D"])
def test_event_that_waits_on_a_link_is_not_sent_after_its_right_has_ended(first: str) -> None:
    lone = producer_of("C", "D", capability=1)
    lone.peer.edl.producer.trees._capabilities = {"P": 1, first: 2}
    publish_at(lone, "r")
    publish_at(lone, "w", **{"class": WIND})
    ((event, (top, below)),) = items_under_way(lone, first)
    assert (event, top) == ("r", first)
    lone.install(lone.document.with_rights([NO_WIND, ReadRule(WIND, "D")]))
    found = []
    for _ in range(6):
        for name in [each for each in ("C", "D") if each in lone.under_way]:
            found += items_under_way(lone, name)
            lone.answer(name, lone.polite_reply(name))
    assert below in ("C", "D")
    assert ("w", ("D",)) in found
    assert not [names for each, names in found[1:] if each == "w" and "C" in names]


def test_copy_that_waits_for_a_relay_is_not_sent_after_the_right_of_the_relay_has_ended() -> None:
    lone = LonePeer("F", federation("P", "F", "G", "Z").with_rights([ALL]))
    lone.settle()
    forwarder = lone.peer.edl.forwarder
    forwarder.reachability.observe("Z", reachable=False)
    link = forwarder.link("G")
    link.asks(Gossip())  # the link is busy
    event = EventReader(WEATHER).from_fields({"id": "w", "class": WIND, "source": "P"})
    entry, xml = Entry("Z", 1, 1, 1, 0, ()), write_event(event, WEATHER)
    lone.receive("P", Notify((Notification("P", 1, 1, 1, "w", xml, 0.0, entry, ("P",)),)))
    assert [each.entry.receiver for each in link.parcels.values()] == ["Z"]
    turn = Turn(lone.now)
    assert len(forwarder.next_notifications(turn, link, 10, 10_000)) == 1
    less = lone.document.with_rights([NO_WIND, ReadRule(WIND, "Z")])
    forwarder.routes.apply_document(lone.document, less)
    assert forwarder.next_notifications(turn, link, 10, 10_000) == []


def test_right_that_is_given_brings_the_backlog_and_later_events() -> None:
    world = settled("P", "C", "D", rules=[NO_WIND])
    publish(world, "P", "w1", available="INF", data_class=WIND)
    publish(world, "P", "gone", data_class=WIND)
    publish(world, "P", "r")
    world.run_for(5.0)
    change_rights(world, NO_WIND, ReadRule(WIND, "C"))
    world.run_for(20.0)
    publish(world, "P", "w2", data_class=WIND)
    world.run_for(10.0)
    assert delivered(world, "C") == ["r", "w1", "w2"]
    assert delivered(world, "D") == ["r"]
    hosted = {each.producer: each.hosted for each in peer_of(world, "C").edl.consumer.views()}
    assert hosted == {"P": {"Report", WIND}, "D": {"Report", WIND}}
    stable = [
        each["classes"]
        for each in world.history
        if each["do"] == "stable" and (each["org"], each["producer"]) == ("C", "P")
    ]
    assert (stable[0], stable[-1]) == (["Report"], ["Report", WIND])


@pytest.mark.parametrize("first", ["P", "C"])
def test_right_that_one_peer_learns_late_loses_nothing(first: str) -> None:
    world = settled("P", "C", rules=[NO_WIND])
    publish(world, "P", "w1", available="INF", data_class=WIND)
    cut(world, "P", "C")
    change_rights(world, ALL, at=[first])
    world.run_for(5.0)
    publish(world, "P", "w2", available="INF", data_class=WIND)
    world.run_for(5.0)
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "C") == ["w1", "w2"]


def test_gained_right_makes_subscriptions_wait_until_the_producer_knows_it_too() -> None:
    lone = LonePeer("C", federation("P", "C").with_rights([NO_WIND]))
    lone.settle()
    lone.do(Subscribe(OWNER, "Report", id="s"))
    lone.settle()
    assert not lone.peer.iil.pending_at("P")
    lone.install(lone.document.with_rights([ALL]))
    assert lone.peer.iil.pending_at("P")
    requests = []
    while lone.request("P") is not None:
        requests.append(lone.request("P"))
        lone.answer("P", lone.polite_reply("P"))
    (change,) = [each for each in requests if isinstance(each, ChangeSub)]
    assert (change.added, change.removed) == ((), ())  # only the version is new
    assert not lone.peer.iil.pending_at("P")


def test_right_that_ends_and_comes_back_while_the_consumer_is_away() -> None:
    """The consumer skips the version in which it had no right."""
    world = settled("P", "C", rules=[ALL])
    cut(world, "P", "C")
    publish(world, "P", "w1", available="INF", data_class=WIND)
    change_rights(world, NO_WIND)
    world.run_for(10.0)
    publish(world, "P", "w2", available="INF", data_class=WIND)
    change_rights(world, ALL)
    world.run_for(1.0)
    publish(world, "P", "w3", data_class=WIND)
    world.network.heal()
    world.run_for(60.0)
    assert sorted(delivered(world, "C")) == ["w1", "w2", "w3"]


@pytest.mark.parametrize("rules", [[ALL], None])
def test_view_of_an_older_document_is_refused_until_the_consumer_has_the_newer_one(
    rules: list[ReadRule] | None,
) -> None:
    lone = LonePeer("P", federation("P", "C").with_rights([NO_WIND]))
    lone.settle()
    lone.install(lone.document.with_rights(rules))
    old = ChangeSub(1, 1, 1, 0, 1, (), (), lone.peer.edl.producer.table.digest("C"))
    (reply,) = lone.do(Received(Envelope("C", 2, (), old)))
    assert isinstance(reply.body, Fault)
    assert not reply.body.permanent
    assert reply.document == 3
    assert not isinstance(lone.receive("C", old), Fault)


def test_relay_that_may_not_read_the_class_does_not_get_the_event() -> None:
    world = settled("P", "A", "C", "Z", rules=[NO_WIND, ReadRule(WIND, "Z")])
    cut(world, "P", "Z")
    publish(world, "P", "w", data_class=WIND)
    publish(world, "P", "r")
    world.run_for(120.0)
    assert delivered(world, "Z") == []
    assert sent(world, "A", "w") == sent(world, "C", "w") == []
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "Z") == ["w", "r"]


def test_relay_that_may_read_the_class_is_chosen() -> None:
    world = settled("P", "A", "C", "Z", rules=[NO_WIND, ReadRule(WIND, "Z"), ReadRule(WIND, "C")])
    cut(world, "P", "Z")
    publish(world, "P", "r1")
    publish(world, "P", "w", data_class=WIND)
    publish(world, "P", "r2")
    world.run_for(240.0)
    assert delivered(world, "Z") == ["r1", "w", "r2"]
    assert sent(world, "A", "w") == []


def test_relay_gets_the_events_of_a_stream_up_to_one_that_it_may_not_read() -> None:
    world = settled("P", "A", "C", "Z", rules=[NO_WIND, ReadRule(WIND, "Z"), ReadRule(WIND, "C")])
    cut(world, "P", "Z")
    publish(world, "P", "r1")
    publish(world, "P", "w", data_class=WIND)
    publish(world, "P", "r2")
    producer, turn = peer_of(world, "P").edl.producer, Turn(world.now)
    stream = producer.streams["Z"]
    first = stream.acknowledged + 1
    for hop, expected in (("A", ["r1"]), ("C", ["r1", "w", "r2"]), ("", ["r1", "w", "r2"])):
        items = producer.resending.items(turn, stream, first, stream.number, hop)
        assert [each.event for each in items if isinstance(each, Notification)] == expected
    assert producer.resending.items(turn, stream, first + 1, stream.number, "A") == []


def test_second_relay_may_read_the_class_too() -> None:
    rules = [NO_WIND, ReadRule(WIND, "Z"), ReadRule(WIND, "A"), ReadRule(WIND, "C")]
    world = settled("P", "A", "B", "C", "Z", rules=rules)
    for pair in (("P", "Z"), ("A", "Z"), ("P", "B"), ("P", "C")):
        cut(world, *pair)
    publish(world, "P", "w", data_class=WIND)
    world.run_for(240.0)
    assert delivered(world, "Z") == ["w"]
    assert sent(world, "B", "w") == []


def test_consumer_that_went_back_does_not_get_again_what_it_may_not_read_any_more() -> None:
    world = settled("P", "C", rules=[ALL])
    world.back_up("C")
    world.run_for(1.0)
    publish(world, "P", "w", available="INF", data_class=WIND)
    publish(world, "P", "r", available="INF")
    world.run_for(5.0)
    change_rights(world, NO_WIND)
    world.run_for(10.0)
    before = len(world.traffic)
    world.put_back("C", world.nodes["C"].backups[-1])
    world.run_for(60.0)
    world.traffic[:] = world.traffic[before:]
    assert sent(world, "C", "w") == []
    assert delivered(world, "C") == ["r"]


def test_reader_keeps_what_it_gets_although_its_document_does_not_let_it_read() -> None:
    lone = LonePeer("C", federation("P", "C").with_rights([NO_WIND]))
    lone.settle()
    assert _notify(lone, WIND).outcomes[0].taken


# --- classes that a producer never hosted ---------------------------------------------------------


def _notify(lone: LonePeer, data_class: str, *, incarnation: int = 1, number: int = 1) -> Notified:
    producer = lone.peer.edl.producer
    entry = producer.streams["P"].entry(number, 1)
    entry = entry._replace(receiver="C", incarnation=1)
    event = EventReader(WEATHER).from_fields(
        {"id": f"e{number}", "class": data_class, "source": "P"}
    )
    xml = write_event(event, WEATHER)
    item = Notification("P", incarnation, 1, number, f"e{number}", xml, 0.0, entry, ("P",))
    reply = lone.receive("P", Notify((item,)))
    assert isinstance(reply, Notified)
    return reply


def test_event_of_a_class_that_its_source_never_hosted_is_rejected_for_good() -> None:
    lone = LonePeer("C", federation("P", "C"))
    lone.settle()
    (outcome,) = _notify(lone, "Report/Temperature").outcomes
    assert (outcome.taken, outcome.permanent) == (False, True)
    assert outcome.reason == "P has never hosted Report/Temperature"
    assert ("P", "e1") not in lone.peer.log


def test_event_of_a_class_that_its_source_hosted_before_is_accepted() -> None:
    """Also if the consumer never had the version in which the source hosted it."""
    document = federation("P", "C").hosting("P", ["Report/Temperature"]).hosting("P", ["Report"])
    lone = LonePeer("C", document)
    lone.settle()
    assert _notify(lone, "Report/Temperature").outcomes[0].taken
    assert _notify(lone, WIND, number=2).outcomes[0].taken
    lone.start()
    lone.settle()
    assert not _notify(lone, "Report/Pressure", number=3).outcomes[0].taken


def test_event_of_a_foreign_class_is_not_relayed() -> None:
    lone = LonePeer("C", federation("P", "C", "Z"))
    lone.settle()
    entry = lone.peer.edl.producer.streams["Z"].entry(1, 1)
    event = EventReader(WEATHER).from_fields(
        {"id": "e", "class": "Report/Wind/Gust", "source": "P"}
    )
    item = Notification("P", 1, 1, 1, "e", write_event(event, WEATHER), 0.0, entry, ("P",))
    reply = lone.receive("P", Notify((item,)))
    assert isinstance(reply, Notified)
    assert (reply.outcomes[0].taken, reply.outcomes[0].permanent) == (False, True)
    assert lone.custody == {}


def test_rejected_event_of_a_foreign_class_becomes_a_dead_letter_of_its_producer() -> None:
    world = settled("P", "C", rules=[ALL])
    peer = peer_of(world, "P")  # a manipulated one, which believes that it hosts the class
    pretended = peer.federation.hosting("P", ["Report", "Report/Pressure"])
    peer.federation = replace(pretended, version=2)
    publish(world, "P", "bad", data_class="Report/Pressure")
    publish(world, "P", "good")
    world.run_for(20.0)
    assert delivered(world, "C") == ["good"]
    (letter,) = peer.edl.forwarder.custody.dead_letters.values()
    assert (letter.receiver, letter.event) == ("C", "bad")
    assert letter.reason == "P has never hosted Report/Pressure"
    change_rights(world, NO_WIND)
    with pytest.raises(NotAllowed, match="C may not read it"):
        world.do("P", RedeliverDeadLetter(letter.id))


# --- the projection -------------------------------------------------------------------------------

CLASSES = st.frozensets(st.sampled_from(ALL_TYPES.classes))


@given(
    st.frozensets(subscriptions(), max_size=4),
    st.lists(events(), max_size=6),
    CLASSES,
    CLASSES,
)
def test_view_of_readable_classes_is_a_naive_filter_of_events(
    wanted: frozenset[Subscription],
    published: list[Event],
    hosted: frozenset[str],
    readable: frozenset[str],
) -> None:
    rules = [ReadRule(path, "C", "P", only=True) for path in readable]
    document = Federation.of("f", ALL_TYPES, {"P": hosted, "C": ()}).with_rights(rules)
    classes = SchemaMapper(document).producers(except_for="C")["P"]
    view = ProducerView("P", classes, wanted)
    for event in published:
        ours = event._replace(source="P")
        may_come = ours.data_class in hosted and ours.data_class in readable
        expected = may_come and any(each.matches(ours) for each in wanted)
        assert any(each.matches(ours) for each in view.subscriptions) == expected
