"""The table of all mutants, and the tests that are run against each."""

from __future__ import annotations

from typing import Final

from tests.mutants.connections import CONNECTIONS
from tests.mutants.consumers import CONSUMERS
from tests.mutants.diffusion import DIFFUSION
from tests.mutants.evidences import EVIDENCE
from tests.mutants.forwarders import FORWARDERS
from tests.mutants.intakes import INTAKES
from tests.mutants.members import MEMBERS
from tests.mutants.mutant import Mutant
from tests.mutants.peers import PEERS
from tests.mutants.producers import PRODUCERS
from tests.mutants.quotas import QUOTAS
from tests.mutants.rights import RIGHTS
from tests.mutants.sealing import SEALS
from tests.mutants.signed_documents import SIGNED_DOCUMENTS
from tests.mutants.storage import STORAGE
from tests.mutants.streams import STREAMS
from tests.mutants.users import USERS
from tests.mutants.views import VIEWS

MUTANTS: Final[tuple[Mutant, ...]] = (
    *PRODUCERS,
    *STREAMS,
    *CONSUMERS,
    *INTAKES,
    *VIEWS,
    *FORWARDERS,
    *DIFFUSION,
    *USERS,
    *PEERS,
    *STORAGE,
    *MEMBERS,
    *SIGNED_DOCUMENTS,
    *CONNECTIONS,
    *SEALS,
    *QUOTAS,
    *EVIDENCE,
    *RIGHTS,
)

_PROTOCOL: Final = (
    "tests/edl/test_rights.py",
    "tests/edl/test_seals.py",
    "tests/edl/test_forged_floods.py",
    "tests/edl/test_merkle.py",
    "tests/peer/test_sealed_peers.py",
    "tests/evidence/test_keeping.py",
    "tests/evidence/test_verification.py",
    "tests/edl/test_adoption.py",
    "tests/edl/test_consumers_and_epochs.py",
    "tests/edl/test_resending.py",
    "tests/edl/test_skips_and_gaps.py",
    "tests/edl/test_views_at_producers.py",
    "tests/edl/test_restored_peers.py",
    "tests/edl/test_uncompared_views.py",
    "tests/edl/test_repeated_publications.py",
    "tests/edl/test_lying_members.py",
    "tests/edl/test_twins.py",
    "tests/edl/test_large_views.py",
    "tests/edl/test_leaving_and_returning.py",
    "tests/peer/test_gateway.py",
    "tests/peer/test_recovery.py",
    "tests/peer/test_signed_documents.py",
)
_USERS: Final = (
    "tests/iil/test_delivery_groups.py",
    "tests/iil/test_group_leases.py",
    "tests/iil/test_pausing.py",
    "tests/iil/test_stability.py",
    "tests/iil/test_subscribing.py",
    "tests/iil/test_availability.py",
    "tests/iil/test_cursors.py",
    "tests/edl/test_consumers_and_epochs.py",
    "tests/peer/test_recovery.py",
)
_MARKS: Final = ("tests/store/test_mark_changes.py", "tests/runtime/test_driver.py")
_TRUST: Final = ("tests/federation", "tests/peer/test_signed_documents.py")
_VIEWS: Final = ("tests/cbr/test_producer_views.py", "tests/edl/test_merger.py")
_TESTS: Final = {
    "qns/cbr": (_VIEWS, ("tests/cbr", "tests/edl")),
    "qns/federation": (_TRUST, ("tests/peer",)),
    "qns/edl": (_PROTOCOL, ("tests/edl", "tests/peer", "tests/iil")),
    "qns/evidence": (("tests/evidence",), ("tests/cli/commands/test_evidence.py",)),
    "qns/iil": (_USERS, ("tests/iil", "tests/peer", "tests/edl")),
    "qns/peer": (
        (*_PROTOCOL, "tests/peer/test_event_log.py", *_MARKS),
        ("tests/peer", "tests/iil", "tests/edl"),
    ),
    "qns/store": (("tests/store/test_files.py",), ("tests/store", "tests/peer/test_gateway.py")),
    "qns/runtime": (
        (
            "tests/runtime/test_driver.py",
            "tests/runtime/test_clock.py",
            "tests/runtime/test_quotas.py",
            "tests/runtime/test_sequencer.py",
        ),
        (
            "tests/runtime/test_tls.py",
            "tests/runtime/test_tls_changes.py",
            "tests/runtime/test_attacks.py",
        ),
    ),
}
"""Room -> the tests that notice most of its bugs quickly; then all, also of its neighbours."""
STATIC: Final = ("tests/peer/test_encapsulation.py", "tests/peer/test_layers.py")
"""Tests that read the source only; they cannot notice a bug."""


def concerned_tests(mutant: Mutant) -> tuple[tuple[str, ...], ...]:
    """Returns the files and folders of the tests that concern the mutant's room, in stages."""
    return _TESTS["/".join(mutant.file.split("/")[:2])]


def is_simulated(mutant: Mutant) -> bool:
    """True if simulated federations run the mutated code."""
    return not mutant.file.startswith(
        ("qns/runtime", "qns/store", "qns/evidence")
    ) or mutant.file.endswith("memory.py")
