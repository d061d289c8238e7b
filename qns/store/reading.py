"""Reading: gives read-only access to the rows of a store, for evaluations.

Nothing is written, migrated or created beside the store. The store of a running peer is rejected,
because the peer uses it exclusively; a backup of it can be read.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from contextlib import closing
from itertools import starmap
from pathlib import Path
from typing import Any, Self

import apsw

from qns.errors import DocumentError, DuplicateId
from qns.peer.tables import ALL, IdentityRow, Key, Row, Table
from qns.store.columns import TableLayout, layout_of
from qns.store.connection import open_read_only
from qns.store.faults import from_sqlite, in_use
from qns.store.statements import STATEMENTS


class StoreReader:
    def __init__(self, path: str | Path) -> None:
        self._place = str(path)
        self._log = Path(f"{path}-wal")
        # The log exists while a peer runs, and after a crash.
        self._is_unused = not self._log.exists()
        self._connection = open_read_only(Path(path), is_unused=self._is_unused)
        try:
            self._connection.execute("BEGIN")  # all rows are read from one state
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
        if kind is None and self._is_unused and self._log.exists():
            raise in_use(self._place)  # a peer has started since, so the rows may be inconsistent

    def rows(self, table: Table[Row]) -> Iterator[Row]:
        """Yields the rows in the order of the key, or none if the store is older than the table.

        A column that the store is too old to have has its default.
        """
        if table.name not in self._tables:
            return
        layout = layout_of(table)
        columns = ", ".join(f'"{each}"' for each in self._columns(table.name, layout))
        keys = ", ".join(f'"{column.name}"' for column in layout.keys)
        try:
            with closing(self._connection.cursor()) as cursor:
                found = cursor.execute(f'SELECT {columns} FROM "{table.name}" ORDER BY {keys}')  # noqa: S608
                yield from starmap(table.row, found)
        except apsw.Error as error:
            raise from_sqlite(error, self._place) from None

    def get(self, table: Table[Row], key: Key) -> Row | None:
        """Returns the row with this key; None if there is none."""
        found = self._read(table, STATEMENTS[table].row, key)
        return found[0] if found else None

    def find(self, table: Table[Row], column: str, value: object) -> list[Row]:
        """Returns the rows with this value in a column that has an index."""
        layout_of(table).place_of(column)
        return self._read(table, STATEMENTS[table].find[column], (value, ALL))

    def _read(self, table: Table[Row], sql: str, values: tuple[Any, ...]) -> list[Row]:
        """Returns rows with all columns, or none if the store is older than the table."""
        if table.name not in self._tables:
            return []
        try:
            return [table.row(*each) for each in self._connection.execute(sql, values)]
        except apsw.Error as error:
            raise from_sqlite(error, self._place) from None

    def _columns(self, table: str, layout: TableLayout) -> list[str]:
        """Returns the columns that the store has; later ones of the row keep their defaults."""
        found = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        present = {name for (name,) in found}
        return [column.name for column in layout.columns if column.name in present]


def organisation_of(
    identity: Iterable[IdentityRow], path: str | Path, others: Container[str]
) -> str:
    """Returns the organisation of a store, given the rows of the store's table `IDENTITY`.

    Raises DocumentError if no peer has used the store, and DuplicateId if the organisation is in
    `others`.
    """
    row = next(iter(identity), None)
    if row is None:
        raise DocumentError("no peer has used this store yet", place=str(path))
    if row.organisation in others:
        raise DuplicateId(
            f"a second store of {row.organisation}",
            place=str(path),
            remedy="give one for each organisation",
        )
    return row.organisation
