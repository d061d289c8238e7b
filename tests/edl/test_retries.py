"""Retries pause between attempts, and an event that cannot be delivered does not delay others."""

from __future__ import annotations

from dataclasses import replace

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Entry, Envelope, Notified, Notify, PullGap
from qns.federation.document_xml import write_federation
from qns.iil.requests import Publish
from qns.peer.inputs import Answered
from qns.simulation.world import World
from tests.edl.peers import (
    cut,
    delivered,
    federation,
    notification,
    peer_of,
    publish,
    send,
    subscribe,
    world_of,
)


def test_permanently_rejected_event_does_not_block_later_events() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    world.back_up("P")
    publish(world, "P", "e1")
    world.run_for(5.0)
    world.put_back("P", world.nodes["P"].backups[-1])
    world.run_for(20.0)
    cut(world, "P", "C")
    publish(world, "P", "e1")  # published again, because the restored peer has forgotten it
    world.run_for(5.0)
    world.network.heal()
    publish(world, "P", "e2")
    world.run_for(300.0)
    assert "e2" in delivered(world, "C")


def test_notifications_that_a_receiver_cannot_take_yet_do_not_delay_others() -> None:
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
            ("P", "p2", 1, 2),
            ("P", "p3", 2, 3),
            ("P", "p4", 3, 4),
            ("Q", "q1", 1, 1),
        )
    ]
    for item in items:
        send(world, item.source, "F", Notify((item,)))
    world.run_for(120.0)
    assert delivered(world, "C") == ["q1"]


def test_document_that_cannot_be_installed_is_not_fetched_in_a_tight_loop() -> None:
    world = World(1, federation("P", "C"))
    other = replace(federation("P", "C"), name="another federation", version=7)
    world.nodes["P"].document = write_federation(other)
    world.start()
    world.run_for(60.0)
    assert world.messages["FetchDocument"] < 60


def test_empty_reply_is_not_followed_by_the_same_request_without_a_pause() -> None:
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


def test_pull_that_fails_is_repeated_as_soon_as_the_link_works_again() -> None:
    world = world_of("P", "C", "D", pull_after_s=10.0)
    item = notification("P", "e2", Entry("C", 1, 1, 2, 0), path=("P", "D"))
    send(world, "D", "C", Notify((item,)))
    world.run_for(9.0)
    cut(world, "C", "P")
    world.run_for(3.0)
    world.network.heal()
    world.run_for(6.0)  # the next pull would be 20 s after the first one
    pulls = [each for each in world.traffic if isinstance(each[3], PullGap)]
    assert len(pulls) == 2
