"""Backup and restore: whole copies, made while the store is in use, and put back with care."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path

import apsw
import pytest

from qns.errors import StoreFailed, StoreFull
from qns.store.connection import open_file
from qns.store.copies import back_up, restore
from qns.store.sqlite import SqliteStore
from qns.tables import COUNTERS, EVENTS, CounterRow
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


def test_a_backup_holds_what_the_store_holds_in_one_file(path: Path, backup: Path) -> None:
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


def test_a_store_in_memory_can_be_backed_up_too(path: Path) -> None:
    with SqliteStore.in_memory("backed up") as store:
        store.commit(in_place(1))
        store.backup(path)
        before = content(store)
    SqliteStore.forget("backed up")
    with SqliteStore(path) as store:
        assert content(store) == before


def test_threads_go_on_committing_while_a_backup_is_made(path: Path, backup: Path) -> None:
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
    # Some moment of the store: every commit up to there, whole, and none after it.
    events = copied["events"]
    assert events == now["events"][: len(events)]
    assert len(events) >= 40
    last = int(events[-1].id)
    assert copied.get("counters", []) == ([CounterRow(COUNTER, last, 0)] if last >= 1_000 else [])


class BusyTurn:
    """Between two batches of a backup something is committed, and something else rolled back."""

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


def test_a_change_between_two_batches_of_a_backup_is_in_the_copy_everywhere(
    path: Path, backup: Path
) -> None:
    with SqliteStore(path) as store:
        store.commit(in_place(0))
        for each in range(40):
            store.commit(growing(each, size=100_000))
    connection = open_file(path)
    turn = BusyTurn(connection)
    back_up(connection, turn, backup)
    connection.close()
    assert turn.taken > 4
    with SqliteStore(backup) as copy:
        (counter,) = copy.rows(COUNTERS)
        assert {each.sequence for each in copy.rows(EVENTS)} == {counter.delivered}
        assert 1 < counter.delivered <= turn.taken


@pytest.mark.parametrize("in_the_way", ["backup.db", "backup.db-wal", "backup.db-journal"])
def test_a_backup_overwrites_nothing(path: Path, backup: Path, in_the_way: str) -> None:
    backup.with_name(in_the_way).write_text("precious")
    with SqliteStore(path) as store, pytest.raises(StoreFailed, match="exists already"):
        store.backup(backup)
    assert names(backup.parent) == {in_the_way}
    assert backup.with_name(in_the_way).read_text() == "precious"


def test_what_a_backup_that_was_cut_short_left_does_not_matter(path: Path, backup: Path) -> None:
    backup.with_name("backup.db.partial").write_bytes(b"half of a copy")
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        store.backup(backup)
        before = content(store)
    assert names(backup.parent) == {"backup.db"}
    with SqliteStore(backup) as copy:
        assert content(copy) == before


def test_a_backup_into_a_folder_that_is_not_there_leaves_the_store_usable(path: Path) -> None:
    with SqliteStore(path) as store:
        with pytest.raises(StoreFailed, match="cannot be opened"):
            store.backup(path.with_name("nowhere") / "backup.db")
        store.commit(in_place(1))


def test_a_damaged_store_is_not_passed_off_as_a_good_backup(path: Path, backup: Path) -> None:
    with SqliteStore(path) as store:
        for each in range(50):
            store.commit(growing(each))
    whole = bytearray(path.read_bytes())
    for page in range(len(whole) // 4096 // 2, len(whole) // 4096):
        whole[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(whole)
    with SqliteStore(path) as store, pytest.raises(StoreFailed, match="damaged"):
        store.backup(backup)
    assert names(backup.parent) == set()


# --- restore --------------------------------------------------------------------------------------


@pytest.fixture
def made(path: Path, backup: Path) -> Path:
    """A backup with 1 in it, of a store that has gone on to 2."""
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        store.backup(backup)
        store.commit(in_place(2))
    return backup


def delivered(path: Path) -> int:
    with SqliteStore(path) as store:
        (row,) = store.rows(COUNTERS)
        return row.delivered


def test_a_store_is_overwritten_only_on_demand(path: Path, made: Path) -> None:
    with pytest.raises(StoreFailed, match="exists already"):
        restore(made, path)
    assert delivered(path) == 2
    restore(made, path, overwrite=True)
    assert delivered(path) == 1
    assert names(path.parent) == {"store.db", "elsewhere"}


def test_the_log_of_the_store_before_is_not_read_into_the_restored_one(
    path: Path, made: Path
) -> None:
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


def test_a_store_in_use_is_not_overwritten(path: Path, made: Path) -> None:
    with SqliteStore(path) as store:
        with pytest.raises(StoreFailed, match="is in use by another process"):
            restore(made, path, overwrite=True)
        store.commit(in_place(3))
    assert delivered(path) == 3
    assert names(path.parent) == {"store.db", "elsewhere"}


def test_what_is_no_store_is_not_restored(path: Path, backup: Path) -> None:
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


def test_a_backup_of_a_newer_program_is_not_restored(path: Path, made: Path) -> None:
    connection = apsw.Connection(str(made))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(StoreFailed, match="version 99"):
        restore(made, path, overwrite=True)
    assert delivered(path) == 2


def test_a_truncated_backup_is_not_restored(path: Path, made: Path) -> None:
    made.write_bytes(made.read_bytes()[:-4096])
    with pytest.raises(StoreFailed, match="damaged"):
        restore(made, path, overwrite=True)
    assert delivered(path) == 2
    assert names(path.parent) == {"store.db", "elsewhere"}


def test_a_restored_store_takes_new_rows(path: Path, made: Path) -> None:
    restore(made, path, overwrite=True)
    with SqliteStore(path) as store:
        store.commit(in_place(5))
        store.fail_next_commit()
        with pytest.raises(StoreFull):
            store.commit(in_place(6))
    assert delivered(path) == 5
