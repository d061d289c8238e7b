"""Documents of simulated federations are signed, and their root keys rotate."""

from __future__ import annotations

from itertools import pairwise

import pytest

from qns.errors import QnsError
from qns.federation.acceptance import may_accept
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.iil.requests import InstallDocument
from qns.simulation.signers import Signers, draw_signers
from qns.simulation.world import World
from tests.edl.peers import federation, install, peer_of


def versions(seed: int) -> tuple[Signers, list[Federation]]:
    signers = Signers(seed)
    found = [signers.sign(federation("P", "F", "Z"))]
    for number in range(10):
        found.append(signers.sign(found[-1].with_capability("F", number + 5)))
    return signers, found


@pytest.mark.parametrize("seed", range(20))
def test_every_version_follows_the_one_before_and_the_anchor(seed: int) -> None:
    signers, documents = versions(seed)
    anchor = signers.anchor(documents[0])
    may_accept(documents[0], None, now=0, anchor=anchor)
    for old, new in pairwise(documents):
        may_accept(new, old, "a stranger", now=0, anchor=anchor)
    may_accept(documents[-1], documents[0], now=0, anchor=anchor)


def test_same_seed_gives_the_same_bytes() -> None:
    first, second = (
        [write_federation(each) for each in versions(3)[1]],
        [write_federation(each) for each in versions(3)[1]],
    )
    assert first == second
    assert any(signers.rotations for signers, _ in map(versions, range(5)))


def test_a_third_of_the_seeds_has_signed_documents() -> None:
    assert 60 < sum(draw_signers(seed) is not None for seed in range(300)) < 140


def test_simulated_peers_refuse_what_their_signers_did_not_sign() -> None:
    world = World(1, federation("P", "F", "Z"), signers=Signers(1))
    world.start()
    world.run_for(1.0)
    for change in (world.federation.without("Z"), world.federation.unsigned().without("Z")):
        with pytest.raises(QnsError, match="signed"):
            world.do("P", InstallDocument(write_federation(change)))
    world.change_document(world.federation.hosting("F", []))
    install(world, world.federation, "P")
    world.run_for(5.0)
    assert {peer_of(world, name).federation.version for name in "PFZ"} == {2}
