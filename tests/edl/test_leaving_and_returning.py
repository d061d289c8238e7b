"""Organisations that left the federation, and their later incarnations."""

from __future__ import annotations

from collections import Counter

import pytest

from qns.edl.messages import Entry, Envelope, Notified, Notify
from qns.iil.requests import Subscribe, Unsubscribe
from qns.simulation.network import Weather
from tests.edl.peers import (
    OWNER,
    cut,
    deliver_request,
    delivered,
    install,
    notification,
    peer_of,
    publish,
    send,
    subscribe,
    world_of,
)


def test_hello_to_an_earlier_incarnation_does_not_affect_the_new_one() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    stale = peer_of(world, "P").edl.dialogue.hello("C")
    install(world, start.without("C"), "P", "C")
    world.run_for(10.0)
    install(world, world.federation.with_organisation(start["C"]), "P", "C")
    world.run_for(20.0)
    world.ask("C", Subscribe(OWNER, "Report", id="again"))
    send(world, "P", "C", stale, document=1)
    world.run_for(30.0)
    publish(world, "P", "e1")
    world.run_for(30.0)
    assert delivered(world, "C", "again") == ["e1"]


def test_reply_to_an_earlier_incarnation_does_not_keep_new_subscriptions_pending() -> None:
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


def test_accepted_notification_is_forwarded_by_a_new_incarnation() -> None:
    world = world_of("P", "F", "Z")
    start = world.federation
    install(world, start.without("F"), "P", "F")
    world.run_for(10.0)
    install(world, world.federation.with_organisation(start["F"]), "P", "F")
    world.run_for(10.0)
    child = Entry("Z", 1, 1, 1, 0)
    item = notification("P", "e1", Entry("F", 1, 1, 1, 0, (), (child,)))
    effects = deliver_request(peer_of(world, "F"), "P", Notify((item,)), world.now)
    (reply,) = effects.answers
    assert isinstance(reply, Envelope)
    assert isinstance(reply.body, Notified)
    (outcome,) = reply.body.outcomes
    promised = [
        each.entry.receiver for each in peer_of(world, "F").edl.forwarder.custody.parcels.values()
    ]
    assert not outcome.taken or promised == ["Z"]


def test_gap_in_the_stream_of_an_earlier_incarnation_is_given_up() -> None:
    world = world_of("P", "C", "D")
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    epoch = peer_of(world, "P").identity.epoch
    send(
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
    assert kinds["PullGap"] == 0
    assert not [each for each in peer_of(world, "C").edl.consumer.streams.values() if each.early]


def test_returning_organisation_does_not_wait_for_one_that_has_left() -> None:
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


@pytest.mark.parametrize("receiver", ["Z", "Nobody"])
def test_forwarder_takes_no_custody_for_a_receiver_that_is_not_a_member(receiver: str) -> None:
    world = world_of("P", "F", "Z")
    install(world, world.federation.without("Z"), "P", "Z")
    world.run_for(10.0)
    world.kill("Z")
    child = Entry(receiver, 1, 1, 1, 0)
    item = notification("P", "e1", Entry("F", 1, 1, 1, 0, (), (child,)))
    send(world, "P", "F", Notify((item,)), document=1)
    world.run_for(120.0)
    peer = peer_of(world, "F")
    assert len(peer.edl.forwarder.custody) == 0
    assert len(peer.log) == 0


def test_peers_send_nothing_to_an_organisation_that_left_and_is_down() -> None:
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


@pytest.mark.parametrize("knows_the_earlier_one", [True, False])
def test_producer_joins_again_when_a_consumer_missed_that_it_had_left(
    knows_the_earlier_one: bool,
) -> None:
    world = world_of("P", "C", "D", compare_within_s=600.0)
    start = world.federation
    subscribe(world, "C")
    world.run_for(2.0)
    install(world, start.without("P"), "P", "C", "D")
    world.run_for(30.0)
    world.kill("P")
    world.start("P")  # a peer that has started again sends every event until it knows the view
    for other in ("P", "D"):
        cut(world, other, "C")
    second = world.federation.with_organisation(start["P"])
    install(world, second, "P", "D", *["C"] * knows_the_earlier_one)
    publish(world, "P", "e1")
    install(world, second.without("P"), "P")
    third = world.federation.with_organisation(start["P"])
    install(world, third, "C", "D")
    world.kill("C")
    world.start("C")
    world.network.heal()
    world.run_for(60.0)
    install(world, third, "P")
    assert peer_of(world, "P").identity.incarnation == third["P"].incarnation
    publish(world, "P", "e2")
    world.run_for(20.0)
    assert delivered(world, "C") == ["e1"] * knows_the_earlier_one + ["e2"]
