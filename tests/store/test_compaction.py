"""Compaction gives the space of deleted rows back to the disk, in small steps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from qns.peer.tables import EVENTS
from qns.store.sqlite import SqliteStore
from tests.store import faulty_disk
from tests.store.faulty_disk import FaultyDisk
from tests.store.rows import content, delete, in_place, numbered, put

ROWS = 3_000
STEPS = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def fill(store: SqliteStore) -> None:
    for first in range(0, ROWS, 500):
        store.commit(
            put(
                *(
                    (EVENTS, numbered(EVENTS, n, xml=bytes(9_000)))
                    for n in range(first, first + 500)
                )
            )
        )


def empty(store: SqliteStore, left: int = 0) -> None:
    keys = [row[:2] for row in store.rows(EVENTS)]
    store.commit(delete(EVENTS, *keys[left:]))


def sizes(path: Path) -> tuple[int, int]:
    """Returns the sizes of the file and of its log."""
    return path.stat().st_size, path.with_name(path.name + "-wal").stat().st_size


def test_file_and_log_shrink_while_the_store_is_open(path: Path) -> None:
    with SqliteStore(path) as store:
        fill(store)
        assert sum(sizes(path)) > 20_000_000
        empty(store, left=10)
        before = content(store)
        for _ in range(STEPS):
            store.compact()
        assert content(store) == before
        file, log = sizes(path)
        assert file < 6_000_000
        assert log == 0
    with SqliteStore(path) as store:
        assert content(store) == before


def test_space_comes_back_in_small_steps_between_commits(path: Path) -> None:
    with SqliteStore(path) as store:
        fill(store)
        empty(store)
        pages = [store._connection.pragma("page_count")]
        for number in range(STEPS):
            store.compact()
            store.commit(in_place(number))
            pages.append(store._connection.pragma("page_count"))
        steps = [before - after for before, after in pairwise(pages)]
        assert max(steps) <= 260
        assert pages[-1] < 1_500
        pages_in_file = path.stat().st_size // 4_096
        store.check_next_pages(pages_in_file)


def test_few_free_pages_are_kept_for_the_next_rows(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(put(*((EVENTS, numbered(EVENTS, n, xml=bytes(9_000))) for n in range(200))))
        empty(store)
        pages = store._connection.pragma("page_count")
        for _ in range(STEPS):
            store.compact()
        assert store._connection.pragma("page_count") == pages


def test_failed_step_leaves_the_rows_as_they_are(path: Path) -> None:
    disk = FaultyDisk()
    try:
        with SqliteStore(path, vfs=faulty_disk.NAME) as store:
            fill(store)
            empty(store, left=10)
            before = content(store)
            disk.fail(apsw.SQLITE_FULL, "write")
            with pytest.raises(Exception, match="no room left"):
                store.compact()
            disk.fail(None)
            assert content(store) == before
            store.compact()
            store.commit(in_place(1))
    finally:
        disk.unregister()
