"""Disk faults: draws syncs that fail, power cuts and bits that change."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from qns.simulation.actions import CHAOS_S, Action

FAILING_SYNC: Final = "failing-sync"
ROT: Final = "rot"
KINDS: Final = ("fail-syncs", "cut-power", "rot")
"""The kinds of actions that need a disk of real files."""
_MOVING: Final = ("leave", "rejoin", "gone")


def draw_disk_faults(
    seed: int, names: list[str], faults: Iterable[str], actions: Iterable[Action]
) -> list[Action]:
    """Draws these faults, each with draws of its own."""
    chosen, found = frozenset(faults), []
    if FAILING_SYNC in chosen:
        found += _failing_syncs(Random(f"{FAILING_SYNC} {seed}"), names)  # noqa: S311
    if ROT in chosen:
        moving = {each.org for each in actions if each.kind in _MOVING}
        staying = [name for name in names if name not in moving]
        found += _rot(Random(f"{ROT} {seed}"), staying)  # noqa: S311
    return found


def _failing_syncs(chance: Random, names: list[str]) -> list[Action]:
    """Draws syncs that fail, and power cuts soon after most of them, some in the next commits."""
    found = []
    for _ in range(chance.choice((0, 0, 0, 1, 3))):
        at, org = chance.uniform(1.0, CHAOS_S * 0.9), chance.choice(names)
        fields: dict[str, object] = {
            "times": chance.choice((1, 1, 2, 3)),
            "kept": chance.random() < 0.6,
        }
        if chance.random() < 0.3:
            fields["operations_until_cut"] = chance.randrange(40)
        found.append(Action(at, "fail-syncs", org, fields))
        if chance.random() < 0.7:
            down: dict[str, object] = {"down_s": chance.choice((0.1, 1.0, 4.0))}
            later = at + chance.choice((0.3, 1.5, 3.0, 8.0))
            found.append(Action(min(later, CHAOS_S * 0.95), "cut-power", org, down))
    return found


def _rot(chance: Random, names: list[str]) -> list[Action]:
    """Draws bits that change, in the file or in its log, while a peer runs or is down."""
    found: list[Action] = []
    for _ in range(chance.choice((0, 0, 0, 1, 2)) if names else 0):
        at, org = chance.uniform(2.0, CHAOS_S * 0.8), chance.choice(names)
        if chance.random() < 0.6:
            found.append(Action(at - chance.uniform(0.5, 1.9), "backup", org))
        fields: dict[str, object] = {
            "pages": chance.choice((1, 2, 5)),
            "bits": chance.choice((1, 3, 50)),
        }
        # The store does not detect two changed bits in its last transaction (docs/store.md).
        is_first = all(each.org != org or each.kind != "rot" for each in found)
        if is_first and chance.random() < 0.3:
            fields["in_log"] = True
        if chance.random() < 0.6:
            fields["down_s"] = chance.choice((0.1, 1.0, 4.0))
        found.append(Action(at, "rot", org, fields))
    return found
