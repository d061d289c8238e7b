"""What one member says can hurt itself, not the others."""

from __future__ import annotations

from dataclasses import replace

from qns.edl.messages import Envelope
from qns.edl.soundness import objection
from tests.edl.peers import peer_of, tell, world_of


def test_no_lie_about_epochs_makes_a_peer_unable_to_speak() -> None:
    world = world_of("A", "B")
    peer = peer_of(world, "A")
    hello = peer_of(world, "B").edl.hello("A")
    for epoch in (2**53 - 1, 2**40, 2**40 - 1):
        tell(peer, "B", replace(hello, held_epoch=epoch), world.now)
        (answer,) = tell(peer, "B", hello, world.now + 1).answers
        assert isinstance(answer, Envelope)
        assert objection(answer) is None
