"""Bugs of the store, which only faults of its disk reveal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from qns.store import connection, copies, recovery
from qns.store.checksums import PageReader
from qns.store.sqlite import SqliteStore

Replacements = dict[tuple[Any, str], Any]


def log_not_secured() -> Replacements:
    """A store takes what it reads in its log for what is on the disk, also after a failed sync."""
    return {(recovery, "_write_again"): lambda *_: None}


def failed_sync_acknowledged() -> Replacements:
    """A commit succeeds although its sync has failed."""

    def finish_commit(store: SqliteStore) -> None:
        try:
            store._cursor.execute("COMMIT")
        except apsw.IOError:
            store._roll_back()
        finally:
            store._lock.release()

    return {(SqliteStore, "_finish_commit"): finish_commit}


def damage_not_noticed() -> Replacements:
    """No checksum is verified, neither of a page nor of a frame of the log."""
    original = connection._connected

    def connected(path: Path, vfs: str) -> apsw.Connection:
        found = original(path, vfs)
        found.pragma("checksum_verification", "off")
        return found

    def ignore(*_: object) -> None:
        pass

    return {
        (connection, "_connected"): connected,
        (connection, "check_structure"): ignore,
        (recovery, "check_log"): ignore,
        (copies, "_check"): ignore,
        (PageReader, "damaged"): lambda *_: [],
    }


def only_read_pages_verified() -> Replacements:
    """Neither an opening nor the upkeep of a store looks for damaged pages."""
    return {(PageReader, "damaged"): lambda *_: []}


STORE_BUGS: dict[str, Callable[[], Replacements]] = {
    "log not secured after a failed sync": log_not_secured,
    "failed sync acknowledged": failed_sync_acknowledged,
    "damage not noticed": damage_not_noticed,
    "only pages that are read are verified": only_read_pages_verified,
}
STORE_BUGS_REVEALED_BY: dict[str, tuple[str, ...]] = {
    "log not secured after a failed sync": ("failing-sync",),
    "failed sync acknowledged": ("failing-sync",),
    "damage not noticed": ("rot",),
    "only pages that are read are verified": ("rot",),
}
