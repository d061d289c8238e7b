"""Lives: how a peer notices at its start that its store is an old copy.

Every start begins a new life of the store and gives it a mark: an epoch, counted, and a nonce. The
mark is kept in the store and, by a `ports.Lineage`, outside it. A store whose mark is not known
outside was put back from a copy. A change of mark takes three steps in this order, and a crash
between two of them is never mistaken for a restore, nor a restore forgotten:

1. `marks_to_write` are written outside;
2. the store commits `mark`, with everything that the new life needs (after a restore: its fences);
3. `(mark,)` is written outside.

A backup is a copy, then a change to `rotated(…)`, then the report that the backup is done: by then
the copy's mark is known no longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qns.errors import ValueRefused
from qns.ports import Mark

UNBORN: Final = Mark(0, "unborn")
"""What a store without a mark counts as, so that the first start may be cut short as well."""

LOST_EPOCHS: Final = 1_000_000
"""How far the epoch jumps if nobody knows how many lives there have been."""


@dataclass(frozen=True, slots=True)
class Life:
    mark: Mark
    marks_to_write: tuple[Mark, ...]
    restored: bool
    """The store is a copy of an older life, or may be one."""


def begin_life(stored: Mark | None, marks: tuple[Mark, ...], nonce: str) -> Life:
    """The next life of a store that carries `stored`, where `marks` are known outside."""
    before = UNBORN if stored is None else stored
    restored = before not in marks and not (stored is None and not marks)
    epoch = max(mark.epoch for mark in (before, *marks)) + 1
    if restored and not marks:
        epoch += LOST_EPOCHS
    mark = Mark(epoch, nonce)
    # After a restore the old mark stays unknown: if this start is cut short, the next one still
    # finds that the store was restored.
    return Life(mark, (mark,) if restored else (before, mark), restored)


def rotated(mark: Mark, nonce: str) -> Life:
    """The same life under another mark: what was copied before is told apart from it."""
    if nonce == mark.nonce:
        raise ValueRefused("the new nonce is the old one", remedy="draw another")
    new = Mark(mark.epoch, nonce)
    return Life(new, (mark, new), restored=False)
