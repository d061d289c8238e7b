"""Evidence under simulated faults: what a peer has accepted has evidence whose links hold."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from qns.edl.merkle import root_of
from qns.edl.seal_texts import read_leaf
from qns.edl.seals import FINGERPRINT_BYTES
from qns.federation.document_xml import read_federation
from qns.peer.ports import Store
from qns.peer.tables import EVENTS, EVIDENCE, EVIDENCE_DOCUMENTS, SEALED_ROOTS
from qns.simulation.faults import FAULTS
from qns.simulation.scenario import Scenario
from qns.simulation.stub_seals import read_stub_certificate
from qns.simulation.workload import make_plan

SEEDS = range(1, 24, 2)  # the peers of odd seeds have seals

pytestmark = pytest.mark.slow


class KeepingScenario(Scenario):
    """A scenario whose peers keep evidence; at its end their stores are checked."""

    kept = 0

    def _play(self) -> list[str]:
        for node in self.world.nodes.values():
            node.settings = replace(node.settings, keep_evidence_s=1e9)
        violations = super()._play()
        for name, node in self.world.nodes.items():
            is_keeper = node.settings.keep_evidence_s is not None
            if node.gateway is not None and is_keeper and name not in self.world.liars:
                type(self).kept += check_store(name, node.gateway.store)
        return violations


def check_store(name: str, store: Store) -> int:
    """Returns how many events have evidence; raises AssertionError if a link is broken."""
    roots = {row.number: row for row in store.rows(SEALED_ROOTS)}
    documents = {row.version: read_federation(row.xml) for row in store.rows(EVIDENCE_DOCUMENTS)}
    kept: set[tuple[str, str]] = set()
    for row in store.rows(EVIDENCE):
        root, leaf = roots[row.root], read_leaf(row.leaf)
        assert root_of(row.leaf, row.proof) == root.root
        assert sha256(row.xml).digest() == leaf.digest
        assert (leaf.source, leaf.event, leaf.entry.receiver) == (root.source, row.event, name)
        seals = map(read_stub_certificate, documents[root.document][root.source].seals)
        assert root.seal[:FINGERPRINT_BYTES] in {seal.fingerprint for seal in seals}
        kept.add((leaf.source, leaf.event))
    accepted = {(row.source, row.id) for row in store.rows(EVENTS) if row.taken}
    assert {key for key in accepted if key[0] != name} <= kept
    return len(kept)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_was_accepted_has_evidence_after_all_faults(seed: int) -> None:
    result = KeepingScenario(make_plan(seed, 5, FAULTS)).run()
    assert not result.violations


def test_scenarios_have_kept_evidence() -> None:
    KeepingScenario(make_plan(SEEDS[0], 5, FAULTS)).run()
    assert KeepingScenario.kept
