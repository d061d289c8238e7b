"""Faults: converts errors of SQLite and of the operating system to errors of QNS."""

from __future__ import annotations

import errno
from typing import Final

import apsw

from qns.errors import StoreFailed, StoreFull

RESTORE: Final = "stop the peer and restore the newest backup with qns peer restore"


def from_sqlite(error: apsw.Error, place: str) -> StoreFull | StoreFailed:
    match error:
        case apsw.FullError():
            return no_room(place)
        case apsw.BusyError() | apsw.LockedError():
            return in_use(place)
        case apsw.NotADBError():
            return StoreFailed("is no store of QNS", place=place, remedy="give another file")
        case apsw.CorruptError():
            return damaged("its structure is wrong", place)
        case apsw.IOError() if is_wrong_checksum(error):
            return damaged("a page has changed on the disk", place)
        case apsw.CantOpenError():
            return StoreFailed(
                "cannot be opened",
                place=place,
                remedy="check that the folder exists and that this user may write there",
            )
        case apsw.ReadOnlyError():
            return StoreFailed(
                "is not writable", place=place, remedy="let this user write the file"
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


def damaged(how: str, place: str) -> StoreFailed:
    return StoreFailed(f"the store is damaged: {how}", place=place, remedy=RESTORE)


def no_room(place: str) -> StoreFull:
    return StoreFull("no room left on the disk", place=place, remedy="free some space")


def in_use(place: str) -> StoreFailed:
    return StoreFailed(
        "is in use by another process", place=place, remedy="stop that process first"
    )


def is_wrong_checksum(error: apsw.Error) -> bool:
    return getattr(error, "extendedresult", -1) == apsw.SQLITE_IOERR_DATA


def _code(error: apsw.Error) -> object:
    """Returns the name of the extended result code, such as SQLITE_IOERR_FSYNC."""
    return apsw.mapping_extended_result_codes.get(getattr(error, "extendedresult", -1))


def leaves_disk_unknown(error: apsw.Error) -> bool:
    """True if the state of the disk is unknown after the error.

    After a failed fsync, the operating system may have discarded data that it could not write. A
    transaction that was reported as failed may also be there after the next start.
    """
    return isinstance(error, apsw.IOError | apsw.CorruptError | apsw.NotADBError)
