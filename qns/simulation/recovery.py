"""Recovery that is interrupted: a host dies between two steps of `Gateway.open`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from qns.peer.ports import Mark, Store
from qns.peer.tables import HISTORY
from qns.peer.turn import Record, Transaction
from qns.store.lineage import MemoryLineage


class Killed(Exception):
    """Raised when the process dies in a turn or in its recovery."""


@dataclass(slots=True)
class Interruption:
    """Counts the writes of a recovery, and kills the process when `step` of them are done.

    The steps: the marks that may come next are written outside the store, the store is read, the
    epoch is committed, the mark is written outside the store.
    """

    step: int
    records: list[Record] = field(default_factory=list)
    """What the recovery has committed, for the history."""
    _done: int = 0

    def next_step(self) -> None:
        if self._done >= self.step:
            raise Killed
        self._done += 1


@dataclass(slots=True)
class InterruptedLineage:
    lineage: MemoryLineage
    interruption: Interruption

    def read(self) -> tuple[Mark, ...]:
        return self.lineage.read()

    def write(self, marks: tuple[Mark, ...]) -> None:
        self.interruption.next_step()
        self.lineage.write(marks)

    def advance(self, mark: Mark) -> None:
        self.lineage.advance(mark)


@dataclass(slots=True)
class InterruptedStore:
    """A store whose commits are steps. Its records go to the history, as a real peer's would."""

    store: Store
    interruption: Interruption

    def commit(self, transaction: Transaction) -> None:
        self.interruption.next_step()
        self.store.commit(transaction)
        self.interruption.records += records_of(transaction)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def records_of(transaction: Transaction) -> list[Record]:
    """Returns the records that a peer has added to its transaction, as a turn has them."""
    rows = dict(transaction.changes()).get(HISTORY, {})
    fields = [json.loads(row.record) for _, row in sorted(rows.items())]
    return [{k: v for k, v in each.items() if k not in ("t", "org")} for each in fields]
