"""Simulated peers whose documents expire and are renewed at random: nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from qns.errors import Busy
from qns.federation.acceptance import Freshness, freshness
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument
from qns.simulation.signers import Signers
from qns.simulation.world import TUNING, World
from tests.edl.peers import delivered, federation, peer_of, publish, subscribe
from tests.federation.signing import at

NAMES = ("P", "F", "Z", "Y")
GRACE_S = 3.0


def renew(world: World, to: str, expires_s: float) -> None:
    """Puts a version with this expiry, perhaps with other root keys, in force at one peer."""
    world.change_document(world.federation.expiring(at(int(world.now + expires_s))))
    world.do(to, InstallDocument(write_federation(world.federation)))


def is_closed(world: World) -> bool:
    return freshness(world.federation, world.now, GRACE_S) is Freshness.CLOSED


@pytest.mark.parametrize("seed", range(7))
def test_nothing_is_lost_while_documents_expire_and_root_keys_rotate(seed: int) -> None:
    chance, signers = Random(seed), Signers(seed)
    tuning = replace(TUNING, document_grace_s=GRACE_S, bytes_per_call=1_000_000)
    world = World(seed, federation(*NAMES), tuning, signers=signers)
    world.start()
    world.run_for(1.0)
    for name in NAMES:
        subscribe(world, name)
    renew(world, "P", 4.0)
    world.run_for(2.0)
    published: list[str] = []
    refused = 0
    for number in range(120):
        world.run_for(chance.uniform(0.1, 1.0))
        if chance.random() < 0.06:
            renew(world, chance.choice(NAMES), chance.uniform(2.0, 8.0))
            continue
        is_late = is_closed(world)
        try:
            publish(world, chance.choice(NAMES), f"e{number}")
        except Busy:
            refused += 1
        else:
            published.append(f"e{number}")
            assert not is_late
    assert refused
    assert published
    assert signers.rotations
    renew(world, chance.choice(NAMES), 1e6)
    world.run_for(60.0)
    assert {peer_of(world, name).federation.version for name in NAMES} == {world.federation.version}
    for name in NAMES:
        assert sorted(delivered(world, name)) == sorted(published)
