"""Tables: owns the arrays of the compiled index and makes them grow (`layout.py`)."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from qns.cbr.index import layout as at
from qns.cbr.index.arena import allocate
from qns.cbr.index.matching import match_batch
from qns.cbr.index.placing import delete_one, insert_batch, refill_directories

_COUNTERS = 1 << 20
_NONE = np.zeros(0, np.int64)


class Tables:
    """All arrays. The operations on them place, delete and match rows, and make room."""

    def __init__(self) -> None:
        self.class_parts = np.zeros((8, 8), np.int64)  # class -> how many partitions, which
        self.source_sets = np.zeros((8, 1), np.uint64)  # set of sources -> a bit per source
        self.fields = np.zeros((64, at.FIELD_COLUMNS), np.int64)
        self.values = np.full(64, at.ABSENT, np.int64)
        self.buckets = np.zeros((256, at.BUCKET_COLUMNS), np.int64)
        self.free_buckets = np.zeros(256, np.int64)
        self.groups = np.zeros((256, at.GROUP_COLUMNS), np.int64)
        self.free_groups = np.zeros(256, np.int64)
        self.directory = _empty_directory(512)
        self.group_directory = _empty_directory(512)
        self.where = np.zeros((1024, at.WHERE_COLUMNS), np.int64)
        self.arena = np.zeros(1 << 14, np.int64)
        self.arena[at.ARENA_END] = at.ARENA_FIRST
        self.counts = np.zeros(_COUNTERS, np.int32)
        self.state = np.zeros(at.STATE_WORDS, np.int64)
        self.found = np.zeros(4096, np.int64)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in vars(self).values())

    def place(self, items: array[int]) -> None:
        """Inserts all rows, or none of them if there is no memory."""
        words = np.frombuffer(items, np.int64) if items else _NONE
        done = 0
        try:
            while True:
                done = insert_batch(
                    done,
                    words,
                    self.arena,
                    self.directory,
                    self.buckets,
                    self.free_buckets,
                    self.groups,
                    self.group_directory,
                    self.free_groups,
                    self.fields,
                    self.where,
                    self.counts,
                    self.state,
                )
                if self.state[at.REASON] == at.DONE:
                    return
                if self.state[at.REASON] == at.ARENA_FULL:
                    self._grow_arena(at.LARGE * 256)
                else:
                    self._grow_directories()
        except BaseException:
            self.state[at.REASON] = at.DONE
            item = 0
            while item < done:
                self.delete(items[item + at.ITEM_META] & at.HANDLE_MASK)
                item += at.ITEM_INTERVALS + at.INTERVAL_WORDS * items[item + at.ITEM_LENGTH]
            raise

    def delete(self, handle: int) -> None:
        delete_one(
            handle,
            self.arena,
            self.buckets,
            self.groups,
            self.group_directory,
            self.free_groups,
            self.where,
            self.counts,
            self.state,
        )

    def match(self, words: array[int], count: int) -> tuple[Any, list[int]]:
        """Returns the handles of `count` events one after the other, and where those of each end.

        The handles are valid until the next call.
        """
        events = np.frombuffer(words, np.int64) if count else _NONE
        ends = np.empty(count, np.int64)
        while True:
            total = match_batch(
                events,
                self.class_parts,
                self.values,
                self.fields,
                self.source_sets,
                self.directory,
                self.buckets,
                self.arena,
                self.where,
                self.found,
                ends,
            )
            if total <= len(self.found):
                return self.found[:total], ends.tolist()
            self.found = np.zeros(2 * total, np.int64)

    def store_extra(self, handle: int, checks: int, words: list[int]) -> None:
        """Stores the extra checks of a row in the arena."""
        size = at.EXTRA_CHECKS + len(words)
        while (start := int(allocate(self.arena, size))) == at.NO_CHUNK:
            self._grow_arena(4 * size)
        self.arena[start + at.EXTRA_SIZE] = checks | (size << at.HIGH_SHIFT)
        self.arena[start + at.EXTRA_CHECKS : start + size] = words
        self.where[handle, at.WHERE_EXTRA] = start

    # -- growing --------------------------------------------------------------------------------

    def fit_handles(self, handles: int) -> None:
        self.where = grown(self.where, handles)

    def fit_fields(self, bits: list[int], weights: list[int]) -> None:
        if len(bits) > len(self.values):
            self.values = np.full(2 * len(bits), at.ABSENT, np.int64)
        self.fields = grown(self.fields, len(bits))
        self.fields[: len(bits), at.FIELD_BIT] = bits
        self.fields[: len(bits), at.FIELD_WEIGHT] = weights

    def add_part(self, data_class: int, part: int) -> None:
        """Makes events of the class visit the partition."""
        self.class_parts = grown(self.class_parts, data_class + 1)
        count = int(self.class_parts[data_class, at.CLASS_COUNT]) + 1
        if count >= self.class_parts.shape[1]:
            self.class_parts = np.pad(self.class_parts, ((0, 0), (0, count)))
        self.class_parts[data_class, at.CLASS_COUNT] = count
        self.class_parts[data_class, at.CLASS_FIRST + count - 1] = part

    def set_sources(self, number: int, codes: list[int]) -> None:
        words = (max(codes) >> at.SOURCE_SHIFT) + 1
        if words > self.source_sets.shape[1]:
            more = max(words, 2 * self.source_sets.shape[1]) - self.source_sets.shape[1]
            self.source_sets = np.pad(self.source_sets, ((0, 0), (0, more)))
        self.source_sets = grown(self.source_sets, number + 1)
        self.source_sets[number] = 0
        for code in codes:
            word = code >> at.SOURCE_SHIFT
            self.source_sets[number, word] |= np.uint64(1 << (code & at.SOURCE_MASK))

    def _grow_arena(self, words: int) -> None:
        size = len(self.arena)
        more = size // 2 if size < 1 << 20 else size // 8
        # `resize` grows in place where the system can, so that a large arena is not copied.
        self.arena.resize(size + max(more, words), refcheck=False)

    def _grow_directories(self) -> None:
        """Makes room for more buckets and groups. Buckets without rows are used again."""
        used = int(self.state[at.USED_BUCKETS])
        occupied = int(np.count_nonzero(self.buckets[:used, at.BUCKET_LENGTH]))
        in_use = int(self.state[at.USED_GROUPS] - self.state[at.FREE_GROUPS]) + at.LARGE
        self.directory = _empty_directory(_power_of_two(3 * occupied))
        self.group_directory = _empty_directory(_power_of_two(3 * in_use))
        self.buckets = grown(self.buckets, len(self.directory) // 2)
        self.groups = grown(self.groups, len(self.group_directory) // 2)
        self.free_buckets = grown(self.free_buckets, len(self.buckets))
        self.free_groups = grown(self.free_groups, len(self.groups))
        self.fields[:, at.FIELD_FILED] = 0
        refill_directories(
            self.arena,
            self.directory,
            self.buckets,
            self.free_buckets,
            self.groups,
            self.group_directory,
            self.fields,
            self.state,
        )


def grown(table: Any, rows: int) -> Any:
    """Returns the table with room for at least `rows` rows."""
    if rows <= len(table):
        return table
    larger = np.zeros((max(rows, 2 * len(table)), *table.shape[1:]), table.dtype)
    larger[: len(table)] = table
    return larger


def _empty_directory(size: int) -> Any:
    return np.full((size, at.SLOT_COLUMNS), at.EMPTY_SLOT, np.int64)


def _power_of_two(at_least: int) -> int:
    return max(512, 1 << (at_least - 1).bit_length())
