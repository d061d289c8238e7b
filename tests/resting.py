"""The end of a simulated scenario: the world comes to rest and the judge finds no violation."""

from __future__ import annotations

from qns.history.judge import judge
from qns.simulation.rest import unrest
from qns.simulation.world import World


def comes_to_rest_and_holds(world: World, *, within_s: float = 60.0) -> None:
    """Heals the network, starts every peer, waits until the world is at rest and judges it."""
    world.network.heal()
    world.start()
    until = world.now + within_s
    while unrest(world) and world.now < until:
        world.run_for(0.5)
    assert unrest(world) is None
    world.history.append({"t": world.now, "do": "calm"})
    verdict = judge(world.history)
    assert verdict.holds, [each.explain() for each in verdict.violations]
