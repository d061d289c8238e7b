"""Audit: compares the ledger with what users read, with the history and with the traffic.

The judge of `qns/history` believes the records of the peers. The audit believes only what the
simulator saw itself: the answers that left the peers, what users read, the messages that were sent,
and what the world did.
"""

from __future__ import annotations

from typing import Final

from qns.history.verdict import Rule
from qns.simulation import (
    answers,
    broken_disks,
    calm_traffic,
    causes,
    declared,
    lie_bounds,
    owed,
    readers,
    reading,
    rights,
    twin_rules,
)
from qns.simulation.answers import Answers
from qns.simulation.calm_traffic import judge_calm_traffic
from qns.simulation.causes import Causes
from qns.simulation.declared import Declared
from qns.simulation.disk_faults import ROT
from qns.simulation.findings import Findings
from qns.simulation.owed import Owed
from qns.simulation.reading import Reading
from qns.simulation.rest import QUIET
from qns.simulation.rights import judge_rights
from qns.simulation.world import World

AUDITED: Final = (
    owed.RULE,
    reading.RULE,
    *readers.RULES,
    answers.RULE,
    *causes.RULES,
    declared.RULE,
    *calm_traffic.RULES,
    rights.RULE,
)
"""The rules of the audit."""

NEEDED_FAULTS: Final = {
    str(Rule.CUSTODY): {"gone"},
    QUIET: {"lasting"},
    causes.SKIP: {"restore"},
    causes.DROP: {"retention", "partition"},
    causes.OVERFLOW: {"overflow"},
    causes.REWIND: {"restore"},
    causes.LINEAGE: {"restore"},
    declared.RULE: {"restore"},
    readers.CURSOR: {"restore"},
    twin_rules.TWIN: {"twin"},
    broken_disks.DAMAGE: {ROT},
    rights.RULE: {"rights"},
    **{rule: {"liar"} for rule in lie_bounds.RULES},
}
"""Rule -> the faults without which it may have nothing to decide; the other rules need none."""


def audit(world: World, *, came_to_rest: bool, has_faults: bool) -> Findings:
    """Judges a world that was played to its end.

    What is owed and what is declared is judged only if the world came to rest and every user has
    read everything.
    """
    findings, ledger = Findings(), world.ledger
    if came_to_rest:
        Owed(ledger, findings, world.now).judge()
        setbacks = frozenset(
            node.name
            for node in world.nodes.values()
            if node.gateway is not None and node.gateway.status.setback is not None
        )
        Declared(ledger, world.history, findings, setbacks).judge()
    Reading(ledger, findings).judge()
    Answers(ledger, world.history, findings).judge()
    unjudged = world.liars | world.twins.keys()
    Causes(ledger, world.history, findings, frozenset(unjudged)).judge()
    judge_calm_traffic(world, findings, has_faults=has_faults)
    judge_rights(world, findings, unjudged)
    return findings
