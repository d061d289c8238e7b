"""Compaction: gives the space of deleted rows back to the disk while the store is in use.

It works in small steps between the commits. When nothing has been written for a while, it also
copies the log into the file and empties it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

_PAGES_PER_STEP: Final = 256
_FEWEST_FREE: Final = 1_024
"""Free pages that are always kept (4 MiB), because the next rows need them."""
_FREE_PART: Final = 10
"""One page of this number may be free; more are given back."""
_QUIET_STEPS: Final = 20
"""The number of steps without a commit after which the log is emptied."""
_INCREMENTAL: Final = 2


class Compaction:
    """The caller holds the lock of the store during every step."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._log = path.with_name(path.name + "-wal")
        self._can_shrink = connection.pragma("auto_vacuum") == _INCREMENTAL
        self._changes = 0
        self._quiet_steps = 0

    def step(self) -> None:
        """Does a little, if there is anything to do."""
        changes = self._connection.total_changes()
        if self._has_too_many_free():
            # The pragma yields a row for every page that it frees; all of them have to be read.
            self._connection.execute(f"PRAGMA incremental_vacuum({_PAGES_PER_STEP})").fetchall()
            self._quiet_steps = 0
        elif changes != self._changes:
            self._quiet_steps = 0
        else:
            self._quiet_steps += 1
            if self._quiet_steps == _QUIET_STEPS and self._log.stat().st_size:
                self._connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._changes = changes

    def _has_too_many_free(self) -> bool:
        if not self._can_shrink:
            return False
        pages: int = self._connection.pragma("page_count")
        free: int = self._connection.pragma("freelist_count")
        return free > max(_FEWEST_FREE, pages // _FREE_PART)
