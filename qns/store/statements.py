"""Statements: the SQL of each table, derived from its layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qns.store.columns import LAYOUTS, TableLayout

ROWS_PER_READ: Final = 256


@dataclass(frozen=True, slots=True)
class Statements:
    put: str
    delete: str
    first_rows: str
    next_rows: str
    row: str
    scan: str
    last_before: str
    find: dict[str, str]
    """Column -> the statement that finds rows by it."""


def _statements(layout: TableLayout) -> Statements:
    # The names come from TABLES, not from input. They are quoted because some are SQL keywords.
    table = f'"{layout.table.name}"'
    columns = ", ".join(f'"{column.name}"' for column in layout.columns)
    keys = ", ".join(f'"{column.name}"' for column in layout.keys)
    marks = ", ".join("?" * len(layout.columns))
    key_marks = ", ".join("?" * len(layout.keys))
    select = f"SELECT {columns} FROM {table}"  # noqa: S608
    before = "".join(f'"{column.name}" = ? AND ' for column in layout.keys[:-1])
    first, last = (f'"{column.name}"' for column in (layout.keys[0], layout.keys[-1]))
    backwards = ", ".join(f'"{column.name}" DESC' for column in layout.keys)
    tail = f"ORDER BY {keys} LIMIT {ROWS_PER_READ}"
    return Statements(
        put=f"REPLACE INTO {table} ({columns}) VALUES ({marks})",  # noqa: S608
        delete=f"DELETE FROM {table} WHERE ({keys}) = ({key_marks})",  # noqa: S608
        first_rows=f"{select} {tail}",
        next_rows=f"{select} WHERE ({keys}) > ({key_marks}) {tail}",
        row=f"{select} WHERE ({keys}) = ({key_marks})",
        scan=f"{select} WHERE {before}{last} > ? ORDER BY {last} LIMIT ?",
        last_before=f"{select} WHERE {first} < ? ORDER BY {backwards} LIMIT 1",
        find={
            column: f'{select} WHERE "{column}" = ? ORDER BY {keys} LIMIT ?'
            for column in layout.table.indexed
        },
    )


STATEMENTS: Final = {table: _statements(layout) for table, layout in LAYOUTS.items()}
