"""Ports: what a peer needs from the outside.

The same peer runs on real adapters and on a simulated disk, network and clock. Each input brings
the time with it; the only randomness is the nonce of a start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.peer.tables import ALL, Key, Table
from qns.peer.turn import Transaction

Row = TypeVar("Row", bound=tuple[object, ...])


class Store(Protocol):
    """Durable tables. A transaction survives a crash once `commit` has returned."""

    def rows(self, table: Table[Row]) -> Iterable[Row]:
        """Yields every row, in the order of the keys."""

    def get(self, table: Table[Row], key: Key) -> Row | None:
        """Returns the row with this key, or None."""

    def scan(self, table: Table[Row], prefix: Key, after: int, limit: int) -> Sequence[Row]:
        """Returns rows in the order of their keys: `prefix`, then a number beyond `after`."""

    def last_before(self, table: Table[Row], bound: int) -> Row | None:
        """Returns the last row whose key begins with a number below `bound`, or None."""

    def find(
        self, table: Table[Row], column: str, value: object, limit: int = ALL
    ) -> Sequence[Row]:
        """Returns the first rows with this value in a column that has an index."""

    def commit(self, transaction: Transaction) -> None:
        """Writes the whole transaction, or nothing and raises; StoreFull if the disk is full."""

    def prepare(self, transaction: Transaction) -> Callable[[], None]:
        """Writes the rows and returns the function that waits for the disk.

        Another thread may call that function. The store is not used in between. Both steps raise
        what `commit` raises.
        """


class Mark(NamedTuple):
    """Identifies one epoch of a store, so that a copy of an older epoch is recognised."""

    epoch: int
    nonce: str
    turns: int = 0
    """The number of committed turns that the store had at least."""


class Lineage(Protocol):
    """The mark of the current epoch, kept outside the store and its backups."""

    def read(self) -> tuple[Mark, ...]:
        """Returns the marks that the store may carry: two if a change was interrupted."""

    def write(self, marks: tuple[Mark, ...]) -> None:
        """Replaces the marks durably."""

    def advance(self, mark: Mark) -> None:
        """Raises the number of turns of the mark with this nonce, if there is one.

        Another thread may call it while `write` is called.
        """


Id = TypeVar("Id")


class Index(Protocol[Id]):
    """A matching index: `qns.cbr.index.MatchingIndex`, or the plain one for small tables."""

    def insert(self, id: Id, subscription: Subscription, /) -> None: ...

    def insert_all(self, items: Iterable[tuple[Id, Subscription]], /) -> None: ...

    def delete(self, id: Id, /) -> None: ...

    def match(self, event: Event, /) -> list[Id]: ...

    def match_all(self, events: Sequence[Event], /) -> list[list[Id]]: ...
