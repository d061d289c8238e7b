"""Simulated disks: the production stores in memory. They survive crashes and can be restored.

`qns.store.losing_disk` has the disk of seeds in which syncs fail or bits change.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random

from qns.errors import StoreFull
from qns.peer.turn import Transaction
from qns.simulation.node import Disk
from qns.store.losing_disk import LosingDisk
from qns.store.memory import MemorySnapshot, MemoryStore
from qns.store.sqlite import SqliteSnapshot, SqliteStore

_names = count()


class _FillableStore(MemoryStore):
    """A store whose next commit can be made to fail."""

    full_next = False

    def commit(self, transaction: Transaction) -> None:
        if self.full_next:
            self.full_next = False
            raise StoreFull("the disk is full")
        super().commit(transaction)


class _FaultlessDisk:
    """A disk on which every commit is written as a whole or not at all."""

    def take_survived(self) -> list[Transaction]:
        return []

    def heal(self) -> None:
        pass


class MemoryDisk(_FaultlessDisk):
    """A disk with a store of plain dictionaries."""

    def __init__(self) -> None:
        self._store = _FillableStore()

    def open(self) -> MemoryStore:
        self._store.full_next = False
        return self._store

    def copy(self) -> MemorySnapshot:
        return self._store.snapshot()

    def put_back(self, copy: MemorySnapshot) -> None:
        store = _FillableStore.from_snapshot(copy)
        assert isinstance(store, _FillableStore)
        self._store = store

    def fill(self, full: bool) -> None:
        self._store.full_next = full

    def discard(self) -> None:
        pass


class SqliteDisk(_FaultlessDisk):
    """A disk with SQLite in memory: a crash drops the connection and keeps the pages."""

    def __init__(self) -> None:
        self._name = f"simulated-{next(_names)}"
        self._store: SqliteStore | None = None

    def open(self) -> SqliteStore:
        if self._store is not None:
            self._store.close()
        self._store = SqliteStore.in_memory(self._name)
        return self._store

    def copy(self) -> SqliteSnapshot:
        assert self._store is not None
        return self._store.snapshot()

    def put_back(self, copy: SqliteSnapshot) -> None:
        if self._store is not None:
            self._store.close()
        self._store = SqliteStore.from_snapshot(self._name, copy)

    def fill(self, full: bool) -> None:
        if self._store is not None:
            self._store.fail_next_commit(full)

    def discard(self) -> None:
        if self._store is not None:
            self._store.close()
        SqliteStore.forget(self._name)


def disks_of(seed: int, *, on_files: bool, in_sqlite: bool) -> Callable[[], Disk]:
    """Returns what makes the disk of each host of a world."""
    if on_files:
        numbers = count()
        return lambda: LosingDisk(Random(f"disk {seed} {next(numbers)}"))  # noqa: S311
    return SqliteDisk if in_sqlite else MemoryDisk
