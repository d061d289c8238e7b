"""Long chains in diffusion trees: many organisations that forward to one other each."""

from __future__ import annotations

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.merge_subscriptions_table import Digest
from qns.edl.messages import ChangeSub
from qns.iil.requests import Publish, Published
from qns.simulation.world import World
from tests.edl.peers import deliver_request, federation, lone_gateway, peer_of, subscribe, world_of


def test_publish_returns_all_receivers_of_a_chain_of_500_organisations() -> None:
    names = [f"Org{number:03}" for number in range(500)]
    gateway = lone_gateway(federation("P", *names, capability=1))
    text = next(iter(peer_of(_world_with_one_view(), "P").edl.producer.table.view("C")))
    change = ChangeSub(1, 1, 1, None, 1, (text,), (), str(Digest([text])))
    for name in names:
        deliver_request(gateway.peer, name, change, 1.0)
    event = EventReader(WEATHER).from_fields({"id": "e1", "class": "Report", "source": "P"})
    effects = gateway.run([Publish(event)], 2.0)
    assert effects.answers == [Published("e1", tuple(names))]


def _world_with_one_view() -> World:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    return world
