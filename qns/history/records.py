"""Records: the format of a history, one JSON object per line, in the order of the commits.

Each record has `t` (seconds) and `do`. All but `schema`, `calm`, `lull` and `ways` have `org`, the
organisation whose peer or operator acted. `FIELDS` is the format; docs/history.md explains it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

from qns.errors import DocumentError, NameNotKnown, show

Record = Mapping[str, Any]

_STREAM = {"source": str, "joined": int, "own": int, "epoch": int}
_DELIVERY = {"sub": str, "group": str, "source": str, "event": str}

FIELDS: Final[Mapping[str, Mapping[str, type]]] = MappingProxyType(
    {
        "schema": {"xml": str},
        "join": {"org": str, "joined": int},
        "leave": {"org": str, "joined": int},
        "sub": {"org": str, "sub": str, "text": str, "group": str},
        "usub": {"org": str, "sub": str, "why": str},
        "pause": {"org": str, "sub": str},
        "resume": {"org": str, "sub": str},
        "stable": {
            "org": str,
            "sub": str,
            "producer": str,
            "joined": int,
            "epoch": int,
            "classes": list,
        },
        "pub": {"org": str, "event": dict, "joined": int, "epoch": int, "sequence": int},
        "ntfy": {"org": str, **_DELIVERY},
        "lapse": {"org": str, **_DELIVERY},
        "overflow": {"org": str, **_DELIVERY, "number": int},
        "ack": {"org": str, "sub": str, "upto": int, "count": int},
        "cross": {
            "org": str,
            "to": str,
            "joined": int,
            "epoch": int,
            "number": int,
            "event": str,
        },
        "take": {"org": str, **_STREAM, "number": int, "event": str},
        "skip": {"org": str, **_STREAM, "first": int, "last": int, "why": str},
        "rewind": {"org": str, **_STREAM, "first": int},
        "drop": {"org": str, "to": str, "joined": int, "number": int, "event": str},
        "withhold": {"org": str, "to": str, "joined": int, "number": int, "event": str},
        "discard": {"org": str, "to": str, "joined": int, "source": str, "event": str},
        "early": {"org": str, "source": str, "number": int, "event": str},
        "promise": {"org": str, "to": str, "joined": int, "source": str, "event": str},
        "relay": {"org": str, "to": str, "joined": int, "source": str, "event": str},
        "host": {"org": str, "classes": list},
        "rights": {"org": str, "to": str, "joined": int, "classes": list},
        "start": {"org": str, "epoch": int, "restored": bool},
        "restore": {"org": str, "since": float},
        "calm": {},
        "lull": {"absent": list},
        "ways": {"ways": list},
    }
)
"""`do` -> the fields that a record of this kind has besides `t` and `do`, and their types."""

_REQUIRED = {do: {"do": str, "t": float, **fields} for do, fields in FIELDS.items()}
_QUICK = {do: (itemgetter(*due), (*due.values(),)) for do, due in _REQUIRED.items()}
_LISTS = {
    "stable": "classes",
    "host": "classes",
    "rights": "classes",
    "lull": "absent",
    "ways": "ways",
}
_CONSTRAINED = {"restore", "skip", *_LISTS}
_TYPES = {
    str: ("a string", 'in quotes, as in "INPS"'),
    int: ("a whole number", "as in 3"),
    bool: ("true or false", "as in true"),
    float: ("a number of seconds", "as in 12.5"),
    list: ("a list of strings", 'as in ["Report/Wind"]'),
    dict: ("an object", 'as in {"id": …, "class": …}'),
}


def checked(record: Record) -> Record:
    """Returns the record if it is valid; raises DocumentError or NameNotKnown otherwise."""
    do = record.get("do")
    if type(do) is not str or do not in _QUICK:
        raise _unknown(do)
    values, types = _QUICK[do]
    try:
        is_right = tuple(map(type, values(record))) == types
    except KeyError:
        is_right = False
    if not is_right:
        _check_types(do, record)
    if not isfinite(record["t"]):
        raise DocumentError(f"'t' of {do} is {record['t']}", remedy="give seconds, as in 12.5")
    if do in _CONSTRAINED:
        _check_values(do, record)
    return record


def new_record(do: str, t: float, org: str = "", /, **fields: Any) -> Record:
    """Returns a valid record, as in `new_record("usub", 12.5, "INPS", sub="U3", why="expired")`."""
    return checked({"t": t, "do": do, **({"org": org} if org else {}), **fields})


def read_records(lines: Iterable[str | bytes]) -> Iterator[Record]:
    """Yields the records of these lines and ignores empty ones.

    Programs read the file of a history with it and give the records to `judge`.
    Raises a QnsError with the line's number if a line is not a valid record.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield read_record(line)
        except (DocumentError, NameNotKnown) as problem:
            raise problem.at_mark(number, None) from None


def read_record(line: str | bytes) -> Record:
    """Reads one line; raises DocumentError or NameNotKnown if it is not a valid record."""
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as problem:
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise DocumentError(f"not JSON: {reason}", remedy="one record on one line") from None
    if type(record) is not dict:
        raise DocumentError(
            f"{show(record)} is not a record", remedy='a record is an object with "t" and "do"'
        )
    return checked(record)


def write_record(record: Record) -> str:
    """Returns the record as one line, with its line end."""
    return json.dumps(dict(record), ensure_ascii=False, allow_nan=False) + "\n"


def _unknown(do: object) -> DocumentError | NameNotKnown:
    if type(do) is str:
        return NameNotKnown("record", do, FIELDS)
    what = "is missing" if do is None else f"is {show(do)}"
    return DocumentError(f"'do' {what}", remedy=f"one of {', '.join(FIELDS)}")


def _check_types(do: str, record: Record) -> None:
    """Raises DocumentError for the first field of a wrong type; accepts int for float."""
    for name, kind in _REQUIRED[do].items():
        value = record.get(name)
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise _wrong(do, name, kind, record)


def _check_values(do: str, record: Record) -> None:
    """Raises DocumentError if a field of the right type has an impossible value."""
    if do == "restore" and not isfinite(record["since"]):
        raise _wrong(do, "since", float, record)
    if do in _LISTS and not all(type(each) is str for each in record[_LISTS[do]]):
        raise _wrong(do, _LISTS[do], list, record)
    if do == "skip" and record["first"] > record["last"]:
        raise DocumentError(
            f"a skip from {record['first']} to {record['last']}", remedy="first is at most last"
        )


def _wrong(do: object, name: str, kind: type, record: Record) -> DocumentError:
    wanted, example = _TYPES[kind]
    if name not in record:
        return DocumentError(f"{do} has no '{name}'", remedy=f"give {wanted}, {example}")
    return DocumentError(
        f"'{name}' of {do} is {show(record[name])}, not {wanted}", remedy=f"give it {example}"
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
