"""The store on disk: durability, locking, foreign and damaged files, full and faulty disks."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from qns.errors import Busy, StoreFailed, StoreFull
from qns.peer.tables import COUNTERS, EVENTS, CounterRow
from qns.store.sqlite import SqliteStore
from tests.store import faulty_disk
from tests.store.faulty_disk import FaultyDisk
from tests.store.processes import COUNTER, started
from tests.store.rows import content, delete, growing, in_place, numbered, put

ALWAYS_LOW = 2**62


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "the store ü?#.db"


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.unregister()


# --- durability -----------------------------------------------------------------------------------


def test_committed_rows_are_there_after_a_restart(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        before = content(store)
    with SqliteStore(path) as store:
        assert content(store) == before


def test_closed_store_is_one_file(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(in_place(1))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("round", range(6))
def test_commits_reported_by_a_killed_process_are_there(path: Path, round: int) -> None:
    child = started("number", path)
    assert child.stdout is not None
    commits = random.randint(1, 600)  # some rounds reach a checkpoint, at about 250
    reported = [int(child.stdout.readline()) for _ in range(commits)]
    child.kill()
    reported += map(int, child.stdout.read().split())
    child.wait()
    child.stdout.close()
    with SqliteStore(path) as store:
        found = [row.sequence for row in store.rows(EVENTS)]
        (counter,) = store.rows(COUNTERS)
    assert found == list(range(1, len(found) + 1))
    assert reported[-1] <= len(found) <= reported[-1] + 1
    assert counter == CounterRow(COUNTER, len(found), 0)


# --- opening --------------------------------------------------------------------------------------


def test_second_process_is_refused_and_the_first_can_commit(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        with started("number", path) as second:
            assert second.stdout is not None
            assert "is in use by another process" in second.stdout.readline()
        store.commit(in_place(2))
        assert content(store) == {"counters": [CounterRow("some subscription", 2, 2)]}


def test_second_store_in_the_same_process_is_refused_and_the_first_keeps_its_lock(
    path: Path,
) -> None:
    with SqliteStore(path):
        with pytest.raises(StoreFailed, match="is in use"):
            SqliteStore(path)
        with started("number", path) as second:
            assert second.stdout is not None
            assert "is in use by another process" in second.stdout.readline()


def test_killed_process_leaves_no_lock(path: Path) -> None:
    with started("number", path) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(StoreFailed, match="is in use by another process"):
            SqliteStore(path)
        child.kill()
    with SqliteStore(path) as store:
        store.commit(in_place(1))


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_sqlite_file_of_another_program_is_rejected_unchanged(path: Path, journal: str) -> None:
    foreign = apsw.Connection(str(path))
    foreign.pragma("journal_mode", journal)
    foreign.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(StoreFailed, match="of another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_file_that_is_no_database_is_rejected_unchanged(path: Path) -> None:
    path.write_bytes(b"nothing that SQLite has written" * 100)
    with pytest.raises(StoreFailed, match="is no store of QNS"):
        SqliteStore(path)
    assert path.read_bytes() == b"nothing that SQLite has written" * 100


@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_truncated_store_is_rejected(path: Path, part: float) -> None:
    with SqliteStore(path) as store:
        for each in range(50):
            store.commit(growing(each))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(StoreFailed, match="damaged") as caught:
        SqliteStore(path)
    assert "restore the newest backup" in caught.value.remedy


def test_store_in_a_missing_folder_cannot_be_opened(path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be opened") as caught:
        SqliteStore(path / "in" / "store.db")
    assert "check that the folder exists" in caught.value.remedy


def test_closed_store_rejects_every_call(path: Path) -> None:
    store = SqliteStore(path)
    store.close()
    store.close()
    with pytest.raises(StoreFailed, match="the store is closed"):
        store.commit(in_place(1))
    with pytest.raises(StoreFailed, match="the store is closed"):
        list(store.rows(EVENTS))
    with pytest.raises(StoreFailed, match="the store is closed"):
        store.backup(path.with_name("backup.db"))


# --- full disk ------------------------------------------------------------------------------------


def test_commit_on_a_full_disk_changes_nothing_and_the_store_stays_usable(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(growing(1))
        store._connection.pragma("max_page_count", 1)
        before = content(store)
        with pytest.raises(StoreFull) as caught:
            store.commit(put(*((EVENTS, numbered(EVENTS, n, xml=bytes(9_000))) for n in range(9))))
        assert isinstance(caught.value, Busy)
        assert caught.value.remedy == "free some space"
        assert content(store) == before
        store.commit(delete(EVENTS, *(each[:2] for each in store.rows(EVENTS))))
        store._connection.pragma("max_page_count", 2**32 - 2)
        store.commit(growing(2))
    with SqliteStore(path) as store:
        assert [each.id for each in store.rows(EVENTS)] == ["000000002"]


def test_fail_next_commit_simulates_a_full_disk_once(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(put(*((EVENTS, numbered(EVENTS, n, xml=bytes(9_000))) for n in range(9))))
        store.commit(delete(EVENTS, *(each[:2] for each in store.rows(EVENTS))))
        store.fail_next_commit()
        with pytest.raises(StoreFull):
            store.commit(in_place(1))
        assert content(store) == {}
        store.commit(in_place(2))
        assert content(store) == {"counters": [CounterRow("some subscription", 2, 2)]}


def test_file_does_not_grow_below_the_low_water_mark(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        for each in range(20):
            store.commit(growing(each))
        before = content(store)
    with SqliteStore(path, low_water_bytes=ALWAYS_LOW) as store:
        with pytest.raises(StoreFull, match="bytes are free on the disk"):
            store.commit(growing(20))
        assert content(store) == before


def test_space_of_deleted_rows_can_be_used_below_the_low_water_mark(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        for each in range(20):
            store.commit(growing(each))
    with SqliteStore(path, low_water_bytes=ALWAYS_LOW) as store:
        store.commit(in_place(2))
        store.commit(delete(EVENTS, *(each[:2] for each in list(store.rows(EVENTS))[:3])))
        store.commit(growing(20))
        assert [int(each.id) for each in store.rows(EVENTS)] == list(range(3, 21))


def test_log_that_cannot_grow_is_a_full_disk(path: Path, disk: FaultyDisk) -> None:
    with SqliteStore(path, vfs=faulty_disk.NAME) as store:
        store.commit(in_place(1))
        disk.fail(apsw.SQLITE_FULL, "write")
        for each in (2, 3):
            with pytest.raises(StoreFull):
                store.commit(in_place(each))
        disk.fail(None)
        assert content(store) == {"counters": [CounterRow("some subscription", 1, 1)]}
        store.commit(in_place(4))
    with SqliteStore(path) as store:
        assert content(store) == {"counters": [CounterRow("some subscription", 4, 4)]}


# --- faulty disk ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "what"), [(apsw.SQLITE_IOERR_FSYNC, "sync"), (apsw.SQLITE_IOERR_WRITE, "write")]
)
def test_store_rejects_commits_after_a_fault_of_the_disk(
    path: Path, disk: FaultyDisk, fault: int, what: str
) -> None:
    with SqliteStore(path, vfs=faulty_disk.NAME) as store:
        store.commit(in_place(1))
        disk.fail(fault, what)
        with pytest.raises(StoreFailed, match="the disk failed: SQLITE_IOERR"):
            store.commit(in_place(2))
        disk.fail(None)
        with pytest.raises(StoreFailed, match="an earlier error") as caught:
            store.commit(in_place(3))
        assert caught.value.remedy == "open the store again"
    with SqliteStore(path) as store:
        (row,) = store.rows(COUNTERS)
        assert row.delivered in {1, 2}, "the failed commit may have reached the disk"


def test_store_fails_when_the_disk_cannot_be_read(path: Path, disk: FaultyDisk) -> None:
    with SqliteStore(path) as store:
        store.commit(growing(1))
    with SqliteStore(path, vfs=faulty_disk.NAME) as store:
        disk.fail(apsw.SQLITE_IOERR_READ, "read")
        with pytest.raises(StoreFailed, match="SQLITE_IOERR_READ"):
            content(store)
        disk.fail(None)


# --- in memory ------------------------------------------------------------------------------------


def test_store_in_memory_keeps_its_rows_until_it_is_forgotten() -> None:
    with SqliteStore.in_memory("kept") as store:
        store.commit(in_place(1))
        before = content(store)
    with SqliteStore.in_memory("kept") as store:
        assert content(store) == before
    SqliteStore.forget("kept")
    with SqliteStore.in_memory("kept") as store:
        assert content(store) == {}
    SqliteStore.forget("kept")


def test_stores_in_memory_with_different_names_are_independent() -> None:
    names = ["a", "A", "a b", "a/b", "a?b=c", "a#b", "a%20b", "ü", ""]
    for number, name in enumerate(names):
        with SqliteStore.in_memory(name) as store:
            store.commit(in_place(number))
    for number, name in enumerate(names):
        with SqliteStore.in_memory(name) as store:
            (row,) = store.rows(COUNTERS)
            assert row.delivered == number
        SqliteStore.forget(name)


def test_store_in_memory_cannot_be_opened_twice() -> None:
    with SqliteStore.in_memory("once") as store:
        snapshot = store.snapshot()
        with pytest.raises(StoreFailed, match="is in use"):
            SqliteStore.in_memory("once")
        with pytest.raises(StoreFailed, match="is in use"):
            SqliteStore.from_snapshot("once", snapshot)
    SqliteStore.forget("once")


def test_prepare_fails_on_a_full_disk_and_the_next_one_succeeds(path: Path) -> None:
    with SqliteStore(path) as store:
        store.fail_next_commit()
        with pytest.raises(StoreFull):
            store.prepare(put((COUNTERS, CounterRow("s", 1, 0))))
        store.prepare(put((COUNTERS, CounterRow("s", 2, 0))))()
        assert list(store.rows(COUNTERS)) == [CounterRow("s", 2, 0)]


def test_prepare_does_not_wait_for_an_unfinished_commit(path: Path) -> None:
    with SqliteStore(path) as store:
        first = store.prepare(put((COUNTERS, CounterRow("a", 1, 0))))
        second = store.prepare(put((COUNTERS, CounterRow("b", 1, 0))))
        first()
        second()
        assert [row.subscription for row in store.rows(COUNTERS)] == ["a", "b"]


def test_process_that_ends_after_prepare_has_changed_nothing(path: Path) -> None:
    with SqliteStore(path) as store:
        finish = store.prepare(put((COUNTERS, CounterRow("s", 1, 0))))
        copy = path.with_name("crashed.db")
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, file.with_name(file.name.replace(path.name, copy.name)))
        finish()
    with SqliteStore(copy) as found:
        assert list(found.rows(COUNTERS)) == []
