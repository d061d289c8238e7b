"""Matching a batch of encoded events, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled, inlined
from qns.cbr.index.arena import door_of
from qns.cbr.index.layout import (
    ABSENT,
    ANY_KEY,
    BLOCK,
    BUCKET_LENGTH,
    BUCKET_LISTED,
    BUCKET_ROOM,
    BUCKET_START,
    BUCKET_STRIDE,
    CHECK_SPANS,
    DOOR_TARGET,
    EVENT_CLASS,
    EVENT_FIELDS,
    EVENT_LENGTH,
    EVENT_SOURCE,
    EXTRA_BIT,
    FILED_ANY,
    FILED_PINNED,
    HANDLE_MASK,
    HEAD_WORDS,
    HIGH_SHIFT,
    LOW_MASK,
    NO_SLOT,
    RESIDUAL_BIT,
    ROW_INTERVALS,
    ROW_META,
    ROW_NEED,
    ROW_WIDTH,
    SLOT_BIT,
    SLOT_FILED,
    SOURCES_MASK,
    SOURCES_SHIFT,
    START_MASK,
    WHERE_EXTRA,
    WIDTH_SHIFT,
)


@compiled
def passes_extra(arena: Any, start: Any, values: Any) -> Any:
    """The checks that one interval per attribute cannot express."""
    at = start + 1
    for _ in range(arena[start] & LOW_MASK):
        kind = arena[at]
        value = values[arena[at + 1]]
        if kind == CHECK_SPANS:
            first = at + 3
            low, high = np.int64(0), arena[at + 2]
            at = first + 2 * high
            while low < high:  # find the first span that ends at or after the value
                middle = (low + high) >> 1
                if arena[first + 2 * middle + 1] < value:
                    low = middle + 1
                else:
                    high = middle
            if first + 2 * low >= at or arena[first + 2 * low] > value:
                return False
        else:
            change = value - values[arena[at + 2]]
            if (change if change > 0 else -change) < arena[at + 3]:
                return False
            at += 4
    return True


@inlined
def settle(
    meta: Any,
    source: Any,
    source_sets: Any,
    arena: Any,
    where: Any,
    values: Any,
    found: Any,
    total: Any,
) -> Any:
    """A row whose intervals hold: checks what is left and writes its handle down."""
    sources = (meta >> SOURCES_SHIFT) & SOURCES_MASK
    if sources and not (source_sets[sources, source >> 6] >> np.uint64(source & 63)) & np.uint64(1):
        return total
    handle = meta & HANDLE_MASK
    if meta & EXTRA_BIT and not passes_extra(arena, where[handle, WHERE_EXTRA], values):
        return total
    if total < found.shape[0]:
        found[total] = ~handle if meta & RESIDUAL_BIT else handle
    return total + 1


@inlined
def visit_rows(
    bucket: Any,
    lacks: Any,
    source: Any,
    source_sets: Any,
    buckets: Any,
    arena: Any,
    where: Any,
    values: Any,
    found: Any,
    total: Any,
) -> Any:
    stride = buckets[bucket, BUCKET_STRIDE]
    row = buckets[bucket, BUCKET_START]
    for _ in range(buckets[bucket, BUCKET_LENGTH]):
        if np.uint64(arena[row + ROW_NEED]) & lacks == 0:
            interval = row + ROW_INTERVALS
            fits = True
            for _ in range(arena[row + ROW_WIDTH]):
                value = values[arena[interval]]
                if value < arena[interval + 1] or value > arena[interval + 2]:
                    fits = False
                    break
                interval += 3
            if fits:
                total = settle(
                    arena[row + ROW_META], source, source_sets, arena, where, values, found, total
                )
        row += stride
    return total


@inlined
def visit_groups(
    bucket: Any,
    lacks: Any,
    source: Any,
    source_sets: Any,
    buckets: Any,
    arena: Any,
    where: Any,
    values: Any,
    alive: Any,
    chosen: Any,
    found: Any,
    total: Any,
) -> Any:
    needs = buckets[bucket, BUCKET_START]
    heads = needs + buckets[bucket, BUCKET_ROOM]
    for nth in range(buckets[bucket, BUCKET_LISTED]):
        if np.uint64(arena[needs + nth]) & lacks:
            continue
        place, size = arena[heads + HEAD_WORDS * nth], arena[heads + HEAD_WORDS * nth + 1]
        slots, width = place & START_MASK, place >> WIDTH_SHIFT
        length, room = size & LOW_MASK, size >> HIGH_SHIFT
        start = slots + width
        present = True
        for column in range(width):  # several attributes can share one of the 64 bits
            if values[arena[slots + column]] == ABSENT:
                present = False
        if not present:
            continue
        for block in range(0, length, BLOCK):
            # Unsigned, so that the compiler knows that no index is negative and uses vectors.
            rows = np.uint64(min(BLOCK, length - block))
            for i in range(rows):
                alive[i] = 1
            for column in range(width):
                value = values[arena[slots + column]]
                lo = np.uint64(start + room * (1 + 2 * column) + block)
                hi = lo + np.uint64(room)
                for i in range(rows):
                    alive[i] &= (arena[lo + i] <= value) & (value <= arena[hi + i])
            left = np.uint64(0)  # without a branch, which would be guessed wrong too often
            for i in range(rows):
                chosen[left] = i
                left += np.uint64(alive[i])
            for i in range(left):
                meta = arena[np.uint64(start + block) + chosen[i]]
                total = settle(meta, source, source_sets, arena, where, values, found, total)
    return total


@compiled
def match_batch(
    events: Any,
    class_parts: Any,
    values: Any,
    slots: Any,
    source_sets: Any,
    doors: Any,
    buckets: Any,
    arena: Any,
    where: Any,
    found: Any,
    found_end: Any,
) -> Any:
    """Writes the handles that each event matches; returns how many there are in all.

    A handle whose residual check is due is written as its complement. When `found` is too small
    the count is right all the same, and the caller comes again with more room.
    """
    total = 0
    alive = np.empty(BLOCK, np.int64)
    chosen = np.empty(BLOCK + 1, np.uint64)
    head = 0
    for event in range(found_end.shape[0]):
        data_class, source = events[head + EVENT_CLASS], events[head + EVENT_SOURCE]
        first = head + EVENT_FIELDS
        head = first + 2 * events[head + EVENT_LENGTH]
        has = np.uint64(0)
        for at in range(first, head, 2):
            slot = events[at]
            values[slot] = events[at + 1]
            has |= np.uint64(1) << np.uint64(slots[slot, SLOT_BIT])
        lacks = ~has
        parts = class_parts[data_class, 0] if data_class >= 0 else 0
        for nth in range(parts):
            part = class_parts[data_class, nth + 1] << 32
            for at in range(first - 2, head, 2):
                # Before the event's own slots, the slot that every event is taken to carry.
                slot = events[at] if at >= first else NO_SLOT
                for kind in (FILED_PINNED, FILED_ANY):
                    if not slots[slot, SLOT_FILED] & kind:
                        continue
                    key = events[at + 1] if kind == FILED_PINNED else ANY_KEY
                    bucket = doors[door_of(doors, part | slot, key), DOOR_TARGET]
                    if bucket < 0:
                        continue
                    if buckets[bucket, BUCKET_STRIDE]:
                        total = visit_rows(
                            bucket,
                            lacks,
                            source,
                            source_sets,
                            buckets,
                            arena,
                            where,
                            values,
                            found,
                            total,
                        )
                    else:
                        total = visit_groups(
                            bucket,
                            lacks,
                            source,
                            source_sets,
                            buckets,
                            arena,
                            where,
                            values,
                            alive,
                            chosen,
                            found,
                            total,
                        )
        for at in range(first, head, 2):
            values[events[at]] = ABSENT
        found_end[event] = total
    return total
