"""Checksums: detects pages of a store that the disk has changed.

SQLite's extension cksumvfs keeps a checksum in the last eight bytes of every page. SQLite verifies
it whenever it reads a page, so that a changed page is never used. This module also verifies pages
that nothing has read for a long time: all of them when a store is opened, and a few at a time while
it is in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

import apsw
from apsw import sqlite_extra

from qns.errors import StoreFailed
from qns.store.faults import damaged, is_wrong_checksum

VFS: Final = "cksmvfs"
"""SQLite's name of the file layer that computes and verifies checksums."""
RESERVED_BYTES: Final = 8
"""The bytes at the end of each page that hold its checksum."""
PAGE_BYTES: Final = 4_096
_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB


def register() -> str:
    """Loads the extension, once per process; returns the name of the file layer."""
    if VFS not in apsw.vfs_names():
        connection = apsw.Connection(":memory:")
        try:
            sqlite_extra.load(connection, "cksumvfs")
        except (apsw.Error, LookupError, OSError, sqlite_extra.NotAvailable) as error:
            raise StoreFailed(
                f"this installation of apsw has no checksums: {error}",
                remedy="install apsw from its wheel",
            ) from None
        finally:
            connection.close()
    return VFS


class PageReader:
    """Reads the pages of a store's file beside the connection that uses it.

    Closing it releases no lock, because it goes through SQLite's own file layer.
    """

    def __init__(self, path: Path) -> None:
        self._file = apsw.VFSFile(register(), str(path), [_FLAGS, 0])
        self.read(1)  # shows the file layer that the pages have checksums

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.xClose()

    @property
    def pages(self) -> int:
        return self._file.xFileSize() // PAGE_BYTES

    def read(self, page: int) -> bytes | None:
        """Returns the page with this number, or None if its checksum is wrong."""
        try:
            return self._file.xRead(PAGE_BYTES, (page - 1) * PAGE_BYTES)
        except apsw.IOError as error:
            if not is_wrong_checksum(error):
                raise
        return None

    def damaged(self, pages: Iterable[int]) -> list[int]:
        """Returns those of the pages whose checksum is wrong."""
        return [page for page in pages if self.read(page) is None]


def has_checksums(connection: apsw.Connection) -> bool:
    return connection.reserve_bytes("main") == RESERVED_BYTES


def check_structure(connection: apsw.Connection, place: str) -> None:
    """Raises StoreFailed if SQLite finds the trees of the tables wrong."""
    if (found := connection.pragma("quick_check")) != "ok":
        raise damaged(str(found), place)


def check_pages(
    connection: apsw.Connection, path: Path, in_log: frozenset[int] = frozenset()
) -> None:
    """Verifies the whole file; raises StoreFailed that names the damaged pages and tables.

    Pages that the log replaces are not verified, because they may be incomplete in the file.
    """
    with PageReader(path) as reader:
        expected = connection.pragma("page_count")
        missing = sum(page not in in_log for page in range(reader.pages + 1, expected + 1))
        if missing:
            raise damaged(f"{missing} of {expected} pages are missing", str(path))
        there = range(1, min(expected, reader.pages) + 1)
        found = reader.damaged(page for page in there if page not in in_log)
    if found:
        raise damaged(described(connection, found), str(path))


def describe_file(path: Path) -> str:
    """Says which pages of a file are damaged that SQLite refuses to read."""
    with PageReader(path) as reader:
        return _pages_text(reader.damaged(range(1, reader.pages + 1)))


def described(connection: apsw.Connection, pages: list[int]) -> str:
    """Says which pages are damaged, and which tables cannot be read completely."""
    tables = _unreadable_tables(connection)
    where = f" (table {', '.join(tables)})" if tables else ""
    return _pages_text(pages) + where


def _pages_text(pages: list[int]) -> str:
    shown = ", ".join(map(str, pages[:5])) + (", …" if len(pages) > 5 else "")
    return f"page {shown} has changed on the disk"


def _unreadable_tables(connection: apsw.Connection) -> list[str]:
    try:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
    except apsw.Error:
        return []
    return [name for name in names if not _is_readable(connection, name)]


def _is_readable(connection: apsw.Connection, table: str) -> bool:
    try:
        return bool(connection.pragma("quick_check", table) == "ok")
    except apsw.Error:
        return False
