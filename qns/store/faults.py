"""Faults: what SQLite and the operating system complain about, told as errors of QNS."""

from __future__ import annotations

import errno
from typing import Final

import apsw

from qns.errors import StoreFailed, StoreFull

RESTORE: Final = "put back the newest backup"


def from_sqlite(error: apsw.Error, place: str) -> StoreFull | StoreFailed:
    match error:
        case apsw.FullError():
            return no_room(place)
        case apsw.BusyError() | apsw.LockedError():
            return in_use(place)
        case apsw.NotADBError():
            return StoreFailed("is no store of QNS", place=place, remedy="give another file")
        case apsw.CorruptError():
            return StoreFailed("the store is damaged", place=place, remedy=RESTORE)
        case apsw.CantOpenError():
            return StoreFailed(
                "cannot be opened",
                place=place,
                remedy="check that the folder exists and that this user may write there",
            )
        case apsw.ReadOnlyError():
            return StoreFailed(
                "may not be written", place=place, remedy="let this user write the file"
            )
        case apsw.IOError():
            return StoreFailed(
                f"the disk failed: {_code(error) or error}",
                place=place,
                remedy="check the disk, then start again",
            )
    return StoreFailed(str(error), place=place)


def from_os(error: OSError, place: str) -> StoreFull | StoreFailed:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return no_room(place)
    return StoreFailed(
        error.strerror or str(error),
        place=place,
        remedy="check that it exists and that this user may read and write it",
    )


def no_room(place: str) -> StoreFull:
    return StoreFull("no room left on the disk", place=place, remedy="free some space")


def in_use(place: str) -> StoreFailed:
    return StoreFailed(
        "is in use by another process", place=place, remedy="stop that process first"
    )


def _code(error: apsw.Error) -> object:
    """Such as SQLITE_IOERR_FSYNC."""
    return apsw.mapping_extended_result_codes.get(getattr(error, "extendedresult", -1))


def shakes_trust(error: apsw.Error) -> bool:
    """Whether nobody knows any longer what is on the disk.

    After a failed fsync the system may have thrown away what it could not write, and a transaction
    reported as failed may be there after the next start.
    """
    return isinstance(error, apsw.IOError | apsw.CorruptError | apsw.NotADBError)
