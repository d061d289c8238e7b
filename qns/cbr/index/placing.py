"""Inserting and deleting rows, compiled. A step that lacks room leaves the tables as they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.arena import allocate, fill_slot, find_slot, release, size_class
from qns.cbr.index.arrays import Row, RowArrays
from qns.cbr.index.filing import best_access, count_pin, count_pins
from qns.cbr.index.groups import (
    NO_GROUP,
    add_to_group,
    fields_key,
    group_for,
    head_of,
    remove_from_group,
)
from qns.cbr.index.layout import (
    ANY_KEY,
    ARENA_END,
    ARENA_FULL,
    BUCKET_KEY,
    BUCKET_LENGTH,
    BUCKET_LISTED,
    BUCKET_ROOM,
    BUCKET_SPACE,
    BUCKET_START,
    BUCKET_STRIDE,
    COLUMN_HI,
    COLUMN_LO,
    COLUMN_STEP,
    CONVERSION_FACTOR,
    DONE,
    EXTRA_SIZE,
    FIELD_BIT,
    FIELD_FILED,
    FIELD_MASK,
    FILED_ANY,
    FILED_PINNED,
    FREE_BUCKETS,
    FREE_GROUPS,
    GROUP_BUCKET,
    GROUP_NTH,
    GROUP_SLOTS,
    HANDLE_MASK,
    HEAD_EXTENT,
    HEAD_SIZE,
    HIGH_SHIFT,
    INTERVAL_FIELD,
    INTERVAL_HI,
    INTERVAL_LO,
    INTERVAL_WORDS,
    ITEM_INTERVALS,
    ITEM_LENGTH,
    ITEM_META,
    ITEM_PART,
    LARGE,
    LIST_WORDS,
    NO_BUCKET,
    NO_CHUNK,
    NO_FIELD,
    PART_SHIFT,
    REASON,
    ROW_INTERVALS,
    ROW_META,
    ROW_NEED,
    ROW_WIDTH,
    SLOT_TARGET,
    START_MASK,
    TABLES_FULL,
    USED_BUCKETS,
    USED_GROUPS,
    WHERE_EXTRA,
    WHERE_HOME,
    WHERE_POSITION,
    WIDTH_SHIFT,
)


@compiled
def add_to_rows(bucket: Any, row: Row, arrays: RowArrays) -> Any:
    """Appends a row to a small bucket. False if the arena is full."""
    arena, buckets = arrays.arena, arrays.buckets
    length, room = buckets[bucket, BUCKET_LENGTH], buckets[bucket, BUCKET_ROOM]
    stride = buckets[bucket, BUCKET_STRIDE]
    wanted = max(stride, ROW_INTERVALS + INTERVAL_WORDS * row.width)
    if length == room or wanted > stride:
        words = wanted * (max(1, 2 * length) if length == room else room)
        chunk = allocate(arena, words)
        if chunk == NO_CHUNK:
            arrays.state[REASON] = ARENA_FULL
            return False
        old = buckets[bucket, BUCKET_START]
        for position in range(length):
            for word in range(stride):
                arena[chunk + wanted * position + word] = arena[old + stride * position + word]
        if room:
            release(arena, old, stride * room)
        stride = wanted
        buckets[bucket, BUCKET_START] = chunk
        buckets[bucket, BUCKET_ROOM] = (1 << size_class(words)) // stride
        buckets[bucket, BUCKET_STRIDE] = stride
    at = buckets[bucket, BUCKET_START] + stride * length
    arena[at + ROW_META] = row.meta
    arena[at + ROW_NEED] = row.need
    arena[at + ROW_WIDTH] = row.width
    for word in range(INTERVAL_WORDS * row.width):
        arena[at + ROW_INTERVALS + word] = arena[row.intervals + word]
    arrays.where[row.meta & HANDLE_MASK, WHERE_HOME] = bucket
    arrays.where[row.meta & HANDLE_MASK, WHERE_POSITION] = length
    return True


@compiled
def convert(bucket: Any, arrays: RowArrays) -> Any:
    """Turns a small bucket into a large one. False, and nothing changes, if there is no room."""
    arena, buckets, state = arrays.arena, arrays.buckets, arrays.state
    start, length = buckets[bucket, BUCKET_START], buckets[bucket, BUCKET_LENGTH]
    room, stride = buckets[bucket, BUCKET_ROOM], buckets[bucket, BUCKET_STRIDE]
    if arena[ARENA_END] + CONVERSION_FACTOR * length * stride > arena.shape[0]:
        state[REASON] = ARENA_FULL
        return False
    taken = state[USED_GROUPS] - state[FREE_GROUPS]
    no_slots = state[GROUP_SLOTS] + length >= arrays.group_directory.shape[0] // 2
    if no_slots or taken + length >= arrays.groups.shape[0]:
        state[REASON] = TABLES_FULL
        return False
    buckets[bucket, BUCKET_STRIDE] = 0
    buckets[bucket, BUCKET_ROOM] = 0
    buckets[bucket, BUCKET_LISTED] = 0
    for nth in range(length):
        at = start + stride * nth
        width = arena[at + ROW_WIDTH]
        row = Row(arena[at + ROW_META], arena[at + ROW_NEED], at + ROW_INTERVALS, width)
        add_to_group(group_for(bucket, row, arrays), row, arrays)
    release(arena, start, stride * room)
    return True


@compiled
def insert_batch(
    begin: Any,
    items: Any,
    arena: Any,
    directory: Any,
    buckets: Any,
    free_buckets: Any,
    groups: Any,
    group_directory: Any,
    free_groups: Any,
    fields: Any,
    where: Any,
    counts: Any,
    state: Any,
) -> Any:
    """Inserts the items from `begin` on. Returns where it stopped; `state` says why.

    All values that the rows pin are counted first, so that the first rows are filed as well as the
    last ones.
    """
    arrays = RowArrays(arena, buckets, groups, group_directory, free_groups, where, state)
    if begin == 0 and state[REASON] == DONE:
        count_pins(items, counts)
    item = begin
    while item < items.shape[0]:
        part, meta = items[item + ITEM_PART], items[item + ITEM_META]
        first = item + ITEM_INTERVALS
        last = first + INTERVAL_WORDS * items[item + ITEM_LENGTH]
        access = best_access(items, first, last, part, fields, counts)
        space, key, pin = part << PART_SHIFT | NO_FIELD, np.int64(ANY_KEY), -1
        if access >= 0:
            space |= items[access + INTERVAL_FIELD]
            if items[access + INTERVAL_LO] == items[access + INTERVAL_HI]:
                key, pin = items[access + INTERVAL_LO], access
        slot = find_slot(directory, space, key)
        bucket = directory[slot, SLOT_TARGET]
        if bucket < 0:
            limit = min(directory.shape[0] // 2, buckets.shape[0])
            if state[USED_BUCKETS] - state[FREE_BUCKETS] >= limit:
                state[REASON] = TABLES_FULL
                return item
            if state[FREE_BUCKETS]:
                state[FREE_BUCKETS] -= 1
                bucket = free_buckets[state[FREE_BUCKETS]]
            else:
                bucket = state[USED_BUCKETS]
                state[USED_BUCKETS] += 1
            fill_slot(directory, slot, space, key, bucket)
            buckets[bucket, :] = 0
            buckets[bucket, BUCKET_STRIDE] = ROW_INTERVALS
            buckets[bucket, BUCKET_SPACE] = space
            buckets[bucket, BUCKET_KEY] = key
            fields[space & FIELD_MASK, FIELD_FILED] |= FILED_PINNED if pin >= 0 else FILED_ANY
        # A chunk holds the row's intervals, all but the pinned one, until they are stored.
        width = items[item + ITEM_LENGTH] - (1 if pin >= 0 else 0)
        words = max(1, INTERVAL_WORDS * width)
        intervals = allocate(arena, words)
        if intervals == NO_CHUNK:
            state[REASON] = ARENA_FULL
            return item
        need = np.uint64(0)
        to = intervals
        for at in range(first, last, INTERVAL_WORDS):
            field = items[at + INTERVAL_FIELD]
            need |= np.uint64(1) << np.uint64(fields[field, FIELD_BIT])
            if at != pin:
                for word in range(INTERVAL_WORDS):
                    arena[to + word] = items[at + word]
                to += INTERVAL_WORDS
        row = Row(meta, np.int64(need), intervals, width)
        done = True
        if buckets[bucket, BUCKET_STRIDE] and buckets[bucket, BUCKET_LENGTH] >= LARGE:
            done = convert(bucket, arrays)
        if done and buckets[bucket, BUCKET_STRIDE]:
            done = add_to_rows(bucket, row, arrays)
        elif done:
            group = group_for(bucket, row, arrays)
            done = group != NO_GROUP and add_to_group(group, row, arrays)
        release(arena, intervals, words)
        if not done:
            return item
        buckets[bucket, BUCKET_LENGTH] += 1
        item = last
    state[REASON] = DONE
    return item


@compiled
def uncount(bucket: Any, home: Any, position: Any, arrays: RowArrays, counts: Any) -> None:
    """Removes the values that a row pins from the counts."""
    arena, buckets = arrays.arena, arrays.buckets
    part = buckets[bucket, BUCKET_SPACE] >> PART_SHIFT
    if buckets[bucket, BUCKET_KEY] != ANY_KEY:
        field = buckets[bucket, BUCKET_SPACE] & FIELD_MASK
        count_pin(counts, part, field, buckets[bucket, BUCKET_KEY], -1)
    if home >= 0:
        row = buckets[bucket, BUCKET_START] + buckets[bucket, BUCKET_STRIDE] * position
        for nth in range(arena[row + ROW_WIDTH]):
            at = row + ROW_INTERVALS + INTERVAL_WORDS * nth
            lo = arena[at + INTERVAL_LO]
            if lo == arena[at + INTERVAL_HI]:
                count_pin(counts, part, arena[at + INTERVAL_FIELD], lo, -1)
        return
    head = head_of(bucket, arrays.groups[~home, GROUP_NTH], buckets)
    start = arena[head + HEAD_EXTENT] & START_MASK
    width = arena[head + HEAD_EXTENT] >> WIDTH_SHIFT
    room = arena[head + HEAD_SIZE] >> HIGH_SHIFT
    for nth in range(width):
        at = start + width + position
        lo = arena[at + room * (COLUMN_LO + COLUMN_STEP * nth)]
        if lo == arena[at + room * (COLUMN_HI + COLUMN_STEP * nth)]:
            count_pin(counts, part, arena[start + nth], lo, -1)


@compiled
def delete_one(
    handle: Any,
    arena: Any,
    buckets: Any,
    groups: Any,
    group_directory: Any,
    free_groups: Any,
    where: Any,
    counts: Any,
    state: Any,
) -> None:
    """Deletes a row: the last row of its bucket or group moves into its place."""
    arrays = RowArrays(arena, buckets, groups, group_directory, free_groups, where, state)
    home, position = where[handle, WHERE_HOME], where[handle, WHERE_POSITION]
    extra = where[handle, WHERE_EXTRA]
    if extra:
        release(arena, extra, arena[extra + EXTRA_SIZE] >> HIGH_SHIFT)
        where[handle, WHERE_EXTRA] = 0
    bucket = home if home >= 0 else groups[~home, GROUP_BUCKET]
    uncount(bucket, home, position, arrays, counts)
    buckets[bucket, BUCKET_LENGTH] -= 1
    last = buckets[bucket, BUCKET_LENGTH]
    if home < 0:
        remove_from_group(~home, position, arrays)
        if last == 0:
            listed = LIST_WORDS * buckets[bucket, BUCKET_ROOM]
            release(arena, buckets[bucket, BUCKET_START], listed)
            buckets[bucket, BUCKET_ROOM] = 0
            buckets[bucket, BUCKET_STRIDE] = ROW_INTERVALS
        return
    start, stride = buckets[bucket, BUCKET_START], buckets[bucket, BUCKET_STRIDE]
    if position != last:
        for word in range(stride):
            arena[start + stride * position + word] = arena[start + stride * last + word]
        moved = arena[start + stride * position + ROW_META] & HANDLE_MASK
        where[moved, WHERE_POSITION] = position
    if last == 0:
        release(arena, start, stride * buckets[bucket, BUCKET_ROOM])
        buckets[bucket, BUCKET_ROOM] = 0


@compiled
def refill_directories(
    arena: Any,
    directory: Any,
    buckets: Any,
    free_buckets: Any,
    groups: Any,
    group_directory: Any,
    fields: Any,
    state: Any,
) -> None:
    """Fills empty directories with all groups and buckets. Frees the buckets without rows."""
    state[GROUP_SLOTS] = 0
    for group in range(state[USED_GROUPS]):
        bucket = groups[group, GROUP_BUCKET]
        if bucket == NO_BUCKET:
            continue
        extent = arena[head_of(bucket, groups[group, GROUP_NTH], buckets) + HEAD_EXTENT]
        key = fields_key(arena, extent & START_MASK, 1, extent >> WIDTH_SHIFT)
        slot = find_slot(group_directory, bucket, key)
        while group_directory[slot, SLOT_TARGET] >= 0:
            key += 1
            slot = find_slot(group_directory, bucket, key)
        fill_slot(group_directory, slot, bucket, key, group)
        state[GROUP_SLOTS] += 1
    state[FREE_BUCKETS] = 0
    for bucket in range(state[USED_BUCKETS]):
        space, key = buckets[bucket, BUCKET_SPACE], buckets[bucket, BUCKET_KEY]
        if buckets[bucket, BUCKET_LENGTH]:
            fill_slot(directory, find_slot(directory, space, key), space, key, bucket)
            filed = FILED_ANY if key == ANY_KEY else FILED_PINNED
            fields[space & FIELD_MASK, FIELD_FILED] |= filed
            continue
        buckets[bucket, :] = 0
        buckets[bucket, BUCKET_STRIDE] = ROW_INTERVALS
        free_buckets[state[FREE_BUCKETS]] = bucket
        state[FREE_BUCKETS] += 1
