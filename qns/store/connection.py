"""Connection: opens SQLite files with the settings of a store, and rejects files of other programs.

Only one process uses a store at a time. SQLite's exclusive locking mode ensures this: the lock is
on the file itself, so it excludes every program that uses SQLite, and the operating system releases
it when the process ends for any reason. The mode also makes commits slightly faster and needs no
shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from qns.errors import StoreFailed
from qns.store.checksums import (
    PAGE_BYTES,
    check_pages,
    check_structure,
    describe_file,
    has_checksums,
    register,
)
from qns.store.faults import damaged, from_sqlite, in_use, is_wrong_checksum
from qns.store.files import sync_file
from qns.store.header import check_header, page_1_damaged
from qns.store.layout import CHECKED_ID, UNCHECKED_ID, lay_out, rewrite
from qns.store.lineage import FileLineage
from qns.store.log import check_log, log_of, pages_in_log
from qns.store.migrations import checked_version, migrate
from qns.store.recovery import has_log, keep_log_at_close, secure_log, verified_frames

_IDS: Final = (CHECKED_ID, UNCHECKED_ID)
_PATIENCE_MS: Final = 500
"""How long to wait for the lock of a process that is just ending."""
LOG_BYTES: Final = 16 * 2**20
"""The size at which SQLite copies the write-ahead log into the file, and to which it truncates it.

A page that changes with every commit is thereby copied once for many commits.
"""

_URI: Final = apsw.SQLITE_OPEN_URI
_READ: Final = apsw.SQLITE_OPEN_READONLY
_WRITE: Final = apsw.SQLITE_OPEN_READWRITE
_CREATE: Final = apsw.SQLITE_OPEN_CREATE

_memory: dict[str, apsw.Connection] = {}
"""Idle connections by name; each keeps its database in memory while no store is open."""


def open_file(path: Path, vfs: str | None = None, log_bytes: int = LOG_BYTES) -> apsw.Connection:
    """Opens the store in this file for exclusive use; creates or migrates it if necessary."""
    place = str(path)
    checked = register()
    check_header(path)
    _refuse_foreign_file(path)
    if has_log(path):
        _secure_log(path, vfs or checked)
    connection = _connected(path, vfs or checked)
    with _closing_on_error(connection, place):
        if connection.pragma("page_count") == 0:
            if path.stat().st_size:
                raise damaged("the file is shorter than a page", place)
            lay_out(connection)
        _claim(connection, place, CHECKED_ID)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise StoreFailed("this file system does not support a write-ahead log", place=place)
        connection.pragma("synchronous", "full")
        connection.pragma("fullfsync", True)  # macOS: fsync alone does not reach the disk
        connection.pragma("journal_size_limit", log_bytes)
        connection.pragma("wal_autocheckpoint", log_bytes // PAGE_BYTES)
        if connection.pragma("application_id") == UNCHECKED_ID:
            rewrite(connection, path)
        _check(connection, path)
        migrate(connection, place)
        # SQLite also forces the name of a new log to the disk, but ignores an error of it.
        sync_file(path.absolute().parent)
        keep_log_at_close(connection, False)
    return connection


def open_in_memory(name: str) -> apsw.Connection:
    """Opens the store of this name in memory. Its rows are kept until `forget` is called."""
    place = f"memory {name}"
    if name not in _memory:
        _memory[name] = _connect_to_memory(name)
    connection = _connect_to_memory(name)
    with _closing_on_error(connection, place):
        _harden(connection)
        connection.pragma("journal_mode", "memory")
        _claim(connection, place, UNCHECKED_ID)
        migrate(connection, place)
    return connection


def fill_memory(name: str, content: bytes) -> None:
    """Replaces the content of a store in memory, which must be closed, by a serialised database."""
    if name not in _memory:
        _memory[name] = _connect_to_memory(name)
    source = apsw.Connection(":memory:")
    try:
        source.deserialize("main", content)
        with _memory[name].backup("main", source, "main") as copying:
            copying.step()
    except apsw.Error as error:
        raise from_sqlite(error, f"memory {name}") from None
    finally:
        source.close()


def forget(name: str) -> None:
    """Frees the content of a store in memory as soon as it is closed."""
    kept = _memory.pop(name, None)
    if kept is not None:
        kept.close()


def open_read_only(path: Path, *, is_unused: bool = False) -> apsw.Connection:
    """Opens a store or a backup for reading; raises StoreFailed if this program cannot read it.

    If `is_unused` is true, no process has the file open: SQLite then takes no lock and creates no
    file beside it.
    """
    place = str(path)
    if not path.is_file():
        raise StoreFailed(
            "there is no such file", place=place, remedy="give a store or a backup of one"
        )
    check_header(path)
    name, flags = (_immutable(path), _READ | _URI) if is_unused else (place, _READ)
    try:
        connection = apsw.Connection(name, flags=flags, vfs=register())
    except apsw.Error as error:
        raise from_sqlite(error, place) from None
    with _closing_on_error(connection, place):
        _refuse_foreign_id(connection, place)
        _check_marked(connection, path)
        if has_log(path) and not is_unused:
            check_log(path, verified_frames(connection))
        checked_version(connection, place)
    return connection


def refuse_emptied(path: Path, lineage: FileLineage) -> None:
    """Raises StoreFailed if the file is empty although it was a store: it has a lineage."""
    if path.is_file() and not path.stat().st_size and lineage.exists:
        raise damaged("the file is empty", str(path))


def check_unused(path: Path) -> None:
    """Raises StoreFailed if a store that no process uses is damaged or cannot be used."""
    is_logged = has_log(path)
    connection = open_read_only(path, is_unused=not log_of(path).exists())
    with _closing_on_error(connection, str(path)):
        if has_checksums(connection):
            frames = verified_frames(connection) if is_logged else 0
            check_pages(connection, path, pages_in_log(path, frames))
        if is_logged or not has_checksums(connection):
            check_structure(connection, str(path))
    connection.close()


@contextmanager
def _closing_on_error(connection: apsw.Connection, place: str) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        with suppress(apsw.Error):  # the first error says more
            connection.close()
        if is_wrong_checksum(error):
            raise damaged(describe_file(Path(place)), place) from None
        raise from_sqlite(error, place) from None
    except BaseException:
        with suppress(apsw.Error):
            connection.close()
        raise


def refuse_if_in_use(path: Path) -> None:
    """Raises StoreFailed if a process uses the store; a damaged file is accepted.

    Opening it also copies what a crashed process left in the log into the file.
    """
    try:
        connection = apsw.Connection(str(path), flags=_WRITE)
        try:
            connection.set_busy_timeout(_PATIENCE_MS)
            connection.pragma("locking_mode", "exclusive")
            connection.execute("BEGIN EXCLUSIVE; COMMIT")
        finally:
            connection.close()
    except apsw.BusyError:
        raise in_use(str(path)) from None
    except apsw.Error:
        return


def _connected(path: Path, vfs: str) -> apsw.Connection:
    """Connects to a file for exclusive use. Closing the connection leaves the log as it is."""
    try:
        connection = apsw.Connection(str(path), flags=_WRITE | _CREATE, vfs=vfs)
    except apsw.Error as error:
        raise from_sqlite(error, str(path)) from None
    with _closing_on_error(connection, str(path)):
        connection.set_busy_timeout(_PATIENCE_MS)
        keep_log_at_close(connection, True)
        _harden(connection)
    return connection


def _secure_log(path: Path, vfs: str) -> None:
    connection = _connected(path, vfs)
    with _closing_on_error(connection, str(path)):
        secure_log(connection, path, vfs)
        connection.close()


def _connect_to_memory(name: str) -> apsw.Connection:
    return apsw.Connection(
        f"file:/qns-{quote(name, safe='')}?vfs=memdb", flags=_URI | _WRITE | _CREATE
    )


def _harden(connection: apsw.Connection) -> None:
    """Protects against a file of unknown origin: functions in its schema are not executed."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.pragma("trusted_schema", False)
    connection.pragma("locking_mode", "exclusive")


def _check(connection: apsw.Connection, path: Path) -> None:
    """Verifies every page of the file; raises StoreFailed if one is damaged."""
    _check_marked(connection, path)
    frames, _ = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_FULL)
    connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    if has_checksums(connection):
        check_pages(connection, path)
    if frames or not has_checksums(connection):
        # SQLite fills a file that was truncated beside a log with pages of zeros, which have right
        # checksums.
        check_structure(connection, str(path))


def _check_marked(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreFailed if the header denies the checksums, which would not be verified then."""
    is_marked = connection.pragma("application_id") == CHECKED_ID
    if is_marked and not has_checksums(connection):
        raise page_1_damaged(path)


def _claim(connection: apsw.Connection, place: str, application_id: int) -> None:
    """Takes the lock and marks an empty file as ours; raises StoreFailed for a foreign file."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("SELECT count(*) FROM sqlite_schema").get == 0:
            connection.pragma("application_id", application_id)
        _refuse_foreign_id(connection, place)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _refuse_foreign_file(path: Path) -> None:
    """Raises StoreFailed for a SQLite file of another program, without changing the file.

    An ordinary open would recover the file after a crash of its program and change it. The header
    is read through SQLite, because closing the file in any other way would release the locks that
    this process holds on it.
    """
    try:
        connection = apsw.Connection(_immutable(path), flags=_READ | _URI)
        try:
            foreign = connection.pragma("application_id") not in _IDS
            empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
        finally:
            connection.close()
    except apsw.Error:
        return  # there is no file yet, or its log must be read first: `_claim` checks it later
    if foreign and not empty:
        raise _foreign_file(str(path))


def _refuse_foreign_id(connection: apsw.Connection, place: str) -> None:
    if connection.pragma("application_id") not in _IDS:
        raise _foreign_file(place)


def _immutable(path: Path) -> str:
    """Returns the URI that opens a file without locks and without recovery."""
    return f"file:{quote(str(path.absolute()))}?immutable=1"


def _foreign_file(place: str) -> StoreFailed:
    return StoreFailed(
        "is a SQLite file of another program", place=place, remedy="give another file"
    )
