"""Trials of power cuts after failing syncs, and of changed bits in the files of a store.

python -m tests.store.disasters [TRIALS]    plays trials of both and prints what became of them
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw

from qns.errors import StoreFailed
from qns.peer.tables import COUNTERS, EVENTS, CounterRow
from qns.store.connection import check_unused
from qns.store.faults import RESTORE
from qns.store.losing_files import LosingFiles
from qns.store.sqlite import SqliteStore
from tests.store.processes import COUNTER
from tests.store.rows import content, delete, numbered, put

STORE = "store.db"
VFS = "losing"
LOG_BYTES = 32 * 4_096
"""The size at which a log is copied in these trials, so that this happens often."""
COUNTED = 1_000
"""The counters of a store in the trials of power cuts; they fill about twenty pages."""


def commit(store: SqliteStore, number: int, chance: random.Random) -> None:
    """Adds an event and sets some counters to its number."""
    xml = chance.randbytes(chance.choice((20, 500, 9_000)))
    store.commit(
        put(
            (EVENTS, numbered(EVENTS, number, sequence=number, xml=xml)),
            *((COUNTERS, CounterRow(each, number, 0)) for each in counters_of(number)),
        )
    )


def counters_of(number: int) -> list[str]:
    """Returns the counters that the commit of a number sets; they are on different pages."""
    return [COUNTER, *(f"{number * step % COUNTED:050}" for step in (1, 331, 617))]


def play_power_cut(seed: int, folder: Path) -> tuple[str, int]:
    """Plays one trial; returns 'kept' or what is wrong, and the number of syncs that failed."""
    chance = random.Random(seed)
    disk = LosingFiles(VFS, chance)
    before, after = folder / "before", folder / "after"
    before.mkdir()
    acknowledged: list[int] = []
    known: list[int] = []

    def cut() -> None:
        if not after.exists():
            _cut(disk, after)
            known.extend(acknowledged)

    try:
        _fill(before / STORE)
        commits = chance.randint(5, 60)
        disk.is_kept = chance.random() < 0.6
        _plan_faults(disk, commits, chance)
        disk.on_cut = cut
        _commit_all(before / STORE, commits, acknowledged, chance)
        cut()
    finally:
        disk.end()
    return kept(after / STORE, known), disk.failed


def play_cut_opening(seed: int, cut_after: int, folder: Path) -> bool:
    """Cuts the power so many operations after the opening of a store whose last sync had failed.

    The operating system shows the last transaction, which is not on the disk as a whole. What is
    on the disk after the cut is in the folder 'after'. Returns False if the store was open before.
    """
    folder.mkdir()
    chance = random.Random(f"{seed} {cut_after}")
    disk = LosingFiles(VFS, chance)
    try:
        _fill(folder / STORE)
        store = SqliteStore(folder / STORE, vfs=VFS, log_bytes=LOG_BYTES)
        for number in (1, 2, 3):
            commit(store, number, chance)
        disk.failing = {disk.syncs}
        with suppress(StoreFailed):
            commit(store, 4, chance)
        _end(store, is_killed=True)
        disk.cut_at = disk.operations + cut_after
        disk.on_cut = lambda: _cut(disk, folder / "after")
        _end(SqliteStore(folder / STORE, vfs=VFS, log_bytes=LOG_BYTES), is_killed=True)
    finally:
        disk.end()
    return (folder / "after").exists()


def _cut(disk: LosingFiles, folder: Path) -> None:
    """Writes what is on the disk after a power cut at this moment to another folder."""
    folder.mkdir()
    for name, what in disk.after_cut().items():
        (folder / name).write_bytes(what)


def _fill(path: Path) -> None:
    counters = [(COUNTERS, CounterRow(f"{each:050}", 0, 0)) for each in range(COUNTED)]
    with SqliteStore(path, vfs=VFS, log_bytes=LOG_BYTES) as store:
        store.commit(put(*counters))


def _plan_faults(disk: LosingFiles, commits: int, chance: random.Random) -> None:
    first = disk.syncs + chance.randrange(commits * 2)
    near = [first + chance.choice((1, 1, 2, 3, 5, 20)) for _ in range(chance.randrange(4))]
    disk.failing = {first, *near}
    if chance.random() < 0.3:
        disk.cut_at = disk.operations + chance.randrange(2_000)
    elif chance.random() < 0.6:
        disk.cut_after_failure = chance.randrange(120)


def _commit_all(path: Path, commits: int, acknowledged: list[int], chance: random.Random) -> None:
    """Commits numbers; opens the store again after a failure, as the driver of a peer does."""
    store: SqliteStore | None = None
    for number in range(1, commits + 1):
        try:
            if store is None:
                store = SqliteStore(path, vfs=VFS, log_bytes=LOG_BYTES)
            commit(store, number, chance)
            acknowledged.append(number)
        except StoreFailed:
            if store is not None:
                _end(store, is_killed=chance.random() < 0.5)
            store = None
    if store is not None:
        _end(store, is_killed=chance.random() < 0.5)


def _end(store: SqliteStore, *, is_killed: bool) -> None:
    """Closes a store; if its process is killed, the log stays as it is."""
    if is_killed:
        store._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    with suppress(StoreFailed):
        store.close()


def kept(path: Path, known: list[int]) -> str:
    """Returns 'kept' if the store has what was acknowledged, and no part of a transaction."""
    try:
        with SqliteStore(path) as store:
            events = {row.sequence for row in store.rows(EVENTS)}
            counted = {row.subscription: row.delivered for row in store.rows(COUNTERS)}
    except StoreFailed as error:
        return f"refused: {error.problem}"
    if not events >= set(known) or len(counted) < COUNTED:
        return "lost"
    latest = {each: number for number in sorted(events) for each in counters_of(number)}
    return "kept" if latest == {k: v for k, v in counted.items() if v} else "torn"


def power_cuts(seeds: range) -> Counter[tuple[str, int]]:
    found: Counter[tuple[str, int]] = Counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            found[play_power_cut(seed, Path(folder))] += 1
    return found


Files = dict[str, bytes]
"""Name -> content of the files of a store."""


def files_of_store(folder: Path, *, is_closed: bool) -> Files:
    """Returns the files of a store, as they are after it was closed or its process was killed."""
    chance = random.Random(20261118)
    store = SqliteStore(folder / STORE)
    for number in range(60):
        commit(store, number, chance)
    store.commit(delete(EVENTS, *(row[:2] for row in list(store.rows(EVENTS))[40:])))
    if not is_closed:
        for _ in range(21):  # the last of these steps copies the log into the file
            store.compact()
        for number in range(60, 80):
            commit(store, number, chance)
    if is_closed:
        store.close()
    files = {each.name: each.read_bytes() for each in folder.iterdir()}
    if not is_closed:
        store.close()
    return files


def play_changed_bit(seed: int, files: Files, true_rows: object, folder: Path) -> tuple[str, str]:
    """Changes one bit; returns the file and what became of it."""
    chance = random.Random(seed)
    name = chance.choice(sorted(files))
    bit = chance.randrange(8 * (len(files[name]) if chance.random() < 0.8 else 4_200))
    for each, whole in files.items():
        changed = bytearray(whole)
        if each == name:
            changed[bit // 8] ^= 1 << bit % 8
        (folder / each).write_bytes(changed)
    try:
        return name, _outcome(folder / STORE, true_rows)
    except Exception as error:
        return name, f"traceback: {error!r}"


def _outcome(path: Path, true_rows: object) -> str:
    checked = _refusal(lambda: check_unused(path))
    refused = _refusal(lambda: _rows(path))
    again = _refusal(lambda: _rows(path))
    if refused is None and again is None:
        if _rows(path) != true_rows:
            return "served"
        return "harmless" if checked is None else f"false alarm of the check: {checked}"
    if refused is None or again is None:
        return f"opened in silence at one of two starts: {refused or again}"
    if checked is None:
        return f"overlooked by the check: {refused.problem}"
    for each in (checked, refused, again):
        if "damaged" not in each.problem or each.remedy != RESTORE or str(path) != each.place:
            return f"misleading: {each}"
    return "detected"


def _rows(path: Path) -> object:
    with SqliteStore(path) as store:
        return content(store)


def _refusal(act: Callable[[], object]) -> StoreFailed | None:
    try:
        act()
    except StoreFailed as error:
        return error
    return None


def changed_bits(seeds: range, kinds: tuple[bool, ...] = (True, False)) -> Counter[tuple[str, str]]:
    """Plays trials with a store that was closed (True) or whose process was killed (False)."""
    found: Counter[tuple[str, str]] = Counter()
    for is_closed in kinds:
        with tempfile.TemporaryDirectory() as folder:
            files = files_of_store(Path(folder), is_closed=is_closed)
        with tempfile.TemporaryDirectory() as folder:
            for name, whole in files.items():
                (Path(folder) / name).write_bytes(whole)
            true_rows = _rows(Path(folder) / STORE)
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                name, what = play_changed_bit(seed, files, true_rows, Path(folder))
            found["closed" if is_closed else "killed", f"{name}: {what}".replace(folder, "")] += 1
    return found


def main(trials: int) -> None:
    for (what, failed), many in sorted(power_cuts(range(trials)).items()):
        print(f"power cut after {failed} failing syncs: {what}: {many}")
    for (how, what), many in sorted(changed_bits(range(trials)).items()):
        print(f"a changed bit of a store that was {how}, in {what}: {many}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
