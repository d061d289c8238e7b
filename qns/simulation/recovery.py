"""Recovery that is interrupted: a host dies between two steps of `Gateway.open`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from qns.peer.ports import Mark, Store
from qns.peer.tables import HISTORY, Row, Table
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

    def rows(self, table: Table[Row]) -> Iterator[Row]:
        if table is HISTORY:
            return iter(())
        return iter(self.store.rows(table))

    def commit(self, transaction: Transaction) -> None:
        self.interruption.next_step()
        kept, records = Transaction(), []
        for table, changes in transaction.changes():
            for key, row in changes.items():
                if table is HISTORY:
                    fields = json.loads(row.record)
                    records.append({k: v for k, v in fields.items() if k not in ("t", "org")})
                elif row is None:
                    kept.delete(table, *key)
                else:
                    kept.put(table, row)
        self.store.commit(kept)
        self.interruption.records += records

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)
