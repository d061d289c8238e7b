"""Copies: backs up a store while it is in use, and restores it.

A backup is one file without a log, which only this user can read. It is written under a temporary
name, checked, forced to the disk and then renamed, so a file with the final name is complete. It
contains the mark that the store had at that time; the caller changes the store's mark afterwards
(see `qns.peer.lineage`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import Final

import apsw

from qns.errors import StoreFailed
from qns.store.checksums import register
from qns.store.connection import open_read_only, refuse_if_in_use
from qns.store.faults import damaged, from_os, from_sqlite
from qns.store.files import create_private, rename_durably, sync_file

_PAGES: Final = 256
"""Pages in a batch (1 MiB); other threads can use the store between two batches."""
_PAGE_BYTES: Final = 4_096
_PAUSE_S: Final = 0.001
_COMPANIONS: Final = ("-wal", "-shm", "-journal")
"""The endings of the files that SQLite keeps beside a database."""

OnCopied = Callable[[int, int], None]
"""Callback that receives the bytes that are copied, and all bytes. An error of it ends the copy."""


def back_up(
    source: apsw.Connection,
    lock: AbstractContextManager[object],
    path: Path,
    on_copied: OnCopied = lambda *_: None,
) -> None:
    """Copies a store to a new file. `lock` is held for each batch of pages.

    Transactions that are committed meanwhile are copied too.
    """
    refuse_existing(path)
    rename_durably(_copied(source, lock, path, on_copied), path)


def restore(backup: str | Path, store: str | Path, *, overwrite: bool = False) -> None:
    """Replaces a store, which no process may use, by a backup.

    Leave the lineage file as it is: with it, the peer detects the restore when it starts.
    """
    path = Path(store)
    source = open_read_only(Path(backup))
    try:
        if not overwrite:
            refuse_existing(path)
        partial = _copied(source, nullcontext(), path)
        try:
            if path.exists():
                refuse_if_in_use(path)
            _remove(path, _COMPANIONS)  # SQLite would apply the old store's log to the new store
        except BaseException:
            partial.unlink()
            raise
        rename_durably(partial, path)
    finally:
        source.close()


def check_file(path: Path) -> None:
    """Raises StoreFailed if a backup is damaged, or is no store that this program can read."""
    connection = open_read_only(path, is_unused=True)
    try:
        _check(connection, str(path))
    except apsw.Error as error:
        raise from_sqlite(error, str(path)) from None
    finally:
        connection.close()


def refuse_existing(path: Path) -> None:
    for each in (path, *_companions(path)):
        if each.exists():
            raise StoreFailed(
                "exists already", place=str(each), remedy="give another name, or move it away"
            )


def _copied(
    source: apsw.Connection,
    lock: AbstractContextManager[object],
    path: Path,
    on_copied: OnCopied = lambda *_: None,
) -> Path:
    partial = path.with_name(path.name + ".partial")
    try:
        _remove(partial, ("", *_COMPANIONS))
        create_private(partial)
        try:
            copy = apsw.Connection(str(partial), vfs=register())
            try:
                _fill(copy, source, lock, on_copied)
                _check(copy, str(path))
            finally:
                copy.close()
        except apsw.Error as error:
            raise from_sqlite(error, str(path)) from None
        sync_file(partial)
    except BaseException:
        _remove(partial, ("", *_COMPANIONS))
        raise
    return partial


def _fill(
    copy: apsw.Connection,
    source: apsw.Connection,
    lock: AbstractContextManager[object],
    on_copied: OnCopied,
) -> None:
    copy.pragma("journal_mode", "off")  # an incomplete copy is deleted, so it needs no journal
    copy.pragma("synchronous", "off")  # the copy is forced to the disk once, when it is complete
    # The first page, written before all others, makes the copy compute checksums like its source.
    with lock:
        reserved = source.reserve_bytes("main")
    copy.reserve_bytes("main", reserved)
    copy.pragma("user_version", 1)
    with lock:
        copying = copy.backup("main", source, "main")
    try:
        # SQLite starts over after each rollback in the source. After two passes' worth of batches,
        # one step copies all pages while the lock is held.
        for batch in count():
            with lock:
                copying.step(_PAGES if batch * _PAGES <= 2 * copying.page_count else -1)
                total, remaining, done = copying.page_count, copying.remaining, copying.done
            on_copied((total - remaining) * _PAGE_BYTES, total * _PAGE_BYTES)
            if done:
                break
            time.sleep(_PAUSE_S)  # otherwise this thread takes the lock again before others wake up
    finally:
        with lock:
            copying.close(force=True)
    copy.pragma("journal_mode", "delete")  # a database in this mode is one file


def _check(copy: apsw.Connection, place: str) -> None:
    if (found := copy.pragma("quick_check")) != "ok":
        raise damaged(str(found), place)


def _companions(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in _COMPANIONS]


def _remove(path: Path, ends: tuple[str, ...]) -> None:
    try:
        for end in ends:
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError as error:
        raise from_os(error, str(path)) from None
