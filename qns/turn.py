"""Turn: one batch of inputs, with the time it happens and all that it changes and tells.

Every component writes into the turn; nothing leaves the peer before the turn's transaction is
committed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qns.tables import Row, Table, Transaction

Record = dict[str, Any]


@dataclass(slots=True)
class Turn:
    now: float
    transaction: Transaction = field(default_factory=Transaction)
    records: list[Record] = field(default_factory=list)
    """What happened, for the history (docs/history.md); an event is still an `Event` here."""

    def put(self, table: Table[Row], row: Row) -> None:
        self.transaction.put(table, row)

    def delete(self, table: Table[Row], *key: object) -> None:
        self.transaction.delete(table, *key)

    def record(self, do: str, **fields: object) -> None:
        self.records.append({"do": do, **fields})
