"""Damage on the disk: every changed or missing page is detected, and no changed row is read."""

from __future__ import annotations

import os
import random
from pathlib import Path

import apsw
import pytest

from qns.errors import StoreFailed
from qns.peer.tables import EVENTS, TABLES
from qns.peer.turn import Transaction
from qns.store.connection import check_unused, refuse_emptied
from qns.store.copies import restore
from qns.store.lineage import FileLineage
from qns.store.reading import StoreReader
from qns.store.sqlite import SqliteStore
from tests.store.processes import started
from tests.store.rows import content, delete, numbered, put

PAGE = 4_096
PLACES = 200


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns the file of a store with rows in all tables, long documents and free pages."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    with SqliteStore(path) as store:
        for number in range(60):
            transaction = Transaction()
            for table in TABLES:
                transaction.put(table, numbered(table, number))
            store.commit(transaction)
        for number in range(100, 140):
            store.commit(put((EVENTS, numbered(EVENTS, number, xml=os.urandom(9_000)))))
        store.commit(delete(EVENTS, *(each[:2] for each in list(store.rows(EVENTS))[70:])))
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def rows_of(path: Path, content_of: bytes) -> dict[str, list[object]] | str:
    """Returns the rows of a store with this file, or the error with which it is rejected."""
    path.write_bytes(content_of)
    try:
        with SqliteStore(path) as store:
            return content(store)
    except StoreFailed as error:
        return str(error)


def test_flipped_bits_at_random_places_are_detected_or_harmless(path: Path, whole: bytes) -> None:
    true_rows = rows_of(path, whole)
    assert isinstance(true_rows, dict)
    assert len(true_rows) == len(TABLES)
    chance = random.Random(20261117)
    detected = 0
    for place in range(PLACES):
        offset = chance.randrange(PAGE if place < PLACES // 4 else len(whole))
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << chance.randrange(8)
        found = rows_of(path, bytes(damaged))
        if isinstance(found, str):
            detected += 1
            assert "the store is damaged" in found, (offset, found)
        else:
            assert found == true_rows, offset
    assert detected == PLACES


def test_every_flipped_bit_of_the_header_is_detected(path: Path, whole: bytes) -> None:
    for bit in range(100 * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        found = rows_of(path, bytes(damaged))
        assert isinstance(found, str), bit
        assert "the store is damaged" in found, (bit, found)


def test_truncation_at_random_places_is_detected(path: Path, whole: bytes) -> None:
    chance = random.Random(20261117)
    places = [1, PAGE, 2 * PAGE, len(whole) - PAGE, len(whole) - 1]
    for length in [*places, *(chance.randrange(1, len(whole)) for _ in range(PLACES))]:
        found = rows_of(path, whole[:length])
        assert isinstance(found, str), length
        assert "damaged" in found or "is no store of QNS" in found, (length, found)


def test_error_names_the_page_the_table_and_the_remedy(path: Path, whole: bytes) -> None:
    with SqliteStore(path) as store:
        for number in range(300):
            store.commit(put((EVENTS, numbered(EVENTS, number, xml=os.urandom(500)))))
    damaged = bytearray(path.read_bytes())
    damaged[40 * PAGE + 7] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StoreFailed, match=r"page 41 has changed on the disk \(table events\)") as e:
        SqliteStore(path)
    assert "qns peer restore" in e.value.remedy
    with pytest.raises(StoreFailed, match="page 41 has changed"):
        check_unused(path)


def test_truncation_beside_the_log_of_a_killed_process_is_detected(path: Path) -> None:
    with SqliteStore(path) as store:
        for number in range(10_000, 10_100):
            store.commit(put((EVENTS, numbered(EVENTS, number, xml=os.urandom(3_000)))))
    with started("number", path) as child:
        assert child.stdout is not None
        for _ in range(3):
            child.stdout.readline()
        child.kill()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // PAGE // 2 * PAGE])
    with pytest.raises(StoreFailed, match="damaged"):
        SqliteStore(path)


def test_page_that_changes_while_the_store_is_open_is_found_by_the_slow_check(path: Path) -> None:
    with SqliteStore(path) as store:
        for number in range(100):
            store.commit(put((EVENTS, numbered(EVENTS, number, xml=os.urandom(3_000)))))
    with SqliteStore(path) as store:
        pages = path.stat().st_size // PAGE
        store.check_next_pages(pages)
        # The handle stays open, because closing it would release the locks of this process.
        handle = os.open(path, os.O_RDWR)
        os.pwrite(handle, b"\xff\x00\xff", 50 * PAGE + 1_000)
        for _ in range(5):
            store.check_next_pages(10)
        with pytest.raises(StoreFailed, match="page 51 has changed"):
            store.check_next_pages(10)
        with pytest.raises(StoreFailed, match="damaged"):
            store.commit(put((EVENTS, numbered(EVENTS, 1))))
        with pytest.raises(StoreFailed, match="damaged"):
            list(store.rows(EVENTS))
        os.close(handle)


def test_damaged_backup_is_neither_read_nor_restored(path: Path, whole: bytes) -> None:
    backup = path.with_name("backup.db")
    damaged = bytearray(whole)
    for page in range(40, len(whole) // PAGE):
        damaged[page * PAGE + 100] ^= 1
    backup.write_bytes(damaged)
    with pytest.raises(StoreFailed, match="damaged"):
        restore(backup, path)
    assert not path.exists()
    with StoreReader(backup) as reader, pytest.raises(StoreFailed, match="damaged"):
        content(reader)


def test_backup_has_checksums_and_is_checked_when_it_is_opened(path: Path, whole: bytes) -> None:
    path.write_bytes(whole)
    backup = path.with_name("backup.db")
    with SqliteStore(path) as store:
        store.backup(backup)
        before = content(store)
    damaged = bytearray(backup.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    with SqliteStore(backup) as store:
        assert store.has_checksums
        assert content(store) == before
    assert isinstance(rows_of(backup, bytes(damaged)), str)


def test_file_that_was_emptied_is_rejected_if_it_has_a_lineage(path: Path) -> None:
    lineage = path.with_name("store.lineage")
    path.touch()
    refuse_emptied(path, FileLineage(lineage))
    lineage.touch()
    for each in (FileLineage(lineage), FileLineage(path.with_name("missing"), lineage)):
        with pytest.raises(StoreFailed, match="the file is empty"):
            refuse_emptied(path, each)


def test_store_without_checksums_is_rewritten_with_its_rows(path: Path) -> None:
    with SqliteStore.in_memory("old") as store:
        for number in range(50):
            store.commit(put((EVENTS, numbered(EVENTS, number))))
        store.backup(path)
        before = content(store)
    SqliteStore.forget("old")
    assert apsw.Connection(str(path)).reserve_bytes("main") == 0
    with SqliteStore(path) as store:
        assert store.has_checksums
        assert content(store) == before
    assert apsw.Connection(str(path)).pragma("auto_vacuum") == 2


def test_store_without_checksums_stays_as_it_is_if_the_disk_has_no_room(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteStore.in_memory("old") as store:
        store.commit(put((EVENTS, numbered(EVENTS, 1))))
        store.backup(path)
    SqliteStore.forget("old")
    monkeypatch.setattr("qns.store.layout._free_bytes", lambda _: 0)
    with SqliteStore(path) as store:
        assert not store.has_checksums
        assert len(list(store.rows(EVENTS))) == 1
    assert "stays without checksums" in caplog.text
