"""The store on disk: SQLite with a write-ahead log, forced to the disk with every commit.

Any number of threads may call it, one at a time gets its turn. A transaction is in the log and on
the disk when `commit` returns; SQLite carries it over into the file now and then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import apsw

from qns.errors import QnsError, StoreFailed, StoreFull
from qns.store import connection as connections
from qns.store.columns import SHAPES, Shape, shape_of
from qns.store.copies import back_up
from qns.store.faults import from_os, from_sqlite, shakes_trust
from qns.tables import Row, Table, Transaction

LOW_WATER_BYTES: Final = 64 * 2**20
_ROWS_AT_A_TIME: Final = 256
_MOST_ROWS_AT_ONCE: Final = 4_096
"""That a caller waits for in `prepare`: some milliseconds."""
_NO_LIMIT: Final = 2**32 - 2


@dataclass(frozen=True, slots=True)
class SqliteSnapshot:
    """A store as it was; opaque."""

    content: bytes


class SqliteStore:
    """Implements `ports.Store` on a file.

    Below `low_water_bytes` of free space only a transaction for which the file need not grow is
    accepted. On a disk that is full to the last byte SQLite can neither delete rows nor carry over
    its log; this space is kept for that, and there is no other reserve.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        low_water_bytes: int = LOW_WATER_BYTES,
        vfs: str | None = None,
    ) -> None:
        path = Path(path)
        self._low_water_bytes = low_water_bytes
        self._begin(connections.open_file(path, vfs), str(path), path.absolute().parent)

    @classmethod
    def in_memory(cls, name: str) -> Self:
        """A store that lasts as long as this process, or until `forget(name)`.

        To close it and to open the same name again is what a crash and a start are on a disk.
        """
        store = cls.__new__(cls)
        store._low_water_bytes = 0
        store._begin(connections.open_in_memory(name), f"memory {name}", None)
        return store

    @classmethod
    def from_snapshot(cls, name: str, snapshot: SqliteSnapshot) -> Self:
        """A store in memory that holds what the snapshot does, and nothing that it held before."""
        connections.fill_memory(name, snapshot.content)
        return cls.in_memory(name)

    @staticmethod
    def forget(name: str) -> None:
        """Frees what the store of this name in memory holds; it should be closed."""
        connections.forget(name)

    def _begin(self, connection: apsw.Connection, place: str, folder: Path | None) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._place = place
        self._folder = folder
        self._turn = threading.Lock()
        self._trouble: str | None = None
        """Why this store can be used no longer."""
        self._max_pages = _NO_LIMIT
        self._full_next = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """What is in the log goes into the file; a second call does nothing."""
        with self._turn:
            self._trouble = "the store is closed"
            try:
                self._connection.close()
            except apsw.Error as error:
                raise self._fault(error) from None

    def rows(self, table: Table[Row]) -> Iterator[Row]:
        """In the order of the key, read in batches: what is committed meanwhile may show."""
        shape = shape_of(table)
        sql = _STATEMENTS[table]
        batch = self._read(sql.first_rows)
        while batch:
            yield from map(shape.table.row._make, batch)
            if len(batch) < _ROWS_AT_A_TIME:
                return
            batch = self._read(sql.next_rows, batch[-1][: table.key])

    def commit(self, transaction: Transaction) -> None:
        self._commit(list(_batches(transaction)))

    def prepare(self, transaction: Transaction) -> Callable[[], None]:
        """The rows of an ordinary turn are written at once, and only then is the disk waited for.

        apsw lets other Python threads run at every row. In a thread beside a busy event loop each
        row would wait for its turn there, and the loop for the row: far longer than both work.
        """
        batches = list(_batches(transaction))
        is_small = sum(len(rows) for _, rows in batches) <= _MOST_ROWS_AT_ONCE
        if not batches or not is_small or not self._turn.acquire(blocking=False):
            return partial(self._commit, batches)
        self._write(batches)
        return self._make_last

    def _commit(self, batches: list[tuple[str, list[Any]]]) -> None:
        if batches:
            self._turn.acquire()
            self._write(batches)
            self._make_last()

    def backup(self, path: str | Path) -> None:
        """Copies the store to a new file, while others go on committing.

        The backup is done only when the store's own mark has been changed too: see `qns.lineage`.
        """
        with self._turn:
            self._check_usable()
        back_up(self._connection, self._turn, Path(path))

    def snapshot(self) -> SqliteSnapshot:
        with self._turn:
            self._check_usable()
            try:
                return SqliteSnapshot(self._connection.serialize("main"))
            except apsw.Error as error:
                raise self._fault(error) from None

    # A full disk, for tests and simulated peers: SQLite itself refuses another page.

    def limit_pages(self, pages: int | None) -> None:
        """From now on the file has no more than this many pages, or as many as it has already."""
        with self._turn:
            self._max_pages = _NO_LIMIT if pages is None else pages
            self._connection.pragma("max_page_count", self._max_pages)

    def fail_next_commit(self, fails: bool = True) -> None:
        """The next commit finds the disk full, however little it needs; or does not, after all."""
        self._full_next = fails

    def _read(self, sql: str, key: tuple[Any, ...] = ()) -> list[Any]:
        with self._turn:
            self._check_usable()
            try:
                return self._cursor.execute(sql, key).fetchall()
            except apsw.Error as error:
                raise self._fault(error) from None

    def _write(self, batches: list[tuple[str, list[Any]]]) -> None:
        """Has the turn, and keeps it unless something goes wrong."""
        with self._giving_up():
            self._check_usable()
            may_grow = self._has_room()
            self._write_rows(batches, may_grow)

    def _make_last(self) -> None:
        with self._giving_up():
            self._cursor.execute("COMMIT")
        self._turn.release()

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """If this goes wrong, nothing of the transaction is left and it is another's turn."""
        try:
            yield
        except BaseException as error:
            if self._trouble is None:
                self._roll_back()
            fault = self._fault(error) if isinstance(error, apsw.Error) else error
            self._turn.release()
            raise fault from None

    def _write_rows(self, batches: list[tuple[str, list[Any]]], may_grow: bool) -> None:
        cursor = self._cursor
        cursor.execute("BEGIN IMMEDIATE")
        pages = 0 if may_grow else self._pages()
        for sql, rows in batches:
            cursor.executemany(sql, rows)
        if not may_grow and self._pages() > pages:
            raise StoreFull(
                f"less than {self._low_water_bytes:,} bytes are free on the disk",
                place=self._place,
                remedy="free some space",
            )
        if self._full_next:
            self._full_next = False
            self._overflow()

    def _pages(self) -> int:
        pages: int = self._connection.pragma("page_count")
        return pages

    def _overflow(self) -> None:
        """Asks for more pages than there are, for a table that never comes to be."""
        free = (self._connection.pragma("freelist_count") + 1) * self._connection.pragma(
            "page_size"
        )
        self._connection.pragma("max_page_count", 1)
        try:
            self._cursor.execute("CREATE TABLE overflow (filler BLOB)")
            self._cursor.execute("INSERT INTO overflow VALUES (zeroblob(?))", (free,))
        finally:
            self._connection.pragma("max_page_count", self._max_pages)

    def _has_room(self) -> bool:
        """Asked before every commit: it costs a hundredth of what the commit costs."""
        if self._folder is None:
            return True
        try:
            disk = os.statvfs(self._folder)
        except OSError as error:
            raise from_os(error, self._place) from None
        return disk.f_bavail * disk.f_frsize >= self._low_water_bytes

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")
        except apsw.Error as error:
            self._trouble = str(from_sqlite(error, ""))

    def _check_usable(self) -> None:
        if self._trouble is not None:
            raise StoreFailed(self._trouble, place=self._place, remedy="open the store again")

    def _fault(self, error: apsw.Error) -> QnsError:
        fault = from_sqlite(error, self._place)
        if shakes_trust(error):
            self._trouble = f"an earlier fault: {fault.problem}"
        return fault


@dataclass(frozen=True, slots=True)
class _Statements:
    put: str
    delete: str
    first_rows: str
    next_rows: str


def _statements(shape: Shape) -> _Statements:
    # Names come from TABLES, not from outside; quoted because some of them are words of SQL.
    table = f'"{shape.table.name}"'
    columns = ", ".join(f'"{column.name}"' for column in shape.columns)
    keys = ", ".join(f'"{column.name}"' for column in shape.keys)
    marks = ", ".join("?" * len(shape.columns))
    key_marks = ", ".join("?" * len(shape.keys))
    select = f"SELECT {columns} FROM {table}"  # noqa: S608
    tail = f"ORDER BY {keys} LIMIT {_ROWS_AT_A_TIME}"
    return _Statements(
        put=f"REPLACE INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608
        delete=f"DELETE FROM {table} WHERE ({keys}) = ({key_marks})",  # noqa: S608
        first_rows=f"{select} {tail}",
        next_rows=f"{select} WHERE ({keys}) > ({key_marks}) {tail}",
    )


def _batches(transaction: Transaction) -> Iterator[tuple[str, list[Any]]]:
    """One statement for all deletions of a table, one for all its new rows; values are checked."""
    for table, changes in transaction.changes():
        shape = shape_of(table)
        rows = [row for row in changes.values() if row is not None]
        gone = []
        if len(rows) < len(changes):
            gone = [key for key, row in changes.items() if row is None]
        shape.check_rows(rows)
        for key in gone:
            shape.check_key(key)
        if gone:
            yield _STATEMENTS[table].delete, gone
        if rows:
            yield _STATEMENTS[table].put, rows


_STATEMENTS: Final = {table: _statements(shape) for table, shape in SHAPES.items()}
