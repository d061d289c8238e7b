"""Copies: a store backed up while it is in use, and put back.

A copy is one file without a log beside it. It is written under another name, checked, forced to the
disk and renamed, so a file with the right name is a whole copy. A copy carries the mark of the life
in which it was made; who makes a backup changes the store's own mark afterwards (`qns.lineage`).
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import Final

import apsw

from qns.errors import StoreFailed
from qns.store.connection import open_copy, refuse_if_in_use
from qns.store.faults import RESTORE, from_os, from_sqlite
from qns.store.files import rename_durably, sync_file

_PAGES: Final = 256
"""Copied at a time, 1 MiB; between two times others have their turn."""
_BREATH_S: Final = 0.001
_COMPANIONS: Final = ("-wal", "-shm", "-journal")


def back_up(source: apsw.Connection, turn: AbstractContextManager[object], path: Path) -> None:
    """What is committed while this runs is copied too. `turn` is held for each batch of pages."""
    refuse_existing(path)
    rename_durably(_copied(source, turn, path), path)


def restore(backup: str | Path, store: str | Path, *, overwrite: bool = False) -> None:
    """Puts a backup in the place of a store, which nobody may be using.

    The peer that starts on it notices that it was restored: leave the lineage file as it is.
    """
    path = Path(store)
    source = open_copy(Path(backup))
    try:
        if not overwrite:
            refuse_existing(path)
        partial = _copied(source, nullcontext(), path)
        try:
            if path.exists():
                refuse_if_in_use(path)
            _remove(path, _COMPANIONS)  # the log of another store would be read into this one
        except BaseException:
            partial.unlink()
            raise
        rename_durably(partial, path)
    finally:
        source.close()


def refuse_existing(path: Path) -> None:
    for each in (path, *_companions(path)):
        if each.exists():
            raise StoreFailed(
                "exists already", place=str(each), remedy="give another name, or move it away"
            )


def _copied(source: apsw.Connection, turn: AbstractContextManager[object], path: Path) -> Path:
    partial = path.with_name(path.name + ".partial")
    try:
        _remove(partial, ("", *_COMPANIONS))
        try:
            copy = apsw.Connection(str(partial))
            try:
                _fill(copy, source, turn)
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
    copy: apsw.Connection, source: apsw.Connection, turn: AbstractContextManager[object]
) -> None:
    copy.pragma("journal_mode", "off")  # a copy cut short is thrown away, so it needs no journal
    copy.pragma("synchronous", "off")  # and it is forced to the disk once, when it is whole
    with turn:
        copying = copy.backup("main", source, "main")
    try:
        # Each roll-back in the source makes SQLite start over: after some of them nobody else gets
        # a turn until the copy is whole.
        for batch in count():
            with turn:
                copying.step(_PAGES if batch * _PAGES <= 2 * copying.page_count else -1)
            if copying.done:
                break
            time.sleep(_BREATH_S)  # a lock alone would be ours again before the others wake up
    finally:
        with turn:
            copying.close(force=True)
    copy.pragma("journal_mode", "delete")  # one file, nothing beside it


def _check(copy: apsw.Connection, place: str) -> None:
    if (found := copy.pragma("quick_check")) != "ok":
        raise StoreFailed(f"the copy is damaged: {found}", place=place, remedy=RESTORE)


def _companions(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in _COMPANIONS]


def _remove(path: Path, ends: tuple[str, ...]) -> None:
    try:
        for end in ends:
            path.with_name(path.name + end).unlink(missing_ok=True)
    except OSError as error:
        raise from_os(error, str(path)) from None
