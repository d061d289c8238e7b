"""The store on disk: SQLite with a write-ahead log, which every commit forces to the disk.

Any number of threads may use it; a lock serialises them. When `commit` returns, the transaction is
in the log and on the disk. SQLite copies the log into the file from time to time.
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
from qns.peer.tables import ALL, Key, Row, Table
from qns.peer.turn import Transaction
from qns.store import connection as connections
from qns.store.checksums import PageReader, described, has_checksums
from qns.store.columns import layout_of
from qns.store.compaction import Compaction
from qns.store.copies import OnCopied, back_up
from qns.store.faults import damaged, from_os, from_sqlite, leaves_disk_unknown
from qns.store.recovery import keep_log_at_close
from qns.store.statements import ROWS_PER_READ, STATEMENTS

LOW_WATER_BYTES: Final = 64 * 2**20
_MOST_ROWS_PREPARED: Final = 4_096
"""The most rows that `prepare` writes itself; this takes some milliseconds."""
_FACTS: Final = (
    *("application_id", "user_version", "page_size", "page_count", "freelist_count"),
    *("journal_mode", "synchronous", "auto_vacuum", "journal_size_limit", "wal_autocheckpoint"),
)
"""The pragmas that diagnostics show."""
_NO_LIMIT: Final = 2**32 - 2


@dataclass(frozen=True, slots=True)
class SqliteSnapshot:
    """The content of a store at one time; only `SqliteStore` uses its field."""

    content: bytes


class SqliteStore:
    """Implements `ports.Store` with a file.

    If the disk has less than `low_water_bytes` of free space, a transaction is rejected if the file
    would have to grow for it. This space is a reserve: on a completely full disk, SQLite can
    neither delete rows nor copy its log into the file.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        low_water_bytes: int = LOW_WATER_BYTES,
        vfs: str | None = None,
        log_bytes: int = connections.LOG_BYTES,
    ) -> None:
        path = Path(path)
        self._low_water_bytes = low_water_bytes
        self._set_up(connections.open_file(path, vfs, log_bytes), str(path), path)

    @classmethod
    def in_memory(cls, name: str) -> Self:
        """Opens a store in memory, whose rows are kept until `forget(name)` or the process ends.

        Closing it and opening it again by its name simulates a crash and a restart.
        """
        store = cls.__new__(cls)
        store._low_water_bytes = 0
        store._set_up(connections.open_in_memory(name), f"memory {name}", None)
        return store

    @classmethod
    def from_snapshot(cls, name: str, snapshot: SqliteSnapshot) -> Self:
        """Replaces the content of a closed store in memory by a snapshot, and opens it."""
        connections.fill_memory(name, snapshot.content)
        return cls.in_memory(name)

    @staticmethod
    def forget(name: str) -> None:
        """Frees the rows of a store in memory as soon as it is closed."""
        connections.forget(name)

    def _set_up(self, connection: apsw.Connection, place: str, path: Path | None) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._place = place
        self._folder = None if path is None else path.absolute().parent
        self._lock = threading.Lock()
        self.has_checksums = path is not None and has_checksums(connection)
        self._pages = None if path is None or not self.has_checksums else PageReader(path)
        self._next_page = 1
        self._compaction = None if path is None else Compaction(connection, path)
        self._unusable_reason: str | None = None
        """Why this store cannot be used any more, or None."""
        self._next_commit_fails = False

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
        """Copies the log into the file and closes it. A second call does nothing."""
        with self._lock:
            self._unusable_reason = "the store is closed"
            try:
                if self._pages is not None:
                    self._pages.close()
                self._connection.close()
            except apsw.Error as error:
                raise from_sqlite(error, self._place) from None

    def rows(self, table: Table[Row]) -> Iterator[Row]:
        """Yields rows in the order of the key. Rows committed while it runs may be included."""
        layout = layout_of(table)
        sql = STATEMENTS[table]
        batch = self._read(sql.first_rows)
        while batch:
            yield from map(layout.table.row._make, batch)
            if len(batch) < ROWS_PER_READ:
                return
            batch = self._read(sql.next_rows, batch[-1][: table.key])

    def get(self, table: Table[Row], key: Key) -> Row | None:
        layout_of(table).check_key(key)
        found = self._read(STATEMENTS[table].row, key)
        return self._made(table, found)[0] if found else None

    def scan(self, table: Table[Row], prefix: Key, after: int, limit: int) -> list[Row]:
        layout_of(table).check_key((*prefix, after))
        return self._made(table, self._read(STATEMENTS[table].scan, (*prefix, after, limit)))

    def last_before(self, table: Table[Row], bound: int) -> Row | None:
        layout_of(table).check_first(bound)
        found = self._made(table, self._read(STATEMENTS[table].last_before, (bound,)))
        return found[0] if found else None

    def find(self, table: Table[Row], column: str, value: object, limit: int = ALL) -> list[Row]:
        layout_of(table).place_of(column)
        return self._made(table, self._read(STATEMENTS[table].find[column], (value, limit)))

    def _made(self, table: Table[Row], found: list[Any]) -> list[Row]:
        return list(map(layout_of(table).table.row._make, found))

    def commit(self, transaction: Transaction) -> None:
        self._commit(list(_batches(transaction)))

    def prepare(self, transaction: Transaction) -> Callable[[], None]:
        """Writes the rows of a small transaction; the returned function waits for the disk.

        The rows are written in the caller's thread, because apsw releases Python's global lock at
        every row. In a thread beside a busy event loop, each row would wait for the event loop and
        the event loop for the row, which takes far longer than the work itself.
        """
        batches = list(_batches(transaction))
        is_small = sum(len(rows) for _, rows in batches) <= _MOST_ROWS_PREPARED
        if not batches or not is_small or not self._lock.acquire(blocking=False):
            return partial(self._commit, batches)
        self._write(batches)
        return self._finish_commit

    def _commit(self, batches: list[tuple[str, list[Any]]]) -> None:
        if batches:
            self._lock.acquire()
            self._write(batches)
            self._finish_commit()

    def backup(self, path: str | Path, on_copied: OnCopied = lambda *_: None) -> None:
        """Copies the store to a new file, while other threads can commit.

        The backup is complete only when the store's mark has been changed: see `qns.peer.lineage`.
        """
        with self._lock:
            self._check_usable()
        back_up(self._connection, self._lock, Path(path), on_copied)

    def facts(self) -> dict[str, int | str]:
        """Returns settings and sizes of the SQLite file, for diagnostics."""
        with self._lock:
            self._check_usable()
            try:
                pragmas = {name: self._connection.pragma(name) for name in _FACTS}
            except apsw.Error as error:
                raise self._fault(error) from None
        return {**pragmas, "sqlite": apsw.sqlite_lib_version(), "apsw": apsw.apsw_version()}

    def check_next_pages(self, count: int) -> None:
        """Verifies the checksums of the next pages of the file, from the first after the last.

        Raises StoreFailed if a page has changed on the disk; the store is unusable then.
        """
        with self._lock:  # SQLite writes the file only while a transaction is committed
            self._check_usable()
            if self._pages is None:
                return
            try:
                end = min(self._next_page + count, self._pages.pages + 1)
                found = self._pages.damaged(range(self._next_page, end))
                self._next_page = end if end <= self._pages.pages else 1
                if found:
                    fault = damaged(described(self._connection, found), self._place)
                    self._give_up(fault.problem)
                    raise fault
            except apsw.Error as error:
                raise self._fault(error) from None

    def compact(self) -> None:
        """Gives some of the space of deleted rows back to the disk, if there is much of it."""
        with self._lock:
            self._check_usable()
            try:
                if self._compaction is not None:
                    self._compaction.step()
            except apsw.Error as error:
                raise self._fault(error) from None
            except OSError as error:
                raise from_os(error, self._place) from None

    def snapshot(self) -> SqliteSnapshot:
        with self._lock:
            self._check_usable()
            try:
                return SqliteSnapshot(self._connection.serialize("main"))
            except apsw.Error as error:
                raise self._fault(error) from None

    def fail_next_commit(self, fails: bool = True) -> None:
        """Makes the next commit fail as on a full disk, for simulated peers; False cancels it."""
        self._next_commit_fails = fails

    def _read(self, sql: str, key: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock:
            self._check_usable()
            try:
                return self._cursor.execute(sql, key).fetchall()
            except apsw.Error as error:
                raise self._fault(error) from None

    def _write(self, batches: list[tuple[str, list[Any]]]) -> None:
        """Writes the rows of a transaction. The caller holds the lock; an error releases it."""
        with self._rolling_back_on_error():
            self._check_usable()
            may_grow = self._has_room()
            self._write_rows(batches, may_grow)

    def _finish_commit(self) -> None:
        with self._rolling_back_on_error():
            self._cursor.execute("COMMIT")
        self._lock.release()

    @contextmanager
    def _rolling_back_on_error(self) -> Iterator[None]:
        """After an error, rolls the transaction back and releases the lock."""
        try:
            yield
        except BaseException as error:
            if self._unusable_reason is None:
                self._roll_back()
            fault = self._fault(error) if isinstance(error, apsw.Error) else error
            self._lock.release()
            raise fault from None

    def _write_rows(self, batches: list[tuple[str, list[Any]]], may_grow: bool) -> None:
        cursor = self._cursor
        cursor.execute("BEGIN IMMEDIATE")
        pages = 0 if may_grow else self._page_count()
        for sql, rows in batches:
            cursor.executemany(sql, rows)
        if not may_grow and self._page_count() > pages:
            raise StoreFull(
                f"less than {self._low_water_bytes:,} bytes are free on the disk",
                place=self._place,
                remedy="free some space",
            )
        if self._next_commit_fails:
            self._next_commit_fails = False
            self._overflow()

    def _page_count(self) -> int:
        pages: int = self._connection.pragma("page_count")
        return pages

    def _overflow(self) -> None:
        """Makes SQLite report a full disk: it limits the pages and then requests another one."""
        free = (self._connection.pragma("freelist_count") + 1) * self._connection.pragma(
            "page_size"
        )
        self._connection.pragma("max_page_count", 1)
        try:
            self._cursor.execute("CREATE TABLE overflow (filler BLOB)")
            self._cursor.execute("INSERT INTO overflow VALUES (zeroblob(?))", (free,))
        finally:
            self._connection.pragma("max_page_count", _NO_LIMIT)

    def _has_room(self) -> bool:
        """True if the disk has more free space than the reserve.

        It is called before every commit and takes about a hundredth of the time of a commit.
        """
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
            self._give_up(str(from_sqlite(error, "")))

    def _check_usable(self) -> None:
        if self._unusable_reason is not None:
            raise StoreFailed(
                self._unusable_reason, place=self._place, remedy="open the store again"
            )

    def _fault(self, error: apsw.Error) -> QnsError:
        fault = from_sqlite(error, self._place)
        if leaves_disk_unknown(error):
            self._give_up(f"an earlier error made it unusable: {fault.problem}")
        return fault

    def _give_up(self, reason: str) -> None:
        """Rejects all further work; the log stays as it is until the store is opened again."""
        self._unusable_reason = reason
        keep_log_at_close(self._connection, True)


def _batches(transaction: Transaction) -> Iterator[tuple[str, list[Any]]]:
    """Yields one statement for the deletions and one for the new rows of each table.

    Raises StoreFailed if a value does not fit its column.
    """
    for table, changes in transaction.changes():
        layout = layout_of(table)
        rows = [row for row in changes.values() if row is not None]
        deleted = []
        if len(rows) < len(changes):
            deleted = [key for key, row in changes.items() if row is None]
        layout.check_rows(rows)
        for key in deleted:
            layout.check_key(key)
        if deleted:
            yield STATEMENTS[table].delete, deleted
        if rows:
            yield STATEMENTS[table].put, rows
