"""The compiled index with single lines, with batches, without ids, and with encoded events."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from benchmarks.engines import (
    COMPILED_BATCH,
    COMPILED_ENCODED,
    COMPILED_HANDLES,
    COMPILED_ONE,
    Engine,
    LineEngine,
    Subscriptions,
    in_batches,
)
from benchmarks.workload import SCHEMA
from qns.cbr.event import Event
from qns.cbr.index.compiled import CompiledIndex
from qns.d2q.event_json import EventReader

BATCH = 256

Index = CompiledIndex[int]
Handles = tuple[list[int], list[int]]  # all in a row, and where those of each event end


class OneAtATime(LineEngine):
    def __init__(self, index: Index) -> None:
        super().__init__()
        self._index = index

    def match(self, work: bytes) -> list[int]:
        return self._index.match(self.read(work))


class InBatches(Engine):
    batch = BATCH

    def __init__(self, index: Index) -> None:
        self.index = index
        self.read = EventReader(SCHEMA).read

    def match(self, work: Sequence[bytes]) -> Any:
        read = self.read
        return self.index.match_all([read(line) for line in work])

    def ids(self, work: Any, answer: Any) -> list[list[int]]:  # noqa: ARG002
        found: list[list[int]] = answer
        return found


class HandlesOnly(InBatches):
    def match(self, work: Sequence[bytes]) -> Handles:
        read = self.read
        return self.index.match_handles([read(line) for line in work])

    def ids(self, work: Any, answer: Handles) -> list[list[int]]:  # noqa: ARG002
        # Inserted in order and never deleted, subscription 0, 1, 2, … has handle 0, 1, 2, …
        return _apart(answer)


class Batch(list[Event]):
    """Events sorted by class and encoded, with their original order."""

    def __init__(self, events: Sequence[Event], index: Index) -> None:
        self.order = sorted(range(len(events)), key=lambda nth: events[nth].data_class)
        super().__init__(events[nth] for nth in self.order)
        self.encoded = index.encode(self)


class Encoded(InBatches):
    """Matches batches that were read, sorted by class and encoded before the measurement."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        self._bare: Any = copy(index)  # the same tables
        self._bare.encode = lambda batch: batch.encoded

    def prepare(self, lines: Sequence[bytes]) -> list[Any]:
        return [
            Batch([self.read(line) for line in batch], self.index)
            for batch in in_batches(lines, self.batch)
        ]

    def match(self, work: Any) -> Handles:
        found: Handles = self._bare.match_handles(work)
        return found

    def ids(self, work: Batch, answer: Handles) -> list[list[int]]:
        found = dict(zip(work.order, _apart(answer), strict=True))
        return [found[nth] for nth in range(len(found))]


def _apart(answer: Handles) -> list[list[int]]:
    handles, ends = answer
    return [handles[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    index = CompiledIndex(subscriptions)
    return {
        COMPILED_ONE: OneAtATime(index),
        COMPILED_BATCH: InBatches(index),
        COMPILED_HANDLES: HandlesOnly(index),
        COMPILED_ENCODED: Encoded(index),
    }
