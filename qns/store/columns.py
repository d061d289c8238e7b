"""Columns: what each table can hold, read from the types of its row.

Both stores ask here before a commit, so that a row which the disk would refuse or alter (a NaN,
half of a surrogate pair, a number beyond 64 bits) is refused in memory too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from qns.errors import StoreFailed, show
from qns.tables import TABLES, Table


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    """SQLite's name for it: TEXT, INTEGER, REAL or BLOB."""
    nullable: bool
    takes: Callable[[object], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The columns of one table, the first of them its key."""

    table: Table[Any]
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    _is_plain: Callable[..., bool]
    """Whether a row holds nothing but what its columns take, as far as can be told quickly."""

    def check_rows(self, rows: Iterable[Sequence[object]]) -> None:
        is_plain, width = self._is_plain, len(self.columns)
        for row in rows:
            if len(row) != width or not is_plain(*row):
                self._check(self.columns, row)

    def check_key(self, key: Sequence[object]) -> None:
        self._check(self.keys, key)

    def _check(self, columns: tuple[Column, ...], values: Sequence[object]) -> None:
        if len(columns) != len(values):
            raise self._refusal(f"takes {len(columns)} values, not {len(values)}")
        for column, value in zip(columns, values, strict=True):
            if not column.takes(value):
                raise self._refusal(f"{column.name} ({column.kind}) does not take {show(value)}")

    def _refusal(self, problem: str) -> StoreFailed:
        return StoreFailed(problem, place=f"table {self.table.name}")


def shape_of(table: Table[Any]) -> Shape:
    if table not in SHAPES:
        raise StoreFailed(f"the store has no table {table.name}", remedy="list it in TABLES")
    return SHAPES[table]


def _shape(table: Table[Any]) -> Shape:
    columns = tuple(_column(name, hint) for name, hint in get_type_hints(table.row).items())
    return Shape(table, columns, columns[: table.key], _plain_check(columns))


def _plain_check(columns: tuple[Column, ...]) -> Callable[..., bool]:
    """One expression for all columns, for a loop over them takes several times as long."""
    arguments = ", ".join(f"value{at}" for at in range(len(columns)))
    tests = (
        _PLAIN[column.kind].format(f"value{at}") + (f" or value{at} is None" * column.nullable)
        for at, column in enumerate(columns)
    )
    check: Callable[..., bool] = eval(  # noqa: S307  # of our own tables only
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
        return value == value  # SQLite would make a NaN a NULL
    return isinstance(value, int) and -(2**53) <= value <= 2**53  # each of these is a double


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

_PLAIN: Final = {
    "TEXT": "type({0}) is str and {0}.isascii()",
    "INTEGER": f"type({{0}}) is int and {-(2**63)} <= {{0}} < {2**63}",
    "REAL": "type({0}) is float and {0} == {0}",
    "BLOB": "type({0}) is bytes",
}

SHAPES: Final = {table: _shape(table) for table in TABLES}
