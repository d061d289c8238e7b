"""A peer whose store went back in time unnoticed learns it from what other members have."""

from __future__ import annotations

import pytest

from qns.edl.messages import Hello
from qns.iil.requests import Unsubscribe
from qns.peer.lineage import EPOCH_SCATTER
from qns.peer.outcomes import IncidentKind
from qns.simulation.world import World
from tests.edl.peers import cut, delivered, federation, peer_of, publish, subscribe

SEEDS = range(6)


def world_with_snapshot(seed: int, name: str) -> World:
    """Returns a world in which C has subscribed, and the host `name` was copied after that."""
    world = World(seed, federation("P", "C", "D"), epoch_scatter=EPOCH_SCATTER)
    world.start()
    subscribe(world, "C")
    world.run_for(5.0)
    world.snapshot(name)
    return world


def roll_back(world: World, name: str) -> None:
    """Puts the host back together with its marks, so that nothing on it shows the rollback."""
    world.put_back(name, world.nodes[name].snapshots[-1])
    gateway = world.nodes[name].gateway
    assert gateway is not None
    assert not gateway.restored


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("publishes_first", [False, True])
def test_rolled_back_producer_reports_the_setback_once_a_consumer_answers(
    seed: int, publishes_first: bool
) -> None:
    world = world_with_snapshot(seed, "P")
    publish(world, "P", "e1", "e2", "e3")
    world.run_for(5.0)
    roll_back(world, "P")
    if publishes_first:  # so that C may learn the new epoch from a notification
        publish(world, "P", "f1")
    world.run_for(30.0)
    assert peer_of(world, "P").setback is IncidentKind.OWN_COPY
    assert list(peer_of(world, "C").status.set_back_producers()) == ["P"]
    assert peer_of(world, "C").setback is None
    publish(world, "P", "f2")
    world.run_for(10.0)
    assert delivered(world, "C") == ["e1", "e2", "e3", *["f1"] * publishes_first, "f2"]


def test_setback_is_reported_though_the_reply_with_its_proof_was_lost() -> None:
    world = world_with_snapshot(1, "P")
    publish(world, "P", "e1")
    world.run_for(5.0)
    cut(world, "C", "P")
    roll_back(world, "P")
    world.run_for(1.0)
    world.network.heal()
    world.run_for(30.0)
    assert peer_of(world, "P").setback is IncidentKind.OWN_COPY


def test_views_of_all_consumers_are_lost_once_one_of_them_shows_the_setback() -> None:
    world = world_with_snapshot(1, "P")
    subscribe(world, "D")  # P forgets the view of D
    world.run_for(5.0)
    publish(world, "P", "e1")
    world.run_for(5.0)
    world.network.cut("D", "P")
    world.network.cut("P", "D")
    world.network.cut("D", "C")
    world.network.cut("C", "D")
    roll_back(world, "P")
    world.run_for(world.tuning.compare_within_s + 60.0)  # D is away for longer
    publish(world, "P", "f1")
    world.network.heal()
    world.run_for(60.0)
    assert delivered(world, "D") == ["e1", "f1"]


@pytest.mark.parametrize("seed", SEEDS)
def test_rolled_back_consumer_reports_the_setback_if_a_producer_has_a_later_view(
    seed: int,
) -> None:
    world = world_with_snapshot(seed, "C")
    subscribe(world, "C", "t", "only Report")
    subscribe(world, "C", "u", "Report/Wind")
    world.do("C", Unsubscribe("user", "s"))  # so that the view changes
    world.run_for(5.0)
    roll_back(world, "C")
    world.run_for(30.0)
    assert peer_of(world, "C").setback is IncidentKind.OWN_COPY
    assert peer_of(world, "P").setback is None


@pytest.mark.parametrize("seed", SEEDS)
def test_restarts_and_lost_messages_show_no_setback(seed: int) -> None:
    world = world_with_snapshot(seed, "P")
    for round_ in range(4):
        publish(world, "P", f"e{round_}")
        cut(world, "P", "C")
        publish(world, "P", f"f{round_}")
        world.kill("P")
        world.kill("C")
        world.start("P")
        world.start("C")
        world.network.heal()
        world.run_for(20.0)
    assert peer_of(world, "P").setback is None
    assert peer_of(world, "C").setback is None
    assert not peer_of(world, "C").status.set_back_producers()


def test_hello_with_the_present_standing_follows_the_one_with_the_proof() -> None:
    world = world_with_snapshot(1, "P")
    publish(world, "P", "e1")
    world.run_for(5.0)
    roll_back(world, "P")
    world.run_for(30.0)
    hellos = [
        body
        for _, sender, to, body in world.traffic
        if isinstance(body, Hello) and (sender, to) == ("C", "P")
    ]
    assert hellos[-1].standing.epoch == peer_of(world, "P").identity.epoch
    assert not peer_of(world, "P").edl.producer.uncompared
    assert not peer_of(world, "C").edl.consumer.testimonies


def test_reports_of_links_from_a_forgotten_epoch_are_replaced() -> None:
    """Otherwise trees and relays of the others avoid a link that works, for ever."""
    world = World(1, federation("P", "C", "D"))
    world.start()
    world.run_for(5.0)
    world.snapshot("P")
    for _ in range(3):  # P reports the broken link in an epoch that it will forget
        world.kill("P")
        world.start("P")
        world.run_for(5.0)
    cut(world, "P", "D")
    world.run_for(30.0)
    assert not peer_of(world, "C").edl.reachability.reaches("P", "D")
    roll_back(world, "P")
    world.network.heal()
    world.run_for(60.0)
    assert peer_of(world, "C").edl.reachability.reaches("P", "D")
