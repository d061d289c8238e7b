"""Backup and restore of a store, also while it is in use."""

from __future__ import annotations

import os
import stat
import threading
from itertools import count
from pathlib import Path

import apsw
import pytest

from qns.errors import StoreFailed, StoreFull
from qns.peer.tables import COUNTERS, EVENTS, CounterRow
from qns.store import copies
from qns.store.connection import open_file
from qns.store.copies import back_up, restore
from qns.store.sqlite import SqliteStore
from tests.store.processes import COUNTER, started
from tests.store.rows import content, growing, in_place, numbered, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder / "backup.db"


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


# --- backup ---------------------------------------------------------------------------------------


def test_backup_is_one_file_with_all_rows_of_the_store(path: Path, backup: Path) -> None:
    with SqliteStore(path) as store:
        for each in range(10):
            store.commit(growing(each))
        before = content(store)
        store.backup(backup)
        assert names(backup.parent) == {"backup.db"}
        store.commit(growing(10))
    restore(backup, path.with_name("again.db"))
    with SqliteStore(path.with_name("again.db")) as store:
        assert content(store) == before


def test_only_the_user_of_the_peer_can_read_a_backup_and_a_restored_store(
    path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    check = copies._check

    def observed(copy: apsw.Connection, place: str) -> None:
        modes.append(stat.S_IMODE(os.stat(copy.filename).st_mode))  # before it is complete
        check(copy, place)

    monkeypatch.setattr(copies, "_check", observed)
    before = os.umask(0)
    try:
        with SqliteStore(path) as store:
            store.commit(growing(1))
            store.backup(backup)
        restore(backup, path.with_name("again.db"))
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.with_name("again.db").stat().st_mode) == 0o600


def test_backup_reports_its_progress_and_an_error_of_the_callback_ends_it(
    path: Path, backup: Path
) -> None:
    seen: list[tuple[int, int]] = []
    with SqliteStore(path) as store:
        for each in range(40):
            store.commit(growing(each, size=100_000))
        store.backup(backup, lambda *bytes: seen.append(bytes))
        backup.unlink()

        def give_up(*_: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.backup(backup, give_up)
        store.commit(growing(99))
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] > 4_000_000
    assert names(backup.parent) == set()


def test_store_in_memory_can_be_backed_up(path: Path) -> None:
    with SqliteStore.in_memory("backed up") as store:
        store.commit(in_place(1))
        store.backup(path)
        before = content(store)
    SqliteStore.forget("backed up")
    with SqliteStore(path) as store:
        assert content(store) == before


def test_backup_is_consistent_while_another_thread_commits(path: Path, backup: Path) -> None:
    with SqliteStore(path) as store:
        for each in range(40):
            store.commit(growing(each, size=100_000))
        done = threading.Event()

        def commit_until_done() -> None:
            for each in count(1_000):
                store.commit(
                    put(
                        (EVENTS, numbered(EVENTS, each, xml=bytes(9_000))),
                        (COUNTERS, CounterRow(COUNTER, each, 0)),
                    )
                )
                if done.is_set():
                    return

        committing = threading.Thread(target=commit_until_done)
        committing.start()
        try:
            store.backup(backup)
        finally:
            done.set()
            committing.join()
        now = content(store)
    with SqliteStore(backup) as copy:
        copied = content(copy)
    # The copy has all commits up to some time, completely, and none after it.
    events = copied["events"]
    assert events == now["events"][: len(events)]
    assert len(events) >= 40
    last = int(events[-1].id)
    assert copied.get("counters", []) == ([CounterRow(COUNTER, last, 0)] if last >= 1_000 else [])


class BusyLock:
    """A lock that commits one change and rolls back another before each batch of a backup."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.taken = 0

    def __enter__(self) -> None:
        self.taken += 1
        change = "UPDATE events SET sequence = ?; UPDATE counters SET delivered = ?"
        for number, end in ((self.taken, "COMMIT"), (-1, "ROLLBACK")):
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute(change, (number, number))
            self.connection.execute(end)

    def __exit__(self, *_: object) -> None:
        pass


def test_change_between_two_batches_of_a_backup_is_copied_completely(
    path: Path, backup: Path
) -> None:
    with SqliteStore(path) as store:
        store.commit(in_place(0))
        for each in range(40):
            store.commit(growing(each, size=100_000))
    connection = open_file(path)
    lock = BusyLock(connection)
    back_up(connection, lock, backup)
    connection.close()
    assert lock.taken > 4
    with SqliteStore(backup) as copy:
        (counter,) = copy.rows(COUNTERS)
        assert {each.sequence for each in copy.rows(EVENTS)} == {counter.delivered}
        assert 1 < counter.delivered <= lock.taken


@pytest.mark.parametrize("in_the_way", ["backup.db", "backup.db-wal", "backup.db-journal"])
def test_backup_does_not_overwrite_a_file(path: Path, backup: Path, in_the_way: str) -> None:
    backup.with_name(in_the_way).write_text("precious")
    with SqliteStore(path) as store, pytest.raises(StoreFailed, match="exists already"):
        store.backup(backup)
    assert names(backup.parent) == {in_the_way}
    assert backup.with_name(in_the_way).read_text() == "precious"


def test_backup_replaces_the_partial_file_of_an_interrupted_backup(
    path: Path, backup: Path
) -> None:
    backup.with_name("backup.db.partial").write_bytes(b"half of a copy")
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        store.backup(backup)
        before = content(store)
    assert names(backup.parent) == {"backup.db"}
    with SqliteStore(backup) as copy:
        assert content(copy) == before


def test_store_stays_usable_after_a_backup_into_a_missing_folder(path: Path) -> None:
    with SqliteStore(path) as store:
        with pytest.raises(StoreFailed, match="No such file"):
            store.backup(path.with_name("nowhere") / "backup.db")
        store.commit(in_place(1))


def test_backup_of_a_damaged_store_fails_and_leaves_no_file(path: Path, backup: Path) -> None:
    with SqliteStore(path) as store:
        for each in range(50):
            store.commit(growing(each))
    whole = bytearray(path.read_bytes())
    for page in range(len(whole) // 4096 // 2, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    with SqliteStore(path) as store:
        path.write_bytes(whole)
        with pytest.raises(StoreFailed, match="damaged"):
            store.backup(backup)
    assert names(backup.parent) == set()


# --- restore --------------------------------------------------------------------------------------


@pytest.fixture
def made(path: Path, backup: Path) -> Path:
    """Returns a backup whose counter is 1, of a store whose counter is 2."""
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        store.backup(backup)
        store.commit(in_place(2))
    return backup


def delivered(path: Path) -> int:
    with SqliteStore(path) as store:
        (row,) = store.rows(COUNTERS)
        return row.delivered


def test_restore_replaces_a_store_only_with_overwrite(path: Path, made: Path) -> None:
    with pytest.raises(StoreFailed, match="exists already"):
        restore(made, path)
    assert delivered(path) == 2
    restore(made, path, overwrite=True)
    assert delivered(path) == 1
    assert names(path.parent) == {"store.db", "elsewhere"}


def test_restore_removes_the_log_of_the_old_store(path: Path, made: Path) -> None:
    path.unlink()
    with started("number", path) as child:
        assert child.stdout is not None
        for _ in range(3):
            child.stdout.readline()
        child.kill()
    assert path.with_name("store.db-wal").stat().st_size > 0
    path.write_bytes(b"the store is lost, its log is not" * 1_000)
    restore(made, path, overwrite=True)
    assert delivered(path) == 1


def test_restore_refuses_to_replace_a_store_in_use(path: Path, made: Path) -> None:
    with SqliteStore(path) as store:
        with pytest.raises(StoreFailed, match="is in use by another process"):
            restore(made, path, overwrite=True)
        store.commit(in_place(3))
    assert delivered(path) == 3
    assert names(path.parent) == {"store.db", "elsewhere"}


def test_restore_rejects_a_file_that_is_not_a_store(path: Path, backup: Path) -> None:
    with pytest.raises(StoreFailed, match="there is no such file"):
        restore(backup, path)
    backup.write_bytes(b"no database" * 100)
    with pytest.raises(StoreFailed, match="is no store of QNS"):
        restore(backup, path)
    backup.unlink()
    foreign = apsw.Connection(str(backup))
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    with pytest.raises(StoreFailed, match="of another program"):
        restore(backup, path)
    assert not path.exists()


def test_restore_rejects_a_backup_of_a_newer_program(path: Path, made: Path) -> None:
    connection = apsw.Connection(str(made))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(StoreFailed, match="version 99"):
        restore(made, path, overwrite=True)
    assert delivered(path) == 2


def test_restore_rejects_a_truncated_backup(path: Path, made: Path) -> None:
    made.write_bytes(made.read_bytes()[:-4096])
    with pytest.raises(StoreFailed, match="damaged"):
        restore(made, path, overwrite=True)
    assert delivered(path) == 2
    assert names(path.parent) == {"store.db", "elsewhere"}


def test_restored_store_accepts_commits(path: Path, made: Path) -> None:
    restore(made, path, overwrite=True)
    with SqliteStore(path) as store:
        store.commit(in_place(5))
        store.fail_next_commit()
        with pytest.raises(StoreFull):
            store.commit(in_place(6))
    assert delivered(path) == 5
