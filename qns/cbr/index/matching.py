"""Matching a batch of encoded events, compiled.

These functions take the arrays one by one. With one named tuple of arrays, the loop over a batch of
events took 16 % longer with 1,000 subscriptions and 6 % longer with 10,000 (the fastest of 16
processes each; two copies of the same code differed by 1 %).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled, inlined
from qns.cbr.index.arena import find_slot
from qns.cbr.index.layout import (
    ABSENT,
    ANY_KEY,
    BLOCK,
    BUCKET_LENGTH,
    BUCKET_LISTED,
    BUCKET_ROOM,
    BUCKET_START,
    BUCKET_STRIDE,
    CHECK_CHANGE,
    CHECK_CHANGE_WORDS,
    CHECK_FIELD,
    CHECK_KIND,
    CHECK_LENGTH,
    CHECK_PREVIOUS,
    CHECK_SPANS,
    CLASS_COUNT,
    CLASS_FIRST,
    COLUMN_LO,
    COLUMN_META,
    COLUMN_STEP,
    EVENT_CLASS,
    EVENT_LENGTH,
    EVENT_SOURCE,
    EVENT_VALUES,
    EXTRA_BIT,
    EXTRA_CHECKS,
    EXTRA_SIZE,
    FIELD_BIT,
    FIELD_FILED,
    FILED_ANY,
    FILED_PINNED,
    HANDLE_MASK,
    HEAD_EXTENT,
    HEAD_SIZE,
    HEAD_WORDS,
    HIGH_SHIFT,
    INTERVAL_FIELD,
    INTERVAL_HI,
    INTERVAL_LO,
    INTERVAL_WORDS,
    KIND_SPANS,
    LOW_MASK,
    NO_FIELD,
    PART_SHIFT,
    RESIDUAL_BIT,
    ROW_INTERVALS,
    ROW_META,
    ROW_NEED,
    ROW_WIDTH,
    SLOT_TARGET,
    SOURCE_MASK,
    SOURCE_SHIFT,
    SOURCES_MASK,
    SOURCES_SHIFT,
    SPAN_HI,
    SPAN_LO,
    SPAN_WORDS,
    START_MASK,
    VALUE_FIELD,
    VALUE_KEY,
    VALUE_WORDS,
    WHERE_EXTRA,
    WIDTH_SHIFT,
)


@compiled
def passes_extra(arena: Any, start: Any, values: Any) -> Any:
    """True if the event passes the checks that one interval per field cannot express."""
    at = start + EXTRA_CHECKS
    for _ in range(arena[start + EXTRA_SIZE] & LOW_MASK):
        value = values[arena[at + CHECK_FIELD]]
        if arena[at + CHECK_KIND] == KIND_SPANS:
            first = at + CHECK_SPANS
            low, high = np.int64(0), arena[at + CHECK_LENGTH]
            at = first + SPAN_WORDS * high
            while low < high:  # find the first span that ends at or after the value
                middle = (low + high) >> 1
                if arena[first + SPAN_WORDS * middle + SPAN_HI] < value:
                    low = middle + 1
                else:
                    high = middle
            span = first + SPAN_WORDS * low
            if span >= at or arena[span + SPAN_LO] > value:
                return False
        else:
            change = value - values[arena[at + CHECK_PREVIOUS]]
            if (change if change > 0 else -change) < arena[at + CHECK_CHANGE]:
                return False
            at += CHECK_CHANGE_WORDS
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
    """Makes the remaining checks of a row whose intervals hold. Writes its handle if it passes."""
    sources = (meta >> SOURCES_SHIFT) & SOURCES_MASK
    if sources:
        word = source_sets[sources, source >> SOURCE_SHIFT]
        if not (word >> np.uint64(source & SOURCE_MASK)) & np.uint64(1):
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
    """Checks the rows of a small bucket one by one. Returns the new number of handles."""
    stride = buckets[bucket, BUCKET_STRIDE]
    row = buckets[bucket, BUCKET_START]
    for _ in range(buckets[bucket, BUCKET_LENGTH]):
        if np.uint64(arena[row + ROW_NEED]) & lacks == 0:
            interval = row + ROW_INTERVALS
            fits = True
            for _ in range(arena[row + ROW_WIDTH]):
                value = values[arena[interval + INTERVAL_FIELD]]
                if value < arena[interval + INTERVAL_LO] or value > arena[interval + INTERVAL_HI]:
                    fits = False
                    break
                interval += INTERVAL_WORDS
            if fits:
                total = settle(
                    arena[row + ROW_META],
                    source,
                    source_sets,
                    arena,
                    where,
                    values,
                    found,
                    total,
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
    """Checks the rows of a large bucket column by column. Returns the new number of handles.

    `alive` and `chosen` are scratch arrays for one block of rows.
    """
    needs = buckets[bucket, BUCKET_START]
    heads = needs + buckets[bucket, BUCKET_ROOM]
    for nth in range(buckets[bucket, BUCKET_LISTED]):
        if np.uint64(arena[needs + nth]) & lacks:
            continue
        head = heads + HEAD_WORDS * nth
        extent, size = arena[head + HEAD_EXTENT], arena[head + HEAD_SIZE]
        fields, width = extent & START_MASK, extent >> WIDTH_SHIFT
        length, room = size & LOW_MASK, size >> HIGH_SHIFT
        start = fields + width
        present = True
        for column in range(width):  # several fields can share one of the 64 bits
            if values[arena[fields + column]] == ABSENT:
                present = False
        if not present:
            continue
        for block in range(0, length, BLOCK):
            # Unsigned indexes tell the compiler that none is negative, so that it uses vectors.
            rows = np.uint64(min(BLOCK, length - block))
            for i in range(rows):
                alive[i] = 1
            for column in range(width):
                value = values[arena[fields + column]]
                lo = np.uint64(start + room * (COLUMN_LO + COLUMN_STEP * column) + block)
                hi = lo + np.uint64(room)
                for i in range(rows):
                    alive[i] &= (arena[lo + i] <= value) & (value <= arena[hi + i])
            left = np.uint64(0)  # no branch here: its prediction would fail too often
            for i in range(rows):
                chosen[left] = i
                left += np.uint64(alive[i])
            metas = np.uint64(start + room * COLUMN_META + block)
            for i in range(left):
                total = settle(
                    arena[metas + chosen[i]],
                    source,
                    source_sets,
                    arena,
                    where,
                    values,
                    found,
                    total,
                )
    return total


@compiled
def match_batch(
    events: Any,
    class_parts: Any,
    values: Any,
    fields: Any,
    source_sets: Any,
    directory: Any,
    buckets: Any,
    arena: Any,
    where: Any,
    found: Any,
    found_end: Any,
) -> Any:
    """Writes the handles that each event matches. Returns how many there are in all.

    A handle whose residual check is due is written as its complement. If `found` is too small the
    count is right all the same, and the caller repeats the call with more room.
    """
    total = 0
    alive = np.empty(BLOCK, np.int64)
    chosen = np.empty(BLOCK + 1, np.uint64)
    head = 0
    for event in range(found_end.shape[0]):
        data_class, source = events[head + EVENT_CLASS], events[head + EVENT_SOURCE]
        first = head + EVENT_VALUES
        head = first + VALUE_WORDS * events[head + EVENT_LENGTH]
        has = np.uint64(0)
        for at in range(first, head, VALUE_WORDS):
            field = events[at + VALUE_FIELD]
            values[field] = events[at + VALUE_KEY]
            has |= np.uint64(1) << np.uint64(fields[field, FIELD_BIT])
        lacks = ~has
        parts = class_parts[data_class, CLASS_COUNT] if data_class >= 0 else 0
        for nth in range(parts):
            part = class_parts[data_class, CLASS_FIRST + nth] << PART_SHIFT
            for at in range(first - VALUE_WORDS, head, VALUE_WORDS):
                # The first step is for the field that every event is taken to carry.
                field = events[at + VALUE_FIELD] if at >= first else NO_FIELD
                for kind in (FILED_PINNED, FILED_ANY):
                    if not fields[field, FIELD_FILED] & kind:
                        continue
                    key = events[at + VALUE_KEY] if kind == FILED_PINNED else ANY_KEY
                    bucket = directory[find_slot(directory, part | field, key), SLOT_TARGET]
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
        for at in range(first, head, VALUE_WORDS):
            values[events[at + VALUE_FIELD]] = ABSENT
        found_end[event] = total
    return total
