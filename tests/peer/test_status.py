"""Status: the read-only view agrees with the components of the peer after small scenarios."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from qns.edl.merge_subscriptions_table import ViewState
from qns.edl.messages import Entry, Notify
from qns.iil.interpreter import interpret
from qns.iil.requests import AcknowledgeDeliveries
from qns.peer.peer import Peer
from qns.peer.status import InboundStatus, LinkWork, OutboundStatus, PeerStatus, ViewStatus
from qns.simulation.world import World
from tests.edl.peers import (
    OWNER,
    install,
    notification,
    peer_of,
    publish,
    send,
    subscribe,
    world_of,
    world_with_custody,
)


def delivering_world() -> World:
    """Returns a world in which C has received two available events of P."""
    world = world_of("P", "C", "D")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1", "e2", available=100)
    world.run_for(3.0)
    return world


def assert_agrees(peer: Peer) -> None:
    """Compares everything that the status counts with the components themselves."""
    status, iil, edl = peer.status, peer.iil, peer.edl
    assert (status.organisation, status.epoch) == (peer.me, peer.identity.epoch)
    assert (status.federation, status.is_member) == (peer.federation, peer.is_member)
    assert status.unreachable == edl.reachability.unreachable()
    assert status.subscriptions == len(status.local_subscriptions()) == len(iil.table)
    assert status.deliveries_waiting == sum(iil.dispatcher.depth(each.id) for each in iil.table)
    for each in iil.table:
        assert status.delivered(each.id) == each.delivered
    assert status.events_kept == len(peer.log)
    custody = edl.forwarder.custody
    assert status.custody == len(custody) == len(list(status.promises()))
    assert status.dead_letters == len(custody.dead_letters)
    streams = edl.consumer.streams
    assert status.early_entries == sum(len(each.early) for each in streams.values())
    assert {(each.producer, each.last) for each in status.inbound()} == {
        (producer, stream.last) for (producer, _), stream in streams.items()
    }
    assert {each.consumer: each.number for each in status.outbound()} == {
        consumer: stream.number for consumer, stream in edl.producer.streams.items()
    }
    views = {view.producer: view.version for view in edl.views()}
    assert {view.producer for view in status.views()} == views.keys()
    consumers = edl.producer.table.views
    assert status.external_elements == sum(len(status.external_view(name)) for name in consumers)
    assert {link.other for link in status.links()} == edl.forwarder.links.keys()


def test_status_agrees_with_the_components_after_a_delivery() -> None:
    world = delivering_world()
    for name in world.nodes:
        assert_agrees(peer_of(world, name))


def test_status_of_a_consumer_shows_its_users_and_streams() -> None:
    world = delivering_world()
    status = peer_of(world, "C").status
    assert (status.subscriptions, status.deliveries_waiting, status.delivered("s")) == (1, 2, 2)
    assert status.local_subscriptions() == [interpret("Report", world.federation.schema)]
    assert InboundStatus("P", last=2, early=0) in list(status.inbound())
    assert ViewStatus("P", 1, ViewState.IN_FORCE, has_pending=False) in list(status.views())
    world.do("C", AcknowledgeDeliveries(OWNER, "s", 1))
    assert status.deliveries_waiting == 1  # computed when it is read
    assert_agrees(peer_of(world, "C"))


def test_status_of_a_producer_shows_its_consumers_and_events() -> None:
    status = peer_of(delivering_world(), "P").status
    assert OutboundStatus("C", 2, 2, owed_events=0, lag_bytes=0) in list(status.outbound())
    assert all(each.lag_events == 0 for each in status.outbound())
    assert (status.external_elements, len(status.external_view("C"))) == (1, 1)
    assert (status.events_kept, status.unreachable) == (2, ())
    assert LinkWork("C", False, False, False, False) in list(status.links())


def test_status_shows_a_pending_subscription_and_its_unconfirmed_view() -> None:
    world = world_of("P", "C")
    world.network.cut("C", "P")
    subscribe(world, "C")
    world.run_for(0.5)
    status = peer_of(world, "C").status
    (view,) = status.views()
    assert (view.producer, view.elements, view.has_pending) == ("P", 1, True)
    assert view.state is not ViewState.IN_FORCE
    assert_agrees(peer_of(world, "C"))


def test_status_shows_lag_and_an_unreachable_consumer() -> None:
    world = delivering_world()
    world.kill("C")
    publish(world, "P", "e3")
    world.run_for(5.0)
    peer = peer_of(world, "P")
    assert peer.status.unreachable == ("C",)
    assert {each.consumer: each.lag_events for each in peer.status.outbound()} == {"C": 1, "D": 0}
    assert [link.other for link in peer.status.links() if link.is_resting] == ["C"]
    assert_agrees(peer)


def test_status_shows_custody_for_a_receiver_that_is_down() -> None:
    world = world_with_custody()
    peer = peer_of(world, "F")
    assert (peer.status.custody, list(peer.status.promises())) == (1, [("P", "Z")])
    (link,) = (link for link in peer.status.links() if link.other == "Z")
    assert link.is_asking
    assert_agrees(peer)


def test_status_shows_early_entries_and_the_timer_of_the_pull() -> None:
    world = world_of("P", "C", "D")
    item = notification("P", "e2", Entry("C", 1, 1, 2, 0), path=("P", "D"))
    send(world, "D", "C", Notify((item,)))
    world.run_for(0.1)
    peer = peer_of(world, "C")
    assert peer.status.early_entries == 1
    assert InboundStatus("P", last=0, early=1) in list(peer.status.inbound())
    assert [link.other for link in peer.status.links() if link.has_timer] == ["P"]
    assert_agrees(peer)


def test_status_follows_a_newer_federation_document() -> None:
    world = world_of("P", "C", "D")
    newer = world.federation.without("D")
    install(world, newer, "P", "D")
    world.run_for(30.0)
    status = peer_of(world, "C").status
    assert (status.federation.version, status.newest_document) == (newer.version, newer.version)
    assert status.is_member
    assert not peer_of(world, "D").status.is_member
    assert_agrees(peer_of(world, "C"))


def test_status_shows_who_cannot_reach_this_peer_and_why_calls_fail() -> None:
    world = world_of("P", "C", "D")
    world.network.cut("C", "P")  # one way
    subscribe(world, "C")
    world.run_for(60.0)
    assert peer_of(world, "C").status.problem_with("P") == "there was no answer"
    status = peer_of(world, "P").status
    assert (status.is_reached_by("C"), status.is_reached_by("D")) == (False, True)
    assert status.problem_with("D") == status.problem_with("unknown") == ""


def test_status_is_read_only() -> None:
    status = peer_of(world_of("P", "C"), "P").status
    for field in fields(PeerStatus):
        with pytest.raises(FrozenInstanceError):
            setattr(status, field.name, None)
    for name in ("epoch", "subscriptions", "custody"):
        # Python 3.11 raises TypeError for a frozen dataclass with slots.
        with pytest.raises((AttributeError, TypeError)):
            setattr(status, name, 0)
