"""Lineage: how a peer detects at its start that its store is an old copy.

Every start begins a new epoch of the store and gives it a mark: the epoch and a nonce. The mark is
kept in the store and, through `ports.Lineage`, outside it. A store was restored from a copy if its
mark is not known outside. The store also counts its committed turns, and the mark outside has the
count of a moment ago: a store with fewer turns has lost commits, for example with its write-ahead
log, and counts as restored too. A peer that learns from others of later epochs of its own begins a
later one without a new mark outside: a known nonce with a later epoch is therefore known too. A
change of mark has three steps. If a crash comes between two of them, the next start neither takes
it for a restore nor forgets a restore:

1. `marks_to_write` are written outside.
2. The store commits `mark` together with the rows that the new epoch needs (after a restore: its
   fences).
3. `(mark,)` is written outside.

A backup is a copy, followed by the change that `rotate_nonce` plans, followed by the report that
the backup is done. From then on the mark of the copy is not known outside any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from qns.errors import ValueRefused
from qns.peer.ports import Mark

NEVER_STARTED: Final = Mark(0, "unborn")
"""Stands for the mark of a store without one, so that the first start may be interrupted too."""

EPOCH_SCATTER: Final = 2**16
"""Among how many candidates the epoch of a real peer is chosen."""

NOTE_EVERY_S: Final = 1.0
"""How often the number of committed turns is written outside. It is not written with each commit,
which would cost as much as the commit itself."""

LOST_EPOCHS: Final = 1_000_000
"""Added to the epoch if the marks outside are lost, so that no epoch is used twice."""


@dataclass(frozen=True, slots=True)
class MarkChange:
    """A planned change of mark; the module's docstring has its three steps."""

    mark: Mark
    marks_to_write: tuple[Mark, ...]
    restored: bool
    """True if the store is, or may be, a copy of an older epoch."""


def later_epoch(newest: int, nonce: str, scatter: int) -> int:
    """Returns an epoch after the newest one that is known: one of `scatter` candidates.

    If the store and the marks outside are rolled back together, nothing tells the peer that it has
    used epochs since. With a secret nonce it hardly ever uses one of them again.
    """
    digest = sha256(f"{newest} {nonce}".encode()).digest()
    return newest + 1 + int.from_bytes(digest[:8]) % scatter


def begin_epoch(
    stored: Mark | None, marks: tuple[Mark, ...], nonce: str, scatter: int = 1
) -> MarkChange:
    """Plans the next epoch of a store that carries `stored`, where `marks` are known outside."""
    before = NEVER_STARTED if stored is None else stored
    # A peer that learns of later epochs from others goes on beyond its mark, with the same nonce.
    is_known = any(
        mark.nonce == before.nonce and mark.epoch <= before.epoch and mark.turns <= before.turns
        for mark in marks
    )
    restored = not is_known and not (stored is None and not marks)
    newest = max(mark.epoch for mark in (before, *marks))
    # A new store begins with 1, so that others know a later epoch if an older store was lost.
    epoch = later_epoch(newest, nonce, scatter if newest else 1)
    if restored and not marks:
        epoch += LOST_EPOCHS
    mark = Mark(epoch, nonce, before.turns)
    # After a restore the old mark stays unknown outside: if this start is interrupted, the next one
    # detects the restore again.
    return MarkChange(mark, (mark,) if restored else (before, mark), restored)


def rotate_nonce(mark: Mark, nonce: str) -> MarkChange:
    """Plans another mark for the same epoch, so that copies made before are recognised."""
    if nonce == mark.nonce:
        raise ValueRefused("the new nonce is the old one", remedy="draw another")
    new = mark._replace(nonce=nonce)
    return MarkChange(new, (mark, new), restored=False)
