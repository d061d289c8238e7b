"""Rare orders of messages, lost disks, hostile members: each was got wrong once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.merger import Digest
from qns.edl.messages import (
    Acknowledge,
    ChangeSub,
    Entry,
    Envelope,
    Notified,
    Notify,
)
from qns.errors import QnsError
from qns.federation.document_xml import write_federation
from qns.iil.requests import Publish, Published, Subscribe, Unsubscribe
from qns.inputs import Answered
from qns.simulation.disks import MemoryDisk
from qns.simulation.network import Weather
from qns.simulation.world import World
from qns.store.lineage import MemoryLineage
from tests.edl.peers import (
    OWNER,
    cut,
    delivered,
    federation,
    install,
    lone_gateway,
    notification,
    peer_of,
    publish,
    say,
    subscribe,
    tell,
    world_of,
)


def test_a_producer_restored_to_before_a_consumer_joined_reaches_that_consumer() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    install(world, start.without("C"), "P", "C")
    world.run_for(10.0)
    world.back_up("P")
    install(world, world.federation.with_organisation(start["C"]), "P", "C")
    world.run_for(10.0)
    subscribe(world, "C")
    world.run_for(5.0)
    publish(world, "P", "e1", "e2")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1", "e2"]
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(30.0)
    publish(world, "P", "e3", "e4", "e5")
    world.run_for(30.0)
    assert delivered(world, "C") == ["e1", "e2", "e3", "e4", "e5"]


def test_an_organisation_restored_to_before_it_came_back_reaches_the_others() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    world.back_up("P")
    install(world, start.without("P"), "P", "C")
    world.run_for(10.0)
    install(world, world.federation.with_organisation(start["P"]), "P", "C")
    world.run_for(10.0)
    publish(world, "P", "e1", "e2")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1", "e2"]
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(30.0)
    publish(world, "P", "e3", "e4", "e5")
    world.run_for(30.0)
    assert delivered(world, "C") == ["e1", "e2", "e3", "e4", "e5"]


def test_an_older_and_then_a_newer_backup_lose_nothing() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    world.back_up("P")
    cut(world, "P", "C")
    publish(world, "P", "e1", "e2", "e3")
    world.run_for(2.0)
    world.back_up("P")
    older, newer = world.nodes["P"].backups
    world.put_back("P", older)
    world.network.heal()
    world.run_for(20.0)
    publish(world, "P", "f1", "f2")
    world.run_for(20.0)
    assert delivered(world, "C") == ["f1", "f2"]
    world.put_back("P", newer)
    world.run_for(60.0)
    assert sorted(delivered(world, "C")) == ["e1", "e2", "e3", "f1", "f2"]


def test_a_restored_consumer_gets_what_it_misses_whatever_its_former_life_said() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1")
    world.run_for(3.0)
    world.back_up("C")
    world.network.cut("C", "P")
    publish(world, "P", "e2", "e3")
    world.run_for(10.0)
    assert delivered(world, "C") == ["e1", "e2", "e3"]
    straggler = Acknowledge(peer_of(world, "C").consumer.standing("P"))
    world.network.heal()
    world.network.cut("P", "C")
    world.put_back("C", world.nodes["C"].backups[-1])
    world.run_for(1.0)
    say(world, "C", "P", straggler)
    world.run_for(1.0)
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "C") == ["e1", "e2", "e3"]


def test_a_word_to_a_former_incarnation_does_not_count_for_the_new_one() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    straggler = peer_of(world, "P").edl.hello("C")
    install(world, start.without("C"), "P", "C")
    world.run_for(10.0)
    install(world, world.federation.with_organisation(start["C"]), "P", "C")
    world.run_for(20.0)
    world.ask("C", Subscribe(OWNER, "Report", id="again"))
    say(world, "P", "C", straggler, document=1)
    world.run_for(30.0)
    publish(world, "P", "e1")
    world.run_for(30.0)
    assert delivered(world, "C", "again") == ["e1"]


def test_an_event_that_is_refused_for_good_does_not_block_those_after_it() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    world.back_up("P")
    publish(world, "P", "e1")
    world.run_for(5.0)
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(20.0)
    cut(world, "P", "C")
    publish(world, "P", "e1")  # the factory repeats what the restored peer has forgotten
    world.run_for(5.0)
    world.network.heal()
    publish(world, "P", "e2")
    world.run_for(300.0)
    assert "e2" in delivered(world, "C")


def test_a_new_incarnation_keeps_the_promise_to_forward() -> None:
    world = world_of("P", "F", "Z")
    start = world.federation
    install(world, start.without("F"), "P", "F")
    world.run_for(10.0)
    install(world, world.federation.with_organisation(start["F"]), "P", "F")
    world.run_for(10.0)
    child = Entry("Z", 1, 1, 1, 0)
    item = notification("P", "e1", Entry("F", 1, 1, 1, 0, (), (child,)))
    effects = tell(peer_of(world, "F"), "P", Notify((item,)), world.now)
    (reply,) = effects.answers
    assert isinstance(reply, Envelope)
    assert isinstance(reply.body, Notified)
    (outcome,) = reply.body.outcomes
    promised = [
        each.entry.receiver for each in peer_of(world, "F").edl.forwarder.custody.parcels.values()
    ]
    assert not outcome.taken or promised == ["Z"]


@pytest.mark.parametrize("receiver", ["Z", "Nobody"])
def test_no_promise_is_made_for_who_is_not_a_member(receiver: str) -> None:
    world = world_of("P", "F", "Z")
    install(world, world.federation.without("Z"), "P", "Z")
    world.run_for(10.0)
    world.kill("Z")
    child = Entry(receiver, 1, 1, 1, 0)
    item = notification("P", "e1", Entry("F", 1, 1, 1, 0, (), (child,)))
    say(world, "P", "F", Notify((item,)), document=1)
    world.run_for(120.0)
    peer = peer_of(world, "F")
    assert len(peer.edl.forwarder.custody) == 0
    assert len(peer.log) == 0


def test_who_has_left_and_is_gone_is_left_alone() -> None:
    world = world_of("P", "C", "D")
    subscribe(world, "C")
    subscribe(world, "D")
    world.run_for(2.0)
    publish(world, "D", "d1")
    world.run_for(2.0)
    world.kill("D")
    publish(world, "P", "e1")
    world.run_for(20.0)
    install(world, world.federation.without("D"), "P")
    world.run_for(60.0)
    before = len(world.traffic)
    world.run_for(600.0)
    sent = Counter(type(body).__name__ for _, _, to, body in world.traffic[before:] if to == "D")
    assert not sent


def test_a_long_chain_of_weak_organisations_gets_every_event() -> None:
    names = [f"Org{number:03}" for number in range(500)]
    gateway = lone_gateway(federation("P", *names, capability=1))
    text = next(iter(peer_of(_one_view(), "P").producer.table.view("C")))
    change = ChangeSub(1, 1, 1, None, 1, (text,), (), str(Digest([text])))
    for name in names:
        tell(gateway.peer, name, change, 1.0)
    event = EventReader(WEATHER).from_fields({"id": "e1", "class": "Report", "source": "P"})
    effects = gateway.run([Publish(event)], 2.0)
    assert effects.answers == [Published("e1", tuple(names))]


def _one_view() -> World:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    return world


def test_a_document_that_cannot_be_installed_is_not_fetched_without_end() -> None:
    world = World(1, federation("P", "C"))
    other = replace(federation("P", "C"), name="another federation", version=7)
    world.nodes["P"].document = write_federation(other)
    world.start()
    world.run_for(60.0)
    assert world.messages["FetchDocument"] < 60


def test_a_reply_that_tells_nothing_is_not_followed_by_the_same_request_at_once() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    peer = peer_of(world, "P")
    event = EventReader(WEATHER).from_fields({"id": "e1", "class": "Report", "source": "P"})
    _, effects = peer.turn([Publish(event)], world.now)
    calls = 0
    while effects.sends and calls < 100:
        calls += 1
        empty = Envelope("C", 1, (), Notified((), None))
        _, effects = peer.turn([Answered(each.number, empty) for each in effects.sends], world.now)
    assert calls < 100


def test_a_gap_in_the_stream_of_a_former_incarnation_is_given_up() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    epoch = peer_of(world, "P").identity.epoch
    say(
        world,
        "D",
        "C",
        Notify((notification("P", "e2", Entry("C", 1, epoch, 2, 0), path=("P", "D")),)),
    )
    world.run_for(0.1)
    world.back_up("C")
    publish(world, "P", "e1")
    world.run_for(10.0)
    install(world, start.without("P"), "P", "C")
    world.run_for(10.0)
    install(world, world.federation.with_organisation(start["P"]), "P", "C")
    world.run_for(10.0)
    world.put_back("C", world.nodes["C"].backups[-1])
    world.run_for(120.0)
    before = len(world.traffic)
    world.run_for(120.0)
    kinds = Counter(type(body).__name__ for _, _, _, body in world.traffic[before:])
    assert kinds["Pull"] == 0
    assert not [each for each in peer_of(world, "C").consumer.streams.values() if each.early]


def test_what_a_receiver_cannot_take_yet_does_not_delay_the_rest() -> None:
    world = world_of("C", "F", "P", "Q", most_early=1, notifications_per_call=2)
    subscribe(world, "C")
    world.run_for(2.0)
    for name in ("P", "Q"):
        world.kill(name)
    epoch = 1
    items = [
        notification(
            source, id, Entry("F", 1, epoch, own, 0, (), (Entry("C", 1, epoch, number, 0),))
        )
        for source, id, own, number in (
            *(("P", "p2", 1, 2), ("P", "p3", 2, 3), ("P", "p4", 3, 4)),
            ("Q", "q1", 1, 1),
        )
    ]
    for item in items:
        say(world, item.source, "F", Notify((item,)))
    world.run_for(120.0)
    assert delivered(world, "C") == ["q1"]


def test_a_peer_that_lost_store_and_lineage_does_not_lose_events_in_silence() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1", "e2")
    world.run_for(5.0)
    node = world.nodes["P"]
    world.kill("P")
    node.disk, node.lineage = MemoryDisk(), MemoryLineage()
    world.start("P")
    world.run_for(20.0)
    try:
        publish(world, "P", "e3")
    except QnsError:
        return  # it may say that it cannot go on
    world.run_for(60.0)
    assert "e3" in delivered(world, "C")


def test_who_comes_back_does_not_wait_for_who_has_left() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    world.kill("C")
    publish(world, "P", "e1")
    world.run_for(1.0)
    world.kill("P")
    install(world, start.without("P"), "D")
    install(world, world.federation.without("C"), "D")
    install(world, world.federation.with_organisation(start["P"]), "D")
    world.start("P")
    world.run_for(120.0)
    assert peer_of(world, "P").federation.version == world.federation.version


def test_an_answer_to_a_former_incarnation_does_not_make_new_subscriptions_wait() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C", "old")
    world.run_for(2.0)
    publish(world, "P", "e1", "e2", "e3")
    world.run_for(3.0)
    again = start.without("C").with_organisation(start["C"])
    world.network.weather = Weather(least_delay_s=0.6, most_delay_s=0.7)
    world.do("C", Subscribe(OWNER, "Report/Wind where Speed > 3", id="w"))
    world.do("C", Unsubscribe(OWNER, "old"))
    world.run_for(0.1)
    install(world, again, "C")
    world.do("C", Subscribe(OWNER, "Report", id="s"))
    world.network.heal()
    world.run_for(30.0)
    publish(world, "P", "f1")
    world.run_for(30.0)
    assert delivered(world, "C") == ["f1"]
