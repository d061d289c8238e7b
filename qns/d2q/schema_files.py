"""Schema files: loads a schema by name or from a file, as the commands accept it."""

from __future__ import annotations

from pathlib import Path

from qns.d2q.dtd import read_dtd
from qns.d2q.schema import Schema
from qns.d2q.schema_xml import MAX_SCHEMA_BYTES, read_schema
from qns.d2q.shipped import SHIPPED
from qns.errors import DocumentError, NameNotKnown, QnsError, shorten

_READERS = {".dtd": read_dtd, ".xml": read_schema}
_REMEDY = f"give {' or '.join(SHIPPED)}, a .dtd file or an .xml schema file"


def load_schema(name_or_path: str) -> Schema:
    """Returns a shipped schema by its name (in any case), or the schema in a .dtd or .xml file."""
    shipped = SHIPPED.get(name_or_path.casefold())
    if shipped is not None:
        return shipped
    reader = _READERS.get(Path(name_or_path).suffix.lower())
    if reader is None:
        problem = NameNotKnown("schema", name_or_path, SHIPPED)
        problem.remedy = f"{problem.remedy} or {_REMEDY}" if problem.near_misses else _REMEDY
        raise problem
    data = _read_file(name_or_path)
    try:
        return reader(data)
    except QnsError as problem:
        raise problem.at(name_or_path) from None


def _read_file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_SCHEMA_BYTES + 1)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise DocumentError(
            f"the schema file {shorten(path, 200)} cannot be read: {reason or problem}",
            place=path[:200],
            remedy=_REMEDY,
        ) from None
