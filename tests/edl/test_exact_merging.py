"""Exact merging as a setting of a peer: what producers hold, and what users get."""

from __future__ import annotations

from dataclasses import replace

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.iil.requests import Publish, Unsubscribe
from qns.simulation.world import World
from tests.edl.peers import OWNER, delivered, peer_of, subscribe, world_of

NORTH = 'Report where Region = "north"'
SOUTH = 'Report where Region = "south"'


def set_exact(world: World, name: str, is_exact: bool) -> None:
    """Restarts a peer with another setting."""
    node = world.nodes[name]
    world.kill(name)
    node.settings = replace(node.settings, exact_merging=is_exact)
    world.start(name)
    world.run_for(10.0)


def publish(world: World, id: str, region: str) -> None:
    """Publishes an event at P that late subscribers get too."""
    fields = {
        "id": id,
        "class": "Report",
        "source": "P",
        "available": "INF",
        "data": {"Region": region},
    }
    world.do("P", Publish(EventReader(WEATHER).from_fields(fields)))
    world.run_for(2.0)


def elements_at(world: World, producer: str, consumer: str) -> int:
    return len(peer_of(world, producer).status.external_view(consumer))


def test_producer_holds_one_element_for_two_users_who_differ_in_one_attribute() -> None:
    world = world_of("P", "C")
    set_exact(world, "C", True)
    subscribe(world, "C", "north", NORTH)
    subscribe(world, "C", "south", SOUTH)
    world.run_for(10.0)
    assert elements_at(world, "P", "C") == 1
    assert not peer_of(world, "C").iil.has_pending("P")


def test_changed_setting_reaches_the_producers_after_a_restart() -> None:
    world = world_of("P", "C")
    subscribe(world, "C", "north", NORTH)
    subscribe(world, "C", "south", SOUTH)
    world.run_for(10.0)
    assert elements_at(world, "P", "C") == 2
    set_exact(world, "C", True)
    assert elements_at(world, "P", "C") == 1
    set_exact(world, "C", False)
    assert elements_at(world, "P", "C") == 2


def test_every_user_gets_each_event_once_while_elements_are_merged_and_parted() -> None:
    world = world_of("P", "C")
    set_exact(world, "C", True)
    subscribe(world, "C", "north", NORTH)
    publish(world, "n1", "north")
    publish(world, "s1", "south")
    subscribe(world, "C", "south", SOUTH)  # merged: P sends only what C has not had
    publish(world, "n2", "north")
    publish(world, "s2", "south")
    assert elements_at(world, "P", "C") == 1
    assert delivered(world, "C", "north") == ["n1", "n2"]
    assert delivered(world, "C", "south") == ["s1", "s2"]
    world.do("C", Unsubscribe(OWNER, "north"))  # the merge is undone
    publish(world, "n3", "north")
    publish(world, "s3", "south")
    assert delivered(world, "C", "south") == ["s1", "s2", "s3"]
    (element,) = peer_of(world, "P").status.external_view("C").values()
    assert "south" in str(element.constraints)
    assert "north" not in str(element.constraints)
