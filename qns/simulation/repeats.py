"""Repeats: which publications a Quality Factory repeats after a setback of its peer."""

from __future__ import annotations

from qns.simulation.ledger_entries import Publication
from qns.simulation.world import TUNING, World


def repeatable(world: World, org: str) -> list[Publication]:
    """Returns the acknowledged publications that the peer has forgotten.

    Left out are events that a consumer need not recognise (docs/guarantees.md): because it has
    started since, or may have them only on its disk, or remembers few events, or because late
    subscribers get them.
    """
    ledger, tuning = world.ledger, world.tuning
    others = [each for name, times in ledger.starts.items() if name != org for each in times]
    if world.absent or tuning.events_in_memory < TUNING.events_in_memory:
        return []
    if tuning.events_remembered < TUNING.events_remembered:
        return []
    return [
        each
        for each in ledger.publications.values()
        if each.org == org
        and each.asked_at > max(others, default=0.0)
        and ledger.is_undone(each)
        and not each.available_s
    ]
