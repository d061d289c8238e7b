"""Connection: SQLite's files opened the way a store needs them, and nobody else's.

A store belongs to one process. SQLite's exclusive locking mode sees to it: the lock lies on the
file itself, so it holds against any program that uses SQLite, and the system drops it when the
process ends, however it ends. With it a commit is also a little quicker, and no shared memory is
needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw

from qns.errors import StoreFailed
from qns.store.faults import from_sqlite, in_use
from qns.store.migrations import checked_version, migrate

APPLICATION_ID: Final = 0x514E5331  # 'QNS1'
_PATIENCE_MS: Final = 500
"""How long a process that is just ending may hold the lock."""
_WAL_BYTES: Final = 16 * 2**20
"""The write-ahead log is carried over into the file when it has this size, and cut back to it.

Pages that change with every commit are so written home once for many commits.
"""

_URI: Final = apsw.SQLITE_OPEN_URI
_WRITE: Final = apsw.SQLITE_OPEN_READWRITE
_CREATE: Final = apsw.SQLITE_OPEN_CREATE

_memory: dict[str, apsw.Connection] = {}
"""Name -> an idle connection, which keeps what is in memory while no store is open."""


def open_file(path: Path, vfs: str | None = None) -> apsw.Connection:
    """The store in this file, made if there is none, up to date and ours alone."""
    place = str(path)
    _leave_alone_if_foreign(path)
    try:
        connection = apsw.Connection(place, flags=_WRITE | _CREATE, vfs=vfs)
    except apsw.Error as error:
        raise from_sqlite(error, place) from None
    try:
        connection.set_busy_timeout(_PATIENCE_MS)
        _harden(connection)
        _claim(connection, place)
        if connection.pragma("journal_mode", "wal") != "wal":
            raise StoreFailed("this file system takes no write-ahead log", place=place)
        connection.pragma("synchronous", "full")
        connection.pragma("fullfsync", True)  # macOS: fsync alone does not reach the platter
        connection.pragma("journal_size_limit", _WAL_BYTES)
        connection.pragma("wal_autocheckpoint", _WAL_BYTES // 4096)
        migrate(connection, place)
    except apsw.Error as error:
        connection.close()
        raise from_sqlite(error, place) from None
    except BaseException:
        connection.close()
        raise
    return connection


def open_in_memory(name: str) -> apsw.Connection:
    """The store of this name in this process; it outlives its connections until `forget`."""
    place = f"memory {name}"
    if name not in _memory:
        _memory[name] = _connect_to_memory(name)
    connection = _connect_to_memory(name)
    try:
        _harden(connection)
        connection.pragma("journal_mode", "memory")
        _claim(connection, place)
        migrate(connection, place)
    except apsw.Error as error:
        connection.close()
        raise from_sqlite(error, place) from None
    return connection


def fill_memory(name: str, content: bytes) -> None:
    """The store of this name becomes what `serialize` gave; it may not be open."""
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
    """What the store of this name held is gone as soon as nobody has it open."""
    kept = _memory.pop(name, None)
    if kept is not None:
        kept.close()


def open_copy(path: Path) -> apsw.Connection:
    """A backup, for reading; checked to be a store that this program can use."""
    place = str(path)
    if not path.is_file():
        raise StoreFailed("there is no such file", place=place, remedy="give a backup of a store")
    try:
        connection = apsw.Connection(place, flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise from_sqlite(error, place) from None
    try:
        if connection.pragma("application_id") != APPLICATION_ID:
            raise _foreign(place)
        checked_version(connection, place)
    except apsw.Error as error:
        connection.close()
        raise from_sqlite(error, place) from None
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_if_in_use(path: Path) -> None:
    """Also brings home what a crashed process left in the log; a damaged file is let pass."""
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


def _connect_to_memory(name: str) -> apsw.Connection:
    return apsw.Connection(
        f"file:/qns-{quote(name, safe='')}?vfs=memdb", flags=_URI | _WRITE | _CREATE
    )


def _harden(connection: apsw.Connection) -> None:
    """The file may come from elsewhere: what is written in its schema is not obeyed."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.pragma("trusted_schema", False)
    connection.pragma("locking_mode", "exclusive")


def _claim(connection: apsw.Connection, place: str) -> None:
    """Takes the lock and puts our name into an empty file; a foreign one is left as it is."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.pragma("application_id") != APPLICATION_ID:
            if connection.execute("SELECT count(*) FROM sqlite_schema").get != 0:
                raise _foreign(place)
            connection.pragma("application_id", APPLICATION_ID)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _leave_alone_if_foreign(path: Path) -> None:
    """Opening a SQLite file tidies up after its last user: not our business if it is not ours.

    Read through SQLite although the header is just bytes: to close a file in any other way would
    drop the locks that this process has on it.
    """
    header = f"file:{quote(str(path.absolute()))}?immutable=1"
    try:
        connection = apsw.Connection(header, flags=apsw.SQLITE_OPEN_READONLY | _URI)
        try:
            foreign = connection.pragma("application_id") != APPLICATION_ID
            empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
        finally:
            connection.close()
    except apsw.Error:
        return  # no file yet, or half of a change is in its log: opening it will tell
    if foreign and not empty:
        raise _foreign(str(path))


def _foreign(place: str) -> StoreFailed:
    return StoreFailed(
        "is a SQLite file of another program", place=place, remedy="give another file"
    )
