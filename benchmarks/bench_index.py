"""Measures the matching index alone: insertions, deletions, bulk building, stages of matching."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import orjson

from benchmarks import workload
from benchmarks.engines import Subscriptions
from benchmarks.timing import OnProgress, interleaved, medians
from qns.cbr.event import Event
from qns.cbr.index.compiled import CompiledIndex
from qns.cbr.index.dictionary import DictionaryIndex
from qns.d2q.event_json import EventReader

Index = CompiledIndex[int] | DictionaryIndex[int]


def changes(
    subscriptions: Subscriptions, quick: bool, on_progress: OnProgress
) -> list[dict[str, Any]]:
    """Measures deletions and insertions at constant size, with random subscriptions."""
    on_progress("  inserting and deleting")
    indexes: dict[str, Index] = {
        "compiled": CompiledIndex(subscriptions),
        "dictionary": DictionaryIndex(subscriptions),
    }
    count = 1_000 if quick else 5_000
    chosen = random.Random(3).sample(sorted(subscriptions), count)
    works: dict[str, Callable[[], None]] = {}
    for name, index in indexes.items():
        works[f"{name} delete"] = partial(delete_each, index, chosen)
        works[f"{name} insert"] = partial(insert_each, index, chosen, subscriptions)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(3 if quick else 7):  # always in this order: deleted ones are inserted again
        for name, each in interleaved(works, 1).items():
            seconds[name] += each
    return [
        {
            "engine": name,
            "size": len(subscriptions),
            "insert_us": middle[f"{name} insert"] / count * 1e6,
            "delete_us": middle[f"{name} delete"] / count * 1e6,
            "insert_s": seconds[f"{name} insert"],
            "delete_s": seconds[f"{name} delete"],
        }
        for middle in [medians(seconds)]
        for name in indexes
    ]


def delete_each(index: Index, ids: Sequence[int]) -> None:
    for id in ids:
        index.delete(id)


def insert_each(index: Index, ids: Sequence[int], subscriptions: Subscriptions) -> None:
    for id in ids:
        index.insert(id, subscriptions[id])


def stages(
    subscriptions: Subscriptions, lines: Sequence[bytes], quick: bool, on_progress: OnProgress
) -> list[dict[str, Any]]:
    """Measures the µs of each stage: the difference between pipelines that end a stage later."""
    on_progress("  where the time goes")
    index, reader = CompiledIndex(subscriptions), EventReader(workload.SCHEMA)
    some = lines[:512] if quick else lines[:2048]
    rows = []
    for batch in (1, 256):
        batches = [some[start : start + batch] for start in range(0, len(some), batch)]

        def read(given: Sequence[bytes]) -> list[Event]:
            return [reader.read(line) for line in given]

        pipelines: dict[str, Callable[[Sequence[bytes]], object]] = {
            "parse JSON": lambda given: [orjson.loads(line) for line in given],
            "validate": read,
            "encode": lambda given: index.encode(read(given)),
            "compiled loop": lambda given: index.match_handles(read(given)),
            "ids": lambda given: index.match_all(read(given)),
        }
        works = {name: partial(for_each, each, batches) for name, each in pipelines.items()}
        interleaved(works, 1)
        seconds = interleaved(works, 5 if quick else 15)
        until = {name: each / len(some) * 1e6 for name, each in medians(seconds).items()}
        before = 0.0
        for name, total in until.items():
            rows.append(
                {
                    "batch": batch,
                    "stage": name,
                    "us": max(0.0, total - before),
                    "until_us": total,
                    "seconds": seconds[name],
                }
            )
            before = total
    return rows


def for_each(pipeline: Callable[[Any], object], batches: Sequence[Any]) -> None:
    for batch in batches:
        pipeline(batch)


def building(quick: bool, on_progress: OnProgress) -> list[dict[str, Any]]:
    rows = []
    for size in (100_000,) if quick else (100_000, 1_000_000):
        on_progress(f"matching: building {size:,} in a process of its own")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.build_once", str(size)],
            check=True,
            capture_output=True,
            text=True,
        )
        rows.append(json.loads(done.stdout))
    return rows
