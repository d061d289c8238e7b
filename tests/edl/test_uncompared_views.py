"""Views that a producer has forgotten through a rollback cost no event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import ChangeSub, Hello
from qns.peer.lineage import EPOCH_SCATTER
from qns.simulation.world import TUNING, World
from tests.edl.lone_peer import LonePeer
from tests.edl.peers import cut, delivered, federation, peer_of, publish, subscribe
from tests.edl.test_views_at_producers import element


def rolled_back_world(compare_within_s: float) -> World:
    """Returns a world in which P has forgotten C's view, without a trace in its store."""
    world = World(
        1,
        federation("P", "C", "D"),
        replace(TUNING, compare_within_s=compare_within_s),
        epoch_scatter=EPOCH_SCATTER,
    )
    world.start()
    world.run_for(5.0)
    world.snapshot("P")
    subscribe(world, "C")
    world.run_for(5.0)
    cut(world, "P", "C")
    world.put_back("P", world.nodes["P"].snapshots[-1])
    return world


def test_event_after_an_unnoticed_rollback_reaches_a_consumer_whose_view_is_forgotten() -> None:
    world = rolled_back_world(compare_within_s=600.0)
    assert not world.nodes["P"].gateway.restored  # type: ignore[union-attr]
    world.run_for(60.0)
    publish(world, "P", "e1")
    world.network.heal()
    world.run_for(60.0)
    publish(world, "P", "e2")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e1", "e2"]
    assert {record["to"] for record in world.history if record["do"] == "cross"} == {"C"}
    assert not peer_of(world, "P").edl.producer.uncompared


def test_silent_consumer_is_trusted_after_a_time() -> None:
    """A consumer that is away for a month is not owed everything because of a restart."""
    world = rolled_back_world(compare_within_s=30.0)
    world.run_for(31.0)
    publish(world, "P", "e1")
    world.network.heal()
    world.run_for(60.0)
    publish(world, "P", "e2")
    world.run_for(5.0)
    assert delivered(world, "C") == ["e2"]


def test_events_of_an_ordinary_restart_cross_only_to_interested_consumers() -> None:
    world = World(1, federation("P", "C", "D"), replace(TUNING, compare_within_s=600.0))
    world.start()
    subscribe(world, "C")
    world.run_for(5.0)
    world.kill("P")
    world.start("P")
    world.run_for(1.0)
    publish(world, "P", "e1")
    world.run_for(5.0)
    assert [record["to"] for record in world.history if record["do"] == "cross"] == ["C"]


@pytest.mark.parametrize("knows_the_epoch", [False, True])
def test_hello_from_before_a_start_does_not_compare_the_view(knows_the_epoch: bool) -> None:
    lone = LonePeer("P", federation("P", "C"), {"compare_within_s": 600.0})
    lone.start()
    epoch = lone.peer.identity.epoch if knows_the_epoch else 1
    hello = lone.hello_of("C", standing=lone.standing_of("C", 0, epoch=epoch))
    lone.receive("C", hello)
    assert ("C" in lone.peer.edl.producer.uncompared) is not knows_the_epoch


def test_view_that_changes_before_it_is_compared_is_compared_afterwards() -> None:
    lone = LonePeer("P", federation("P", "C"), {"compare_within_s": 600.0})
    lone.answer("C", lone.hello_of("C", version=1, digest="another"))
    assert lone.request("C") is None
    change = ChangeSub(1, 1, 1, None, 1, (element("Report"),), (), str(Digest([element("Report")])))
    lone.receive("C", change)
    assert "C" in lone.peer.edl.producer.uncompared
    assert isinstance(lone.request("C"), Hello)
