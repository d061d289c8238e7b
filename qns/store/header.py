"""Header: recognises the file of a store by its first bytes, also if some bits have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

from qns.errors import StoreFailed
from qns.store.checksums import register
from qns.store.faults import damaged
from qns.store.layout import CHECKED_ID, UNCHECKED_ID

_BYTES: Final = 100
_FIRST: Final = b"SQLite format 3\0" + (4_096).to_bytes(2, "big")
"""The name of the format and the size of a page, at the beginning of the file."""
_MODES: Final = (b"\x01\x01", b"\x02\x02")
"""What follows: the file has no log, or it has one."""
_FRACTIONS: Final = b"\x40\x20\x20"
"""What follows the number of reserved bytes; SQLite accepts nothing else."""
_FORMS: Final = tuple(
    _FIRST + reserved + _FRACTIONS + application_id.to_bytes(4, "big")
    for reserved, application_id in (
        (b"\x08", CHECKED_ID),
        (b"\x08", UNCHECKED_ID),  # the last step of rewriting a store is missing
        (b"\x00", UNCHECKED_ID),
    )
)
"""What the headers of all stores have."""
_MOST_CHANGED_BITS: Final = 4
_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB


def check_header(path: Path) -> None:
    """Raises StoreFailed if the header is that of a store in which a few bits have changed.

    SQLite would take the file for one of another program, or of another version of SQLite. The
    header is read through SQLite's file layer, because closing the file in any other way would
    release the locks that this process holds on it.
    """
    header = _header(path)
    if header is None:
        return
    found = header[: len(_FIRST)] + header[20:24] + header[68:72]
    changed = min(_changed_bits(found, form) for form in _FORMS)
    if 0 < changed <= _MOST_CHANGED_BITS or (changed == 0 and header[18:20] not in _MODES):
        raise page_1_damaged(path)


def page_1_damaged(path: Path) -> StoreFailed:
    return damaged("page 1 has changed on the disk", str(path))


def _header(path: Path) -> bytes | None:
    """Returns the first bytes of a file, or None if there is no file or it is too short."""
    if not path.is_file():
        return None
    try:
        file = apsw.VFSFile(register(), str(path), [_FLAGS, 0])
        try:
            return file.xRead(_BYTES, 0)
        finally:
            file.xClose()
    except apsw.Error:
        return None  # whoever opens it next reports why it cannot be read


def _changed_bits(found: bytes, form: bytes) -> int:
    return (int.from_bytes(found, "big") ^ int.from_bytes(form, "big")).bit_count()
