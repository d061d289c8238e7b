"""Compares each store with a simple model, over random commits, restarts, copies and full disks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from qns.errors import StoreFull
from qns.peer.turn import Transaction
from qns.store.copies import restore
from qns.store.memory import MemoryStore
from qns.store.sqlite import SqliteStore
from tests.store.rows import Model, applied, content, in_order, transactions


class StoreMachine(RuleBasedStateMachine):
    snapshots = Bundle("snapshots")

    store: Any

    def __init__(self) -> None:
        super().__init__()
        self.model: Model = {}

    @rule(transaction=transactions())
    def commit(self, transaction: Transaction) -> None:
        self.store.commit(transaction)
        self.model = applied(self.model, transaction)

    @invariant()
    def has_exactly_the_committed_rows(self) -> None:
        assert content(self.store) == in_order(self.model)


class MemoryMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()

    @rule(target=StoreMachine.snapshots)
    def snapshot(self) -> tuple[Any, Model]:
        return self.store.snapshot(), self.model

    @rule(taken=StoreMachine.snapshots)
    def go_back(self, taken: tuple[Any, Model]) -> None:
        snapshot, self.model = taken
        self.store = MemoryStore.from_snapshot(snapshot)

    @rule(transaction=transactions())
    def run_out_of_room(self, transaction: Transaction) -> None:
        before = sum(map(len, self.model.values()))
        after = applied(self.model, transaction)
        self.store.capacity_rows = before
        if sum(map(len, after.values())) > before:
            with pytest.raises(StoreFull):
                self.store.commit(transaction)
        else:
            self.store.commit(transaction)
            self.model = after
        self.store.capacity_rows = None


class SqliteMachine(StoreMachine):
    @rule(transaction=transactions())
    def run_out_of_room(self, transaction: Transaction) -> None:
        if transaction:
            self.store.fail_next_commit()
            with pytest.raises(StoreFull):
                self.store.commit(transaction)

    def teardown(self) -> None:
        self.store.close()


class SqliteInMemoryMachine(SqliteMachine):
    def __init__(self) -> None:
        super().__init__()
        self.store = SqliteStore.in_memory("machine")

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = SqliteStore.in_memory("machine")

    @rule(target=StoreMachine.snapshots)
    def snapshot(self) -> tuple[Any, Model]:
        return self.store.snapshot(), self.model

    @rule(taken=StoreMachine.snapshots)
    def go_back(self, taken: tuple[Any, Model]) -> None:
        snapshot, self.model = taken
        self.store.close()
        self.store = SqliteStore.from_snapshot("machine", snapshot)

    def teardown(self) -> None:
        super().teardown()
        SqliteStore.forget("machine")


class SqliteOnDiskMachine(SqliteMachine):
    backups = Bundle("backups")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0

    @property
    def path(self) -> Path:
        return Path(self.folder.name) / "store.db"

    @initialize()
    def open(self) -> None:
        self.store = SqliteStore(self.path)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = SqliteStore(self.path)

    @rule(target=backups)
    def back_up(self) -> tuple[Path, Model]:
        self.count += 1
        path = Path(self.folder.name) / f"backup-{self.count}.db"
        self.store.backup(path)
        return path, self.model

    @rule(backup=consumes(backups))
    def restore_backup(self, backup: tuple[Path, Model]) -> None:
        path, self.model = backup
        self.store.close()
        restore(path, self.path, overwrite=True)
        self.store = SqliteStore(self.path)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def tried(machine: type[StoreMachine], share: int) -> Any:
    """Returns the test case of a machine with fewer examples, as each makes dozens of commits."""
    examples = settings.default.max_examples if settings.default else 100
    case = machine.TestCase
    case.settings = settings(max_examples=max(5, examples // share), stateful_step_count=30)
    return case


TestMemoryStore = tried(MemoryMachine, 20)
TestSqliteInMemory = tried(SqliteInMemoryMachine, 20)
TestSqliteOnDisk = tried(SqliteOnDiskMachine, 40)
