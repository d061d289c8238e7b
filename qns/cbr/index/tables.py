"""The arrays of the compiled index, and how they grow. `layout.py` says what is where."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from qns.cbr.index import layout as at
from qns.cbr.index.arena import allocate
from qns.cbr.index.matching import match_batch
from qns.cbr.index.placing import delete_one, enter_all, insert_batch

_COUNTERS = 1 << 20
_NONE = np.zeros(0, np.int64)


class Tables:
    """All arrays, and the four things that are done with them: place, delete, match, grow."""

    def __init__(self) -> None:
        self.class_parts = np.zeros((8, 8), np.int64)  # class -> how many partitions, which
        self.source_sets = np.zeros((8, 1), np.uint64)  # set of sources -> a bit per source
        self.slots = np.zeros((64, at.SLOT_COLUMNS), np.int64)
        self.values = np.full(64, at.ABSENT, np.int64)
        self.buckets = np.zeros((256, at.BUCKET_COLUMNS), np.int64)
        self.free_buckets = np.zeros(256, np.int64)
        self.groups = np.zeros((256, at.GROUP_COLUMNS), np.int64)
        self.free_groups = np.zeros(256, np.int64)
        self.doors = _no_doors(512)
        self.group_doors = _no_doors(512)
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
        """Puts all rows where they belong, or none of them if there is no memory."""
        words = np.frombuffer(items, np.int64) if items else _NONE
        done = 0
        try:
            while True:
                done = insert_batch(
                    done,
                    words,
                    self.arena,
                    self.doors,
                    self.buckets,
                    self.free_buckets,
                    self.groups,
                    self.group_doors,
                    self.free_groups,
                    self.slots,
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
                item += at.ITEM_FIELDS + 3 * items[item + at.ITEM_LENGTH]
            raise

    def delete(self, handle: int) -> None:
        delete_one(
            handle,
            self.arena,
            self.buckets,
            self.groups,
            self.group_doors,
            self.free_groups,
            self.where,
            self.counts,
            self.state,
        )

    def match(self, words: array[int], count: int) -> tuple[Any, list[int]]:
        """The handles of `count` events one after the other, and where those of each event end.

        The handles are good until the next call.
        """
        events = np.frombuffer(words, np.int64) if count else _NONE
        ends = np.empty(count, np.int64)
        while True:
            total = match_batch(
                events,
                self.class_parts,
                self.values,
                self.slots,
                self.source_sets,
                self.doors,
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
        """Keeps the extra checks of a row where the compiled loops find them."""
        size = 1 + len(words)
        while (start := int(allocate(self.arena, size))) < 0:
            self._grow_arena(4 * size)
        self.arena[start] = checks | (size << at.HIGH_SHIFT)
        self.arena[start + 1 : start + size] = words
        self.where[handle, at.WHERE_EXTRA] = start

    # -- growing --------------------------------------------------------------------------------

    def fit_handles(self, handles: int) -> None:
        self.where = grown(self.where, handles)

    def fit_slots(self, bits: list[int], weights: list[int]) -> None:
        if len(bits) > len(self.values):
            self.values = np.full(2 * len(bits), at.ABSENT, np.int64)
        self.slots = grown(self.slots, len(bits))
        self.slots[: len(bits), at.SLOT_BIT] = bits
        self.slots[: len(bits), at.SLOT_WEIGHT] = weights

    def add_part(self, data_class: int, part: int) -> None:
        """From now on events of the class visit the partition."""
        self.class_parts = grown(self.class_parts, data_class + 1)
        count = int(self.class_parts[data_class, 0]) + 1
        if count >= self.class_parts.shape[1]:
            self.class_parts = np.pad(self.class_parts, ((0, 0), (0, count)))
        self.class_parts[data_class, 0] = count
        self.class_parts[data_class, count] = part

    def set_sources(self, number: int, codes: list[int]) -> None:
        words = (max(codes) >> 6) + 1
        if words > self.source_sets.shape[1]:
            more = max(words, 2 * self.source_sets.shape[1]) - self.source_sets.shape[1]
            self.source_sets = np.pad(self.source_sets, ((0, 0), (0, more)))
        self.source_sets = grown(self.source_sets, number + 1)
        self.source_sets[number] = 0
        for code in codes:
            self.source_sets[number, code >> 6] |= np.uint64(1 << (code & 63))

    def _grow_arena(self, words: int) -> None:
        size = len(self.arena)
        more = size // 2 if size < 1 << 20 else size // 8
        # In place where the system can, so that a large arena is not copied.
        self.arena.resize(size + max(more, words), refcheck=False)

    def _grow_directories(self) -> None:
        """More room for buckets and groups; those that have emptied are given to others."""
        used = int(self.state[at.USED_BUCKETS])
        occupied = int(np.count_nonzero(self.buckets[:used, at.BUCKET_LENGTH]))
        in_use = int(self.state[at.USED_GROUPS] - self.state[at.FREE_GROUPS]) + at.LARGE
        self.doors = _no_doors(_power_of_two(3 * occupied))
        self.group_doors = _no_doors(_power_of_two(3 * in_use))
        self.buckets = grown(self.buckets, len(self.doors) // 2)
        self.groups = grown(self.groups, len(self.group_doors) // 2)
        self.free_buckets = grown(self.free_buckets, len(self.buckets))
        self.free_groups = grown(self.free_groups, len(self.groups))
        self.slots[:, at.SLOT_FILED] = 0
        enter_all(
            self.arena,
            self.doors,
            self.buckets,
            self.free_buckets,
            self.groups,
            self.group_doors,
            self.slots,
            self.state,
        )


def grown(table: Any, rows: int) -> Any:
    """The table with room for at least so many rows."""
    if rows <= len(table):
        return table
    larger = np.zeros((max(rows, 2 * len(table)), *table.shape[1:]), table.dtype)
    larger[: len(table)] = table
    return larger


def _no_doors(size: int) -> Any:
    return np.full((size, at.DOOR_COLUMNS), -1, np.int64)


def _power_of_two(at_least: int) -> int:
    return max(512, 1 << (at_least - 1).bit_length())
