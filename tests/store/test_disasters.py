"""Power cuts after failing syncs lose nothing that was acknowledged; changed bits are detected."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw
import pytest

from qns.errors import StoreFailed
from qns.peer.tables import EVENTS
from qns.store.connection import check_unused
from qns.store.faults import RESTORE
from qns.store.log import log_of
from qns.store.reading import StoreReader
from qns.store.sqlite import SqliteStore
from tests.store import disasters
from tests.store.disasters import STORE, Files
from tests.store.faulty_disk import FaultyDisk
from tests.store.rows import numbered, put

FRAME = 24 + 4_096


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Returns the files of a store whose process was killed."""
    return disasters.files_of_store(tmp_path_factory.mktemp("killed"), is_closed=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / STORE


def log_frames(files: Files) -> int:
    return (len(files[f"{STORE}-wal"]) - 32) // FRAME


def write(path: Path, files: Files, log: bytes) -> None:
    path.write_bytes(files[STORE])
    log_of(path).write_bytes(log)


def sequences(path: Path) -> list[int]:
    with SqliteStore(path) as store:
        return [row.sequence for row in store.rows(EVENTS)]


def flipped(content: bytes, *bits: int) -> bytes:
    changed = bytearray(content)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def assert_damage_is_reported(path: Path, problem: str) -> None:
    """Asserts that check, reader and two starts name the store, the damage and the remedy."""
    for use in (check_unused, lambda path: StoreReader(path).__enter__(), SqliteStore, SqliteStore):
        with pytest.raises(StoreFailed, match=problem) as found:
            use(path)
        assert found.value.remedy == RESTORE
        assert found.value.place == str(path)


def test_power_cuts_after_failing_syncs_lose_nothing_that_was_acknowledged() -> None:
    found = disasters.power_cuts(range(100))
    assert {what for what, _ in found} == {"kept"}
    assert sum(many for (_, failed), many in found.items() if failed) > 50


@pytest.mark.parametrize("seed", range(4))
def test_power_cut_at_any_moment_of_opening_after_a_failed_sync_leaves_whole_transactions(
    seed: int, tmp_path: Path
) -> None:
    moments = 0
    while disasters.play_cut_opening(seed, moments, tmp_path / str(moments)):
        after = tmp_path / str(moments) / "after" / STORE
        assert disasters.kept(after, [1, 2, 3]) == "kept", moments
        moments += 1
    assert moments > 10


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "killed"])
def test_changed_bits_are_never_served(is_closed: bool, tmp_path: Path) -> None:
    found = disasters.changed_bits(range(60), kinds=(is_closed,))
    assert {what.split(": ")[1] for _, what in found} <= {"detected", "harmless"}
    assert sum(many for (_, what), many in found.items() if "detected" in what) > 30


def test_every_changed_bit_of_the_last_frame_header_is_detected(path: Path, killed: Files) -> None:
    log = killed[f"{STORE}-wal"]
    last = 32 + (log_frames(killed) - 1) * FRAME
    for bit in range(last * 8, (last + 24) * 8, 5):
        write(path, killed, flipped(log, bit))
        with pytest.raises(StoreFailed, match="of its log"):
            SqliteStore(path)


def test_every_changed_bit_of_the_beginning_of_the_log_is_detected(
    path: Path, killed: Files
) -> None:
    for bit in range(0, 32 * 8, 5):
        write(path, killed, flipped(killed[f"{STORE}-wal"], bit))
        with pytest.raises(StoreFailed, match="the beginning of its log has changed"):
            SqliteStore(path)


def test_damage_in_the_log_is_reported_at_every_start_and_by_the_check(
    path: Path, killed: Files
) -> None:
    log = killed[f"{STORE}-wal"]
    middle = (32 + log_frames(killed) // 2 * FRAME + 1_000) * 8
    write(path, killed, flipped(log, middle, middle + 9, middle + 77))
    assert_damage_is_reported(path, r"frame \d+ of its log \(page \d+\) has changed on the disk")
    write(path, killed, flipped(log, (len(log) - 500) * 8))
    assert_damage_is_reported(path, r"frame \d+ of its log \(page \d+\) has changed on the disk")
    assert log_of(path).stat().st_size == len(log)


def test_last_transaction_that_a_power_cut_left_incomplete_is_ignored(
    path: Path, killed: Files
) -> None:
    log = killed[f"{STORE}-wal"]
    write(path, killed, log)
    whole = sequences(path)
    lost_sector = len(log) - len(log) % 512 - 512
    for torn in (
        log[: len(log) - 1_000],
        log[:lost_sector] + bytes(512) + log[lost_sector + 512 :],
        log[: len(log) - FRAME] + bytes(FRAME),
    ):
        write(path, killed, torn)
        check_unused(path)
        assert sequences(path) == whole[:-1]


def test_log_that_was_never_forced_to_the_disk_is_ignored(path: Path, killed: Files) -> None:
    for log in (bytes(3 * FRAME), b"\x37", b""):
        write(path, killed, log)
        check_unused(path)
        assert sequences(path)


def test_check_after_a_kill_finds_a_changed_free_page(path: Path) -> None:
    with SqliteStore(path) as store:
        for number in range(200):
            store.commit(put((EVENTS, numbered(EVENTS, number, xml=bytes(9_000)))))
        transaction = put()
        for row in list(store.rows(EVENTS))[50:]:
            transaction.delete(EVENTS, *row[:2])
        store.commit(transaction)
    store = SqliteStore(path)
    store.commit(put((EVENTS, numbered(EVENTS, 300))))
    files = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    store.close()
    write(path, files, files[f"{STORE}-wal"])
    check_unused(path)
    page = len(files[STORE]) // 4_096 - 5
    path.write_bytes(flipped(files[STORE], ((page - 1) * 4_096 + 100) * 8))
    log_of(path).write_bytes(files[f"{STORE}-wal"])
    with pytest.raises(StoreFailed, match=f"page {page} has changed"):
        check_unused(path)
    with pytest.raises(StoreFailed, match=f"page {page} has changed"):
        SqliteStore(path)


def test_store_that_failed_leaves_its_log_as_it_is_when_it_is_closed(path: Path) -> None:
    disk = FaultyDisk()
    try:
        store = SqliteStore(path, vfs="faulty")
        store.commit(put((EVENTS, numbered(EVENTS, 1))))
        disk.fail(apsw.SQLITE_IOERR_FSYNC, "sync")
        with pytest.raises(StoreFailed, match="SQLITE_IOERR_FSYNC"):
            store.commit(put((EVENTS, numbered(EVENTS, 2))))
        disk.fail(None)
        before = path.stat().st_mtime_ns
        store.close()
        assert path.stat().st_mtime_ns == before
        assert log_of(path).stat().st_size
        with SqliteStore(path, vfs="faulty"):
            assert not log_of(path).stat().st_size
        assert not log_of(path).exists()
    finally:
        disk.unregister()


def test_store_is_not_opened_if_the_name_of_its_log_cannot_be_forced_to_the_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def fail_for_folders(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(5, "Input/output error")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fail_for_folders)
    with pytest.raises(StoreFailed, match="Input/output error"):
        SqliteStore(path)
