"""Stamping: which sealed roots get the next timestamp, and the rows that keep it.

Roots get their timestamps in the order in which they were kept, so that the last timestamp says
which have none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from qns.edl.merkle import tree_of
from qns.evidence.timestamps import leaf_of
from qns.peer.ports import Store
from qns.peer.tables import ALL, SEALED_ROOTS, TIMESTAMPS, SealedRootRow, TimestampRow
from qns.peer.turn import Transaction

MOST_ROOTS: Final = 1_000
"""The most roots that one timestamp is for."""


class Batch(NamedTuple):
    rows: tuple[SealedRootRow, ...]
    """Roots without a timestamp, the oldest first."""
    root: bytes
    """The root of their tree."""
    proofs: tuple[bytes, ...]


def next_batch(store: Store) -> Batch | None:
    """Returns the oldest roots without a timestamp; None if every root has one."""
    last = store.last_before(TIMESTAMPS, ALL)
    rows = store.scan(SEALED_ROOTS, (), 0 if last is None else last.last_root, MOST_ROOTS)
    if not rows:
        return None
    root, proofs = tree_of([leaf_of(row.root, row.seal) for row in rows])
    return Batch(tuple(rows), root, tuple(proofs))


def keep_timestamp(store: Store, batch: Batch, response: bytes) -> None:
    """Commits the timestamp of a batch; roots that were deleted meanwhile stay deleted."""
    last = store.last_before(TIMESTAMPS, ALL)
    number = 1 if last is None else last.number + 1
    transaction = Transaction()
    transaction.put(TIMESTAMPS, TimestampRow(number, batch.rows[-1].number, batch.root, response))
    for row, proof in zip(batch.rows, batch.proofs, strict=True):
        if store.get(SEALED_ROOTS, (row.number,)) is not None:
            stamped = row._replace(timestamp=number, timestamp_proof=proof)
            transaction.put(SEALED_ROOTS, stamped)
    store.commit(transaction)
