"""Losing disk: the store of a simulated host on real files, whose disk fails, loses and changes.

The store is the one of a real peer, with its log, its checksums and its recovery. So what a
simulated peer makes of a failed sync, of a power cut and of changed bits is production code.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

from qns.errors import StoreFailed, StoreFull
from qns.peer.tables import IDENTITY
from qns.peer.turn import Transaction
from qns.store.checksums import PAGE_BYTES
from qns.store.copies import restore
from qns.store.log import bytes_in_use, log_of
from qns.store.losing_files import LosingFiles
from qns.store.recovery import keep_log_at_close
from qns.store.sqlite import SqliteStore

EMPTY: Final = b""
"""The copy of a store that is not there."""
_LOG_BYTES: Final = 32 * PAGE_BYTES
"""The size at which the log is copied into the file, so that this happens often."""
_PAGES_PER_STEP: Final = 64
_STEPS_PER_UPKEEP: Final = 4
_STEPS_UNTIL_LOG_IS_EMPTY: Final = 25
_MEMORY: Final = Path("/dev/shm")  # noqa: S108
_names = count()


@dataclass(slots=True)
class ChangedPage:
    """A page of the file in which bits have changed."""

    number: int
    content: bytes
    """What it has been since then, if nothing has written it."""


class _DoubtfulStore(SqliteStore):
    """Remembers the transaction of which a commit did not say that it is on the disk."""

    doubtful: Transaction | None = None

    def commit(self, transaction: Transaction) -> None:
        self.doubtful = transaction
        super().commit(transaction)
        self.doubtful = None

    def end(self) -> None:
        """Closes the files as the end of a process does: the log stays."""
        keep_log_at_close(self._connection, True)
        with suppress(StoreFailed):
            self.close()


class LosingDisk:
    """A disk of the simulator: see `qns.simulation.node.Disk`."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._folder = tempfile.TemporaryDirectory(
            prefix="qns-disk-", dir=_MEMORY if _MEMORY.is_dir() else None
        )
        self._path = Path(self._folder.name) / "store.db"
        self._files = LosingFiles(f"losing-{next(_names)}", chance)
        self._files.on_cut = self._power_is_cut
        self._after_cut: dict[str, bytes] | None = None
        """What is on the disk since the power was cut; None if it was not."""
        self._store: _DoubtfulStore | None = None
        self._doubtful: Transaction | None = None
        self._survived: list[Transaction] = []
        """What commits that had failed have written all the same."""
        self._changed: list[ChangedPage] = []
        self.is_changed = False
        """True if bits have changed since the store was created or put back."""

    # --- the disk of a host -----------------------------------------------------------------------

    def open(self) -> SqliteStore:
        """Opens the store for a process that starts; the former process has ended."""
        self._end_process()
        if self._after_cut is not None:
            self._start_machine(self._after_cut)
        store = _DoubtfulStore(
            self._path, low_water_bytes=0, vfs=self._files.name, log_bytes=_LOG_BYTES
        )
        self._store = store
        self._settle(store)
        return store

    def copy(self) -> bytes:
        """Returns a backup; raises StoreFailed if the store cannot be read."""
        if self._store is None:
            raise StoreFailed("the host is off")
        backup = self._path.with_name("backup.db")
        self._store.backup(backup)
        try:
            return backup.read_bytes()
        finally:
            backup.unlink()

    def put_back(self, copy: bytes) -> None:
        """Puts a backup back, or `EMPTY`; the machine has power again for that."""
        self._end_process()
        self._files.forget()
        self._files.is_off, self._files.cut_at = False, -1
        self._after_cut = self._doubtful = None
        self._changed.clear()
        self.is_changed = False
        if copy == EMPTY:
            self._start_machine({})
            return
        backup = self._path.with_name("backup.db")
        backup.write_bytes(copy)
        restore(backup, self._path, overwrite=True)
        backup.unlink()

    def fill(self, full: bool) -> None:
        if self._store is not None:
            self._store.fail_next_commit(full)

    def take_survived(self) -> list[Transaction]:
        survived, self._survived = self._survived, []
        return survived

    def discard(self) -> None:
        self._end_process()
        self._files.end()
        self._folder.cleanup()

    def _end_process(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            self._doubtful = store.doubtful or self._doubtful
            store.end()

    def _settle(self, store: _DoubtfulStore) -> None:
        """Notes a doubtful transaction if it is in the store: each one writes the identity."""
        transaction, self._doubtful = self._doubtful, None
        if transaction is None:
            return
        written = dict(transaction.changes())[IDENTITY]
        if set(written.values()) & set(store.rows(IDENTITY)):
            self._survived.append(transaction)

    # --- faults -----------------------------------------------------------------------------------

    def fail_syncs(self, times: int, *, is_kept: bool, operations_until_cut: int = -1) -> None:
        """Makes the next syncs fail; if a number is given, the power is cut so many operations
        after the last one that fails."""
        self._files.failing = set(range(self._files.syncs, self._files.syncs + times))
        self._files.is_kept = is_kept
        self._files.cut_after_failure = operations_until_cut

    def heal(self) -> None:
        self._files.failing = set()
        self._files.cut_after_failure = self._files.cut_at = -1

    def cut_power(self) -> None:
        """Ends the process; what was not synced is lost, as a whole or in part."""
        self._end_process()
        if self._after_cut is None:
            self._after_cut = self._on_disk()

    def change_bits(self, many: int) -> bool:
        """Changes bits in one page of the file; returns False if there is none."""
        size = self._size(self._path)
        if size < PAGE_BYTES:
            return False
        shadow, page = self._files.opened(self._path), self._chance.randrange(size // PAGE_BYTES)
        places = self._chance.sample(range(PAGE_BYTES * 8), many)
        for place in places:
            shadow.change_bit(page * PAGE_BYTES + place // 8, place % 8)
        self._changed.append(ChangedPage(page, self._page(page)))
        self.is_changed = True
        return True

    def change_bit_of_log(self) -> bool:
        """Changes a bit of what the write-ahead log has; returns False if it has nothing."""
        log = log_of(self._path)
        size = bytes_in_use(log) if self._size(log) else 0
        if not size:
            return False
        self._files.opened(log).change_bit(self._chance.randrange(size), self._chance.randrange(8))
        self.is_changed = True
        return True

    def _size(self, path: Path) -> int:
        return 0 if self._after_cut is not None or not path.exists() else path.stat().st_size

    def _page(self, number: int) -> bytes:
        return self._files.opened(self._path).read(PAGE_BYTES, number * PAGE_BYTES)

    def _power_is_cut(self) -> None:
        self._after_cut = self._on_disk()
        self._files.is_off, self._files.cut_at = True, -1

    def _on_disk(self) -> dict[str, bytes]:
        """Returns the files that are on the disk after a power cut at this moment."""
        folder = self._path.parent
        untouched = [each for each in folder.iterdir() if each not in self._files.shadows]
        return {each.name: each.read_bytes() for each in untouched} | self._files.after_cut()

    def _start_machine(self, files: dict[str, bytes]) -> None:
        """Makes the folder contain these files, all of them on the disk."""
        self._files.forget()
        for each in self._path.parent.iterdir():
            each.unlink()
        for name, content in files.items():
            (self._path.parent / name).write_bytes(content)
        self._files.is_off, self._after_cut = False, None

    # --- upkeep -----------------------------------------------------------------------------------

    def upkeep(self) -> None:
        """Does what the process of a peer does with its store in a second.

        Raises StoreFailed if a page has changed on the disk, or a sync fails.
        """
        if self._store is not None:
            with suppress(StoreFull):
                for _ in range(_STEPS_PER_UPKEEP):
                    self._store.check_next_pages(_PAGES_PER_STEP)
                    self._store.compact()

    def check(self) -> None:
        """Does what the process of a quiet peer does in some minutes: it empties the log and
        verifies every page; raises StoreFailed if one has changed."""
        if self._store is not None:
            for _ in range(_STEPS_UNTIL_LOG_IS_EMPTY):
                self._store.compact()
            for _ in range(2):
                self._store.check_next_pages(self._path.stat().st_size)

    def overlooked(self) -> list[int]:
        """Returns the pages that are still as they were changed."""
        return [
            each.number + 1 for each in self._changed if self._page(each.number) == each.content
        ]
