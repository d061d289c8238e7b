"""Turn: one batch of inputs, with its time and everything that it changes.

Every component writes into the turn: rows into its transaction, records for the history, outcomes
for whoever drives the peer. Nothing leaves the peer before the transaction is committed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from qns.peer.outcomes import Incident, IncidentKind, Outcomes
from qns.peer.tables import Key, Row, Table

Record = dict[str, Any]
Stopwatch = Callable[[], float]
"""Returns seconds that only grow. It serves to measure; nothing that a peer does depends on it."""
_NO_CHANGES: Final[Mapping[Key, Any]] = {}


class Transaction:
    """Rows to put and keys to delete. The last change of a row counts."""

    def __init__(self) -> None:
        self._changes: defaultdict[Table[Any], dict[Key, Any]] = defaultdict(dict)
        self._keys_by_value: dict[tuple[Table[Any], str], defaultdict[object, set[Key]]] = {}
        """(table, column) -> value -> the keys of rows that were put with it. It is made when
        `keys_with` is called first, because most turns need none."""

    def __bool__(self) -> bool:
        return bool(self._changes)

    def put(self, table: Table[Row], row: Row) -> None:
        key = row[: table.key]
        self._changes[table][key] = row
        if self._keys_by_value:
            for (indexed, column), keys in self._keys_by_value.items():
                if indexed is table:
                    keys[getattr(row, column)].add(key)

    def delete(self, table: Table[Row], *key: object) -> None:
        self._changes[table][key] = None

    def add(self, later: Transaction) -> None:
        """Adds the changes of a later transaction, which override those of this one."""
        for table, changes in later._changes.items():
            self._changes[table].update(changes)

    def of(self, table: Table[Row]) -> Mapping[Key, Row | None]:
        """Returns the changes of one table: key -> the new row, or None where it is deleted."""
        return self._changes.get(table, _NO_CHANGES)

    def keys_with(self, table: Table[Row], column: str, value: object) -> Iterable[Key]:
        """Returns the keys of rows that were put with this value in the column.

        Some of these rows may have been changed or deleted later.
        """
        keys = self._keys_by_value.get((table, column))
        if keys is None:
            keys = self._keys_by_value[table, column] = defaultdict(set)
            for key, row in self.of(table).items():
                if row is not None:
                    keys[getattr(row, column)].add(key)
        return keys.get(value, ())

    def changes(self) -> Iterator[tuple[Table[Any], dict[Key, Any]]]:
        """Yields for each table: key -> the new row, or None where the row is deleted."""
        yield from self._changes.items()


def no_stopwatch() -> float:
    """Measures nothing, so that a simulated peer needs no clock."""
    return 0.0


@dataclass(slots=True)
class Turn:
    now: float
    stopwatch: Stopwatch = no_stopwatch
    costs: dict[str, float] = field(default_factory=dict)
    """Member -> the seconds that its requests have taken in this turn."""
    transaction: Transaction = field(default_factory=Transaction)
    records: list[Record] = field(default_factory=list)
    """What happened, for the history (docs/history.md). An event is still an `Event` here."""
    _outcomes: Outcomes | None = None
    """Made when the first outcome is added, because most turns have none."""

    @property
    def outcomes(self) -> Outcomes:
        if self._outcomes is None:
            self._outcomes = Outcomes()
        return self._outcomes

    @property
    def has_outcomes(self) -> bool:
        return self._outcomes is not None

    def charge(self, member: str, begun: float) -> None:
        """Adds the time since `begun` on the stopwatch to what the member has cost."""
        self.costs[member] = self.costs.get(member, 0.0) + self.stopwatch() - begun

    def charge_all(self, members: Sequence[str], begun: float) -> None:
        """Divides the time since `begun` among the members; each occurs as often as it counts."""
        part = (self.stopwatch() - begun) / max(1, len(members))
        for member, times in Counter(members).items():
            self.costs[member] = self.costs.get(member, 0.0) + part * times

    def put(self, table: Table[Row], row: Row) -> None:
        self.transaction.put(table, row)

    def delete(self, table: Table[Row], *key: object) -> None:
        self.transaction.delete(table, *key)

    def record(self, do: str, **fields: object) -> None:
        self.records.append({"do": do, **fields})

    def report(self, kind: IncidentKind, **fields: object) -> None:
        """Records an incident and adds it to the outcomes, so that an operator sees it."""
        self.records.append({"do": kind.value, **fields})
        self.outcomes.incidents.append(Incident(kind, fields))

    def warn(self, kind: IncidentKind, **fields: object) -> None:
        """Adds an incident to the outcomes that has no record of this name."""
        self.outcomes.incidents.append(Incident(kind, fields))
