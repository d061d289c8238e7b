"""Reading: a store looked at and left as it is, for who evaluates what it remembers.

Nothing is written, migrated or left beside it. The store of a running peer belongs to that peer
alone, so it is refused at once: a backup of it can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Self
from urllib.parse import quote

import apsw

from qns.errors import StoreFailed
from qns.store.columns import shape_of
from qns.store.connection import APPLICATION_ID, open_copy
from qns.store.faults import from_sqlite, in_use
from qns.store.migrations import checked_version
from qns.tables import Row, Table


class StoreReader:
    def __init__(self, path: str | Path) -> None:
        self._place = str(path)
        self._log = Path(f"{path}-wal")
        # A peer has a log beside its store while it runs, and after a crash.
        self._still = not self._log.exists()
        self._connection = _open_still(Path(path)) if self._still else open_copy(Path(path))
        try:
            self._connection.execute("BEGIN")  # all that is read is of the same moment
            self._tables = {
                name for (name,) in self._connection.execute("SELECT name FROM sqlite_schema")
            }
        except apsw.Error as error:
            self._connection.close()
            raise from_sqlite(error, self._place) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._connection.close()
        if kind is None and self._still and self._log.exists():
            raise in_use(self._place)  # a peer has started on it meanwhile

    def rows(self, table: Table[Row]) -> Iterator[Row]:
        """In the order of the key; none if the store is older than the table."""
        if table.name not in self._tables:
            return
        shape = shape_of(table)
        columns = ", ".join(f'"{column.name}"' for column in shape.columns)
        keys = ", ".join(f'"{column.name}"' for column in shape.keys)
        try:
            with closing(self._connection.cursor()) as cursor:
                found = cursor.execute(f'SELECT {columns} FROM "{table.name}" ORDER BY {keys}')  # noqa: S608
                yield from map(table.row._make, found)  # type: ignore[attr-defined]
        except apsw.Error as error:
            raise from_sqlite(error, self._place) from None


def _open_still(path: Path) -> apsw.Connection:
    """A store that nobody is using: no lock is taken, and nothing appears beside it."""
    place = str(path)
    if not path.is_file():
        raise StoreFailed("there is no such file", place=place, remedy="give the store of a peer")
    name = f"file:{quote(str(path.absolute()))}?immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        connection = apsw.Connection(name, flags=flags)
    except apsw.Error as error:
        raise from_sqlite(error, place) from None
    try:
        if connection.pragma("application_id") != APPLICATION_ID:
            raise StoreFailed(
                "is a SQLite file of another program", place=place, remedy="give another file"
            )
        checked_version(connection, place)
    except apsw.Error as error:
        connection.close()
        raise from_sqlite(error, place) from None
    except BaseException:
        connection.close()
        raise
    return connection
