"""Recovery: secures the log that a crashed process has left, before SQLite uses it.

After a failed sync, the operating system may show what it could not write as if it were on the
disk. If SQLite copied it into the file, a power cut in between would leave pages of a transaction
in the file that the log on the disk does not have. So the log is first written again as it is read,
and forced to the disk. From then on, the log on the disk and the log that SQLite reads are equal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

from qns.errors import StoreFailed
from qns.store.faults import from_os
from qns.store.log import check_log, log_of

_CHUNK_BYTES: Final = 2**16
"""SQLite's file layer writes less than 128 KiB at once."""
_FLAGS: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_JOURNAL
"""Opens the log as a journal: for a log, SQLite's file layer needs the open file of the store."""


def has_log(path: Path) -> bool:
    """True if there is a log beside the file and it has any content."""
    try:
        return log_of(path).stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise from_os(error, str(path)) from None


def secure_log(connection: apsw.Connection, path: Path, vfs: str) -> None:
    """Checks the log of a store and forces it to the disk again; raises StoreFailed if it cannot.

    The connection must be in exclusive mode. Close it afterwards without a checkpoint, so that the
    next one reads the log that is on the disk.
    """
    connection.execute("BEGIN IMMEDIATE; ROLLBACK")  # takes the lock and reads the log
    check_log(path, verified_frames(connection))
    _write_again(log_of(path), vfs)


def verified_frames(connection: apsw.Connection) -> int:
    """Returns the number of frames in the log that SQLite has verified and uses."""
    frames, _ = connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_NOOP)
    return max(frames, 0)


def keep_log_at_close(connection: apsw.Connection, keeps: bool) -> None:
    """Sets whether closing leaves the log as it is, or copies it into the file and deletes it."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(keeps))


def _write_again(log: Path, vfs: str) -> None:
    """Writes the content of the log to the places where it is, and forces it to the disk."""
    file = apsw.VFSFile(vfs, str(log), [_FLAGS, 0])
    try:
        size = file.xFileSize()
        for offset in range(0, size, _CHUNK_BYTES):
            amount = min(_CHUNK_BYTES, size - offset)
            content = file.xRead(amount, offset)
            if len(content) < amount:
                raise StoreFailed("the log ends while it is read", place=str(log))
            file.xWrite(content, offset)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()
