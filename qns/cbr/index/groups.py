"""Groups: the columns of a large bucket, one group for each set of attributes, compiled.

Rows come from intervals that lie in the arena as slot, lo, hi each; `source` is where they start.
A step that lacks room changes nothing that is in use, and `state` says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.arena import allocate, door_of, mix, open_door, release, size_class
from qns.cbr.index.layout import (
    ARENA_FULL,
    BUCKET_LISTED,
    BUCKET_ROOM,
    BUCKET_START,
    CLOSED_DOOR,
    DOOR_TARGET,
    FREE_GROUPS,
    GROUP_BUCKET,
    GROUP_DOORS,
    GROUP_NTH,
    HANDLE_MASK,
    HEAD_GROUP,
    HEAD_PLACE,
    HEAD_SIZE,
    HEAD_WORDS,
    HIGH_SHIFT,
    LOW_MASK,
    NO_DOOR,
    REASON,
    START_MASK,
    TABLES_FULL,
    USED_GROUPS,
    WHERE_HOME,
    WHERE_POSITION,
    WIDTH_SHIFT,
)


@compiled
def head_of(bucket: Any, nth: Any, buckets: Any) -> Any:
    """Where in the arena the head of a bucket's nth group is."""
    return buckets[bucket, BUCKET_START] + buckets[bucket, BUCKET_ROOM] + HEAD_WORDS * nth


@compiled
def slots_key(arena: Any, start: Any, step: Any, width: Any) -> Any:
    """A hash of the slots that stand in the arena `step` words apart."""
    key = np.uint64(width)
    for nth in range(width):
        key = mix(np.int64(key), arena[start + step * nth])
    return np.int64(key >> np.uint64(2))


@compiled
def group_for(
    bucket: Any,
    need: Any,
    source: Any,
    width: Any,
    arena: Any,
    buckets: Any,
    groups: Any,
    group_doors: Any,
    free_groups: Any,
    state: Any,
) -> Any:
    """The group of a large bucket that holds rows with these slots; -1 for lack of room."""
    key = slots_key(arena, source, 3, width)
    while True:
        door = door_of(group_doors, bucket, key)
        group = group_doors[door, DOOR_TARGET]
        if group < 0:
            break
        place = arena[head_of(bucket, groups[group, GROUP_NTH], buckets) + HEAD_PLACE]
        same = place >> WIDTH_SHIFT == width
        for nth in range(width):
            if same and arena[(place & START_MASK) + nth] != arena[source + 3 * nth]:
                same = False
        if same:
            return group
        key += 1  # another set of slots has the same hash
    full = state[USED_GROUPS] - state[FREE_GROUPS] >= groups.shape[0]
    if full or state[GROUP_DOORS] >= group_doors.shape[0] // 2:
        state[REASON] = TABLES_FULL
        return np.int64(-1)
    chunk = allocate(arena, max(1, width))
    if chunk < 0 or not widen_list(bucket, arena, buckets):
        if chunk >= 0:
            release(arena, chunk, max(1, width))
        state[REASON] = ARENA_FULL
        return np.int64(-1)
    if state[FREE_GROUPS]:
        state[FREE_GROUPS] -= 1
        group = free_groups[state[FREE_GROUPS]]
    else:
        group = state[USED_GROUPS]
        state[USED_GROUPS] += 1
    if group_doors[door, DOOR_TARGET] == NO_DOOR:
        state[GROUP_DOORS] += 1
    open_door(group_doors, door, bucket, key, group)
    for nth in range(width):
        arena[chunk + nth] = arena[source + 3 * nth]
    listed = buckets[bucket, BUCKET_LISTED]
    arena[buckets[bucket, BUCKET_START] + listed] = need
    head = head_of(bucket, listed, buckets)
    arena[head + HEAD_PLACE] = chunk | (width << WIDTH_SHIFT)
    room = ((1 << size_class(max(1, width))) - width) // (1 + 2 * width)
    arena[head + HEAD_SIZE] = room << HIGH_SHIFT
    arena[head + HEAD_GROUP] = group
    groups[group, GROUP_BUCKET] = bucket
    groups[group, GROUP_NTH] = listed
    buckets[bucket, BUCKET_LISTED] = listed + 1
    return group


@compiled
def widen_list(bucket: Any, arena: Any, buckets: Any) -> Any:
    """Makes room for one more group in a bucket's list; False for lack of room."""
    listed, room = buckets[bucket, BUCKET_LISTED], buckets[bucket, BUCKET_ROOM]
    if listed < room:
        return True
    words = (1 + HEAD_WORDS) * max(4, 2 * room)
    chunk = allocate(arena, words)
    if chunk < 0:
        return False
    wider = (1 << size_class(words)) // (1 + HEAD_WORDS)
    old = buckets[bucket, BUCKET_START]
    for nth in range(listed):
        arena[chunk + nth] = arena[old + nth]
    for word in range(HEAD_WORDS * listed):
        arena[chunk + wider + word] = arena[old + room + word]
    if room:
        release(arena, old, (1 + HEAD_WORDS) * room)
    buckets[bucket, BUCKET_START] = chunk
    buckets[bucket, BUCKET_ROOM] = wider
    return True


@compiled
def add_to_group(
    group: Any,
    meta: Any,
    source: Any,
    arena: Any,
    buckets: Any,
    groups: Any,
    where: Any,
    state: Any,
) -> Any:
    """Appends a row to a group's columns; False for lack of room."""
    head = head_of(groups[group, GROUP_BUCKET], groups[group, GROUP_NTH], buckets)
    start = arena[head + HEAD_PLACE] & START_MASK
    width = arena[head + HEAD_PLACE] >> WIDTH_SHIFT
    length = arena[head + HEAD_SIZE] & LOW_MASK
    room = arena[head + HEAD_SIZE] >> HIGH_SHIFT
    columns = 1 + 2 * width
    if length == room:
        words = width + columns * max(1, 2 * length)
        chunk = allocate(arena, words)
        if chunk < 0:
            state[REASON] = ARENA_FULL
            return False
        wider = ((1 << size_class(words)) - width) // columns
        for nth in range(width):
            arena[chunk + nth] = arena[start + nth]
        for column in range(columns):
            for row in range(length):
                arena[chunk + width + column * wider + row] = arena[
                    start + width + column * room + row
                ]
        release(arena, start, max(1, width + columns * room))
        start, room = chunk, wider
        arena[head + HEAD_PLACE] = start | (width << WIDTH_SHIFT)
    at = start + width + length
    arena[at] = meta
    for nth in range(width):
        arena[at + room * (1 + 2 * nth)] = arena[source + 3 * nth + 1]
        arena[at + room * (2 + 2 * nth)] = arena[source + 3 * nth + 2]
    arena[head + HEAD_SIZE] = (length + 1) | (room << HIGH_SHIFT)
    where[meta & HANDLE_MASK, WHERE_HOME] = ~group
    where[meta & HANDLE_MASK, WHERE_POSITION] = length
    return True


@compiled
def take_from_group(
    group: Any,
    position: Any,
    arena: Any,
    buckets: Any,
    groups: Any,
    group_doors: Any,
    free_groups: Any,
    where: Any,
    state: Any,
) -> None:
    """Takes a row out of a group: the last one moves into its place. An empty group is given up."""
    bucket, nth = groups[group, GROUP_BUCKET], groups[group, GROUP_NTH]
    head = head_of(bucket, nth, buckets)
    start = arena[head + HEAD_PLACE] & START_MASK
    width = arena[head + HEAD_PLACE] >> WIDTH_SHIFT
    last = (arena[head + HEAD_SIZE] & LOW_MASK) - 1
    room = arena[head + HEAD_SIZE] >> HIGH_SHIFT
    if position != last:
        for column in range(1 + 2 * width):
            at = start + width + column * room
            arena[at + position] = arena[at + last]
        where[arena[start + width + position] & HANDLE_MASK, WHERE_POSITION] = position
    arena[head + HEAD_SIZE] = last | (room << HIGH_SHIFT)
    if last:
        return
    key = slots_key(arena, start, 1, width)
    door = door_of(group_doors, bucket, key)
    while group_doors[door, DOOR_TARGET] != group:
        key += 1
        door = door_of(group_doors, bucket, key)
    group_doors[door, DOOR_TARGET] = CLOSED_DOOR
    release(arena, start, max(1, width + (1 + 2 * width) * room))
    listed = buckets[bucket, BUCKET_LISTED] - 1
    if nth != listed:
        tail = head_of(bucket, listed, buckets)
        for word in range(HEAD_WORDS):
            arena[head + word] = arena[tail + word]
        needs = buckets[bucket, BUCKET_START]
        arena[needs + nth] = arena[needs + listed]
        groups[arena[head + HEAD_GROUP], GROUP_NTH] = nth
    buckets[bucket, BUCKET_LISTED] = listed
    groups[group, GROUP_BUCKET] = -1
    free_groups[state[FREE_GROUPS]] = group
    state[FREE_GROUPS] += 1
