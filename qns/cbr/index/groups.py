"""Groups: the columns of a large bucket, one group for each set of fields, compiled.

A step that lacks room changes nothing that is in use, and `state` says why it stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.arena import allocate, fill_slot, find_slot, mix, release, size_class
from qns.cbr.index.arrays import Row, RowArrays
from qns.cbr.index.layout import (
    ARENA_FULL,
    BUCKET_LISTED,
    BUCKET_ROOM,
    BUCKET_START,
    COLUMN_HI,
    COLUMN_LO,
    COLUMN_META,
    COLUMN_STEP,
    DELETED_SLOT,
    EMPTY_SLOT,
    FREE_GROUPS,
    GROUP_BUCKET,
    GROUP_NTH,
    GROUP_SLOTS,
    HANDLE_MASK,
    HEAD_EXTENT,
    HEAD_GROUP,
    HEAD_SIZE,
    HEAD_WORDS,
    HIGH_SHIFT,
    INTERVAL_FIELD,
    INTERVAL_HI,
    INTERVAL_LO,
    INTERVAL_WORDS,
    LIST_WORDS,
    LOW_MASK,
    NO_BUCKET,
    NO_CHUNK,
    REASON,
    SLOT_TARGET,
    START_MASK,
    TABLES_FULL,
    USED_GROUPS,
    WHERE_HOME,
    WHERE_POSITION,
    WIDTH_SHIFT,
)

NO_GROUP = -1


@compiled
def head_of(bucket: Any, nth: Any, buckets: Any) -> Any:
    """Returns where in the arena the head of a bucket's nth group is."""
    return buckets[bucket, BUCKET_START] + buckets[bucket, BUCKET_ROOM] + HEAD_WORDS * nth


@compiled
def columns_of(width: Any) -> Any:
    """Returns how many columns a group of `width` fields has."""
    return COLUMN_LO + COLUMN_STEP * width


@compiled
def chunk_of(width: Any, room: Any) -> Any:
    """Returns how many words a group of `width` fields takes with `room` rows."""
    return max(1, width + columns_of(width) * room)


@compiled
def fields_key(arena: Any, start: Any, step: Any, width: Any) -> Any:
    """Returns a hash of the fields that stand in the arena `step` words apart."""
    key = np.uint64(width)
    for nth in range(width):
        key = mix(np.int64(key), arena[start + step * nth])
    return np.int64(key >> np.uint64(2))


@compiled
def group_for(bucket: Any, row: Row, arrays: RowArrays) -> Any:
    """Returns the group of a large bucket that holds rows with these fields, a new one if need be.

    Returns NO_GROUP if there is no room for it.
    """
    arena, buckets, groups, state = arrays.arena, arrays.buckets, arrays.groups, arrays.state
    directory, width = arrays.group_directory, row.width
    fields = row.intervals + INTERVAL_FIELD
    key = fields_key(arena, fields, INTERVAL_WORDS, width)
    while True:
        slot = find_slot(directory, bucket, key)
        group = directory[slot, SLOT_TARGET]
        if group < 0:
            break
        extent = arena[head_of(bucket, groups[group, GROUP_NTH], buckets) + HEAD_EXTENT]
        same = extent >> WIDTH_SHIFT == width
        for nth in range(width):
            if same and arena[(extent & START_MASK) + nth] != arena[fields + INTERVAL_WORDS * nth]:
                same = False
        if same:
            return group
        key += 1  # another set of fields has the same hash
    full = state[USED_GROUPS] - state[FREE_GROUPS] >= groups.shape[0]
    if full or state[GROUP_SLOTS] >= directory.shape[0] // 2:
        state[REASON] = TABLES_FULL
        return np.int64(NO_GROUP)
    chunk = allocate(arena, chunk_of(width, 0))
    if chunk == NO_CHUNK or not widen_list(bucket, arena, buckets):
        if chunk != NO_CHUNK:
            release(arena, chunk, chunk_of(width, 0))
        state[REASON] = ARENA_FULL
        return np.int64(NO_GROUP)
    if state[FREE_GROUPS]:
        state[FREE_GROUPS] -= 1
        group = arrays.free_groups[state[FREE_GROUPS]]
    else:
        group = state[USED_GROUPS]
        state[USED_GROUPS] += 1
    if directory[slot, SLOT_TARGET] == EMPTY_SLOT:
        state[GROUP_SLOTS] += 1
    fill_slot(directory, slot, bucket, key, group)
    for nth in range(width):
        arena[chunk + nth] = arena[fields + INTERVAL_WORDS * nth]
    listed = buckets[bucket, BUCKET_LISTED]
    arena[buckets[bucket, BUCKET_START] + listed] = row.need
    head = head_of(bucket, listed, buckets)
    arena[head + HEAD_EXTENT] = chunk | (width << WIDTH_SHIFT)
    room = ((1 << size_class(chunk_of(width, 0))) - width) // columns_of(width)
    arena[head + HEAD_SIZE] = room << HIGH_SHIFT
    arena[head + HEAD_GROUP] = group
    groups[group, GROUP_BUCKET] = bucket
    groups[group, GROUP_NTH] = listed
    buckets[bucket, BUCKET_LISTED] = listed + 1
    return group


@compiled
def widen_list(bucket: Any, arena: Any, buckets: Any) -> Any:
    """Makes room for one more group in a bucket's list. False if the arena is full."""
    listed, room = buckets[bucket, BUCKET_LISTED], buckets[bucket, BUCKET_ROOM]
    if listed < room:
        return True
    words = LIST_WORDS * max(4, 2 * room)
    chunk = allocate(arena, words)
    if chunk == NO_CHUNK:
        return False
    wider = (1 << size_class(words)) // LIST_WORDS
    old = buckets[bucket, BUCKET_START]
    for nth in range(listed):
        arena[chunk + nth] = arena[old + nth]
    for word in range(HEAD_WORDS * listed):
        arena[chunk + wider + word] = arena[old + room + word]
    if room:
        release(arena, old, LIST_WORDS * room)
    buckets[bucket, BUCKET_START] = chunk
    buckets[bucket, BUCKET_ROOM] = wider
    return True


@compiled
def add_to_group(group: Any, row: Row, arrays: RowArrays) -> Any:
    """Appends a row to a group's columns. False if the arena is full."""
    arena, groups = arrays.arena, arrays.groups
    head = head_of(groups[group, GROUP_BUCKET], groups[group, GROUP_NTH], arrays.buckets)
    start = arena[head + HEAD_EXTENT] & START_MASK
    width = arena[head + HEAD_EXTENT] >> WIDTH_SHIFT
    length = arena[head + HEAD_SIZE] & LOW_MASK
    room = arena[head + HEAD_SIZE] >> HIGH_SHIFT
    columns = columns_of(width)
    if length == room:
        words = chunk_of(width, max(1, 2 * length))
        chunk = allocate(arena, words)
        if chunk == NO_CHUNK:
            arrays.state[REASON] = ARENA_FULL
            return False
        wider = ((1 << size_class(words)) - width) // columns
        for nth in range(width):
            arena[chunk + nth] = arena[start + nth]
        for column in range(columns):
            for position in range(length):
                arena[chunk + width + column * wider + position] = arena[
                    start + width + column * room + position
                ]
        release(arena, start, chunk_of(width, room))
        start, room = chunk, wider
        arena[head + HEAD_EXTENT] = start | (width << WIDTH_SHIFT)
    at = start + width + length
    arena[at + room * COLUMN_META] = row.meta
    for nth in range(width):
        interval = row.intervals + INTERVAL_WORDS * nth
        arena[at + room * (COLUMN_LO + COLUMN_STEP * nth)] = arena[interval + INTERVAL_LO]
        arena[at + room * (COLUMN_HI + COLUMN_STEP * nth)] = arena[interval + INTERVAL_HI]
    arena[head + HEAD_SIZE] = (length + 1) | (room << HIGH_SHIFT)
    arrays.where[row.meta & HANDLE_MASK, WHERE_HOME] = ~group
    arrays.where[row.meta & HANDLE_MASK, WHERE_POSITION] = length
    return True


@compiled
def remove_from_group(group: Any, position: Any, arrays: RowArrays) -> None:
    """Removes a row from a group: the last one moves into its place. Frees an empty group."""
    arena, groups = arrays.arena, arrays.groups
    bucket, nth = groups[group, GROUP_BUCKET], groups[group, GROUP_NTH]
    head = head_of(bucket, nth, arrays.buckets)
    start = arena[head + HEAD_EXTENT] & START_MASK
    width = arena[head + HEAD_EXTENT] >> WIDTH_SHIFT
    last = (arena[head + HEAD_SIZE] & LOW_MASK) - 1
    room = arena[head + HEAD_SIZE] >> HIGH_SHIFT
    if position != last:
        for column in range(columns_of(width)):
            at = start + width + column * room
            arena[at + position] = arena[at + last]
        moved = arena[start + width + room * COLUMN_META + position] & HANDLE_MASK
        arrays.where[moved, WHERE_POSITION] = position
    arena[head + HEAD_SIZE] = last | (room << HIGH_SHIFT)
    if last == 0:
        free_group(group, head, arrays)


@compiled
def free_group(group: Any, head: Any, arrays: RowArrays) -> None:
    """Frees a group without rows: the last group of its bucket's list moves into its place."""
    arena, buckets, groups = arrays.arena, arrays.buckets, arrays.groups
    directory, state = arrays.group_directory, arrays.state
    bucket, nth = groups[group, GROUP_BUCKET], groups[group, GROUP_NTH]
    start = arena[head + HEAD_EXTENT] & START_MASK
    width = arena[head + HEAD_EXTENT] >> WIDTH_SHIFT
    room = arena[head + HEAD_SIZE] >> HIGH_SHIFT
    key = fields_key(arena, start, 1, width)
    slot = find_slot(directory, bucket, key)
    while directory[slot, SLOT_TARGET] != group:
        key += 1
        slot = find_slot(directory, bucket, key)
    directory[slot, SLOT_TARGET] = DELETED_SLOT
    release(arena, start, chunk_of(width, room))
    listed = buckets[bucket, BUCKET_LISTED] - 1
    if nth != listed:
        tail = head_of(bucket, listed, buckets)
        for word in range(HEAD_WORDS):
            arena[head + word] = arena[tail + word]
        needs = buckets[bucket, BUCKET_START]
        arena[needs + nth] = arena[needs + listed]
        groups[arena[head + HEAD_GROUP], GROUP_NTH] = nth
    buckets[bucket, BUCKET_LISTED] = listed
    groups[group, GROUP_BUCKET] = NO_BUCKET
    arrays.free_groups[state[FREE_GROUPS]] = group
    state[FREE_GROUPS] += 1
