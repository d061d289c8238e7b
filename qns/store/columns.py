"""Columns: the layout of each table, derived from the types of its row, and checks of values.

Both stores check values here before a commit. A value that SQLite would reject or change (a NaN, an
unpaired surrogate, a number beyond 64 bits) is therefore rejected by the store in memory too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from qns.errors import StoreFailed, show
from qns.peer.tables import TABLES, Table


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    """SQLite's name of the type: TEXT, INTEGER, REAL or BLOB."""
    nullable: bool
    takes: Callable[[object], bool]
    """True if the column can hold the value."""


@dataclass(frozen=True, slots=True, eq=False)
class TableLayout:
    """The columns of one table; the first ones are its key."""

    table: Table[Any]
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    _is_plain: Callable[..., bool]
    """A fast check: True only if all values fit. A row that fails it may still be valid."""

    def check_rows(self, rows: Iterable[Sequence[object]]) -> None:
        is_plain, width = self._is_plain, len(self.columns)
        for row in rows:
            if len(row) != width or not is_plain(*row):
                self._check(self.columns, row)

    def check_key(self, key: Sequence[object]) -> None:
        self._check(self.keys, key)

    def check_first(self, value: object) -> None:
        """Checks a value of the first column of the key."""
        self._check(self.keys[:1], (value,))

    def place_of(self, column: str) -> int:
        """Returns the place of a column that has an index."""
        if column not in self.table.indexed:
            raise self._refusal(f"has no index of {column}")
        return [each.name for each in self.columns].index(column)

    def _check(self, columns: tuple[Column, ...], values: Sequence[object]) -> None:
        if len(columns) != len(values):
            raise self._refusal(f"takes {len(columns)} values, not {len(values)}")
        for column, value in zip(columns, values, strict=True):
            if not column.takes(value):
                raise self._refusal(f"{column.name} ({column.kind}) does not take {show(value)}")

    def _refusal(self, problem: str) -> StoreFailed:
        return StoreFailed(problem, place=f"table {self.table.name}")


def layout_of(table: Table[Any]) -> TableLayout:
    if table not in LAYOUTS:
        raise StoreFailed(f"the store has no table {table.name}", remedy="list it in TABLES")
    return LAYOUTS[table]


def _layout(table: Table[Any]) -> TableLayout:
    columns = tuple(_column(name, hint) for name, hint in get_type_hints(table.row).items())
    return TableLayout(table, columns, columns[: table.key], _plain_check(columns))


def _plain_check(columns: tuple[Column, ...]) -> Callable[..., bool]:
    """Generates one expression that checks all columns; a loop would take several times as long.

    For a TEXT column and a nullable BLOB column, the expression is:

        lambda value0, value1: (type(value0) is str and value0.isascii())
            and (type(value1) is bytes or value1 is None)
    """
    arguments = ", ".join(f"value{index}" for index in range(len(columns)))
    tests = (
        _PLAIN[column.kind].format(f"value{index}")
        + (f" or value{index} is None" if column.nullable else "")
        for index, column in enumerate(columns)
    )
    check: Callable[..., bool] = eval(  # noqa: S307  # built from our own tables only
        f"lambda {arguments}: " + " and ".join(f"({test})" for test in tests)
    )
    return check


def _column(name: str, hint: Any) -> Column:
    for plain, (kind, takes) in _KINDS.items():
        if hint == plain:
            return Column(name, kind, False, takes)
        if hint == plain | None:
            return Column(name, kind, True, _or_none(takes))
    raise TypeError(f"{name}: no column holds {hint}")


def _takes_text(value: object) -> bool:
    return isinstance(value, str) and (value.isascii() or _is_unicode(value))


def _takes_integer(value: object) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _takes_real(value: object) -> bool:
    if isinstance(value, float):
        return value == value  # SQLite would store a NaN as NULL
    return isinstance(value, int) and -(2**53) <= value <= 2**53  # a double holds these exactly


def _takes_blob(value: object) -> bool:
    return isinstance(value, bytes)


def _or_none(takes: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or takes(value)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_KINDS: Final[dict[type, tuple[str, Callable[[object], bool]]]] = {
    str: ("TEXT", _takes_text),
    int: ("INTEGER", _takes_integer),
    float: ("REAL", _takes_real),
    bytes: ("BLOB", _takes_blob),
}

# The fast checks by type of column, as source text. They reject some valid values: subclasses and
# texts that are not ASCII.
_PLAIN: Final = {
    "TEXT": "type({0}) is str and {0}.isascii()",
    "INTEGER": f"type({{0}}) is int and {-(2**63)} <= {{0}} < {2**63}",
    "REAL": "type({0}) is float and {0} == {0}",
    "BLOB": "type({0}) is bytes",
}

LAYOUTS: Final = {table: _layout(table) for table in TABLES}
