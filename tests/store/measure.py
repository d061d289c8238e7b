"""Measures the time of commits: python -m tests.store.measure [FOLDER]

FOLDER is on the disk to measure; the default is the folder for temporary files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from qns.peer.ports import Store
from qns.peer.tables import COUNTERS, DELIVERIES, EVENTS, CounterRow, DeliveryRow
from qns.peer.turn import Transaction
from qns.store.memory import MemoryStore
from qns.store.sqlite import SqliteStore
from tests.store.rows import numbered, put

ROWS = (1, 3, 10, 30, 100, 300, 1_000, 3_000)
BLOCKS = 7


def three_rows(numbers: Iterator[int]) -> Transaction:
    """Returns the rows that one notification changes, each of about 100 bytes."""
    number = next(numbers)
    return put(
        (EVENTS, numbered(EVENTS, number, xml=bytes(60))),
        (
            DELIVERIES,
            DeliveryRow("a subscription", number, "a source of events", f"{number:040}", 0.0),
        ),
        (COUNTERS, CounterRow("the name of a subscription, as it is", number, 0)),
    )


def deliveries(numbers: Iterator[int], rows: int) -> Transaction:
    return put(*((DELIVERIES, numbered(DELIVERIES, next(numbers))) for _ in range(rows)))


def commit_s(store: Store, transactions: list[Transaction]) -> float:
    """Returns the seconds of one commit: the median of blocks, which ignores a few disturbances."""
    block = max(1, len(transactions) // BLOCKS)
    times = []
    for start in range(0, len(transactions) - block + 1, block):
        began = perf_counter()
        for transaction in transactions[start : start + block]:
            store.commit(transaction)
        times.append((perf_counter() - began) / block)
    return median(times)


def main(folder: str | None) -> None:
    numbers = count()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        on_disk = SqliteStore(Path(place) / "store.db")
        in_memory = SqliteStore.in_memory("measured")
        print("one commit of three rows")
        for name, store, commits in (
            ("MemoryStore", MemoryStore(), 20_000),
            ("SqliteStore.in_memory", in_memory, 20_000),
            ("SqliteStore on disk", on_disk, 3_000),
        ):
            taken_s = commit_s(store, [three_rows(numbers) for _ in range(commits)])
            print(f"  {name:24}{taken_s * 1e6:8.1f} µs")
        began = perf_counter()
        for _ in range(1_000):
            os.statvfs(place)
        print(f"  {'of it, checking space':24}{(perf_counter() - began) * 1e3:8.1f} µs")

        print("rows per second on disk, as a multiple of one row per commit")
        single = 0.0
        for rows in ROWS:
            transactions = [deliveries(numbers, rows) for _ in range(max(21, 3_000 // rows))]
            rate = rows / commit_s(on_disk, transactions)
            single = single or rate
            print(f"  {rows:6,} rows per commit {rate / single:8.1f}")
        on_disk.close()
        in_memory.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
