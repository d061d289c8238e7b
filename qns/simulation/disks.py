"""Simulated disks: the real stores in memory, which outlive their host and can be put back."""

from __future__ import annotations

from itertools import count

from qns.errors import StoreFull
from qns.store.memory import MemorySnapshot, MemoryStore
from qns.store.sqlite import SqliteSnapshot, SqliteStore
from qns.tables import Transaction

_names = count()


class _FillableStore(MemoryStore):
    full_next = False

    def commit(self, transaction: Transaction) -> None:
        if self.full_next:
            self.full_next = False
            raise StoreFull("the disk is full")
        super().commit(transaction)


class MemoryDisk:
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


class SqliteDisk:
    """SQLite itself, in memory: a crash drops the connection, the pages stay."""

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
