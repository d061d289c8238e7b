"""Processes that use a store, for tests of locks and crashes.

python -m tests.store.processes number PATH    commits 1, 2, 3, … and prints each afterwards
python -m tests.store.processes migrate PATH   kills itself in the middle of a migration
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import apsw

from qns.errors import StoreFailed
from qns.peer.tables import COUNTERS, EVENTS, CounterRow
from qns.store.migrations import MIGRATIONS, Migration, migrate
from qns.store.sqlite import SqliteStore
from tests.store.rows import numbered, put

ROOT = Path(__file__).parent.parent.parent
COUNTER = "how many"


def started(what: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.processes", what, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def number(path: Path) -> None:
    try:
        store = SqliteStore(path)
    except StoreFailed as problem:
        print(problem, flush=True)
        return
    for each in count(1):
        store.commit(
            put(
                (EVENTS, numbered(EVENTS, each, sequence=each)),
                (COUNTERS, CounterRow(COUNTER, each, 0)),
            )
        )
        print(each, flush=True)


def migrate_and_die(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.create_scalar_function("die", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    fatal = Migration(
        len(MIGRATIONS) + 1,
        "a migration that is interrupted",
        "CREATE TABLE half (done INTEGER); DELETE FROM counters; SELECT die();",
    )
    migrate(connection, str(path), (*MIGRATIONS, fatal))


if __name__ == "__main__":
    {"number": number, "migrate": migrate_and_die}[sys.argv[1]](Path(sys.argv[2]))
