"""Ports: what a peer needs from the world, and nothing else.

The same peer runs between real adapters or a simulated disk, network and clock. Time comes in with
each input; randomness only as the nonce of a start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.tables import Table, Transaction

Row = TypeVar("Row", bound=tuple[object, ...])


class Store(Protocol):
    """Durable tables. What `commit` has returned from survives a crash."""

    def rows(self, table: Table[Row]) -> Iterable[Row]:
        """Every row, in the order of its key."""

    def commit(self, transaction: Transaction) -> None:
        """All of it, or nothing and an error: StoreFull if there is no room for it."""

    def prepare(self, transaction: Transaction) -> Callable[[], None]:
        """A commit in two steps, the second of which another thread can do: it waits for the disk.

        Nothing else is asked of the store in between. Either step fails as `commit` does.
        """


class Mark(NamedTuple):
    """Which life of a store this is: a copy of an older life carries another mark."""

    epoch: int
    nonce: str


class Lineage(Protocol):
    """The mark of the store's current life, kept outside the store and its backups."""

    def read(self) -> tuple[Mark, ...]:
        """The marks that the store may carry: one, or two if a change was cut short."""

    def write(self, marks: tuple[Mark, ...]) -> None:
        """Replaces them, durably."""


Id = TypeVar("Id")


class Index(Protocol[Id]):
    """A matching index: `qns.cbr.index.MatchingIndex`, or the plain one for small tables."""

    def insert(self, id: Id, subscription: Subscription, /) -> None: ...

    def delete(self, id: Id, /) -> None: ...

    def match(self, event: Event, /) -> list[Id]: ...

    def match_all(self, events: Sequence[Event], /) -> list[list[Id]]: ...
