"""Inserting and deleting rows, compiled. A step that lacks room leaves things as they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.arena import allocate, door_of, open_door, release, size_class
from qns.cbr.index.filing import best_access, count_pin, count_pins
from qns.cbr.index.groups import (
    add_to_group,
    group_for,
    head_of,
    slots_key,
    take_from_group,
)
from qns.cbr.index.layout import (
    ANY_KEY,
    ARENA_END,
    ARENA_FULL,
    BUCKET_KEY,
    BUCKET_LENGTH,
    BUCKET_LISTED,
    BUCKET_PLACE,
    BUCKET_ROOM,
    BUCKET_START,
    BUCKET_STRIDE,
    DONE,
    DOOR_TARGET,
    FILED_ANY,
    FILED_PINNED,
    FREE_BUCKETS,
    FREE_GROUPS,
    GROUP_BUCKET,
    GROUP_DOORS,
    GROUP_NTH,
    HANDLE_MASK,
    HEAD_PLACE,
    HEAD_SIZE,
    HEAD_WORDS,
    HIGH_SHIFT,
    ITEM_FIELDS,
    ITEM_LENGTH,
    ITEM_META,
    ITEM_PART,
    LARGE,
    NO_SLOT,
    REASON,
    ROW_INTERVALS,
    ROW_META,
    ROW_NEED,
    ROW_WIDTH,
    SLOT_BIT,
    SLOT_FILED,
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
def add_to_rows(
    bucket: Any,
    meta: Any,
    need: Any,
    source: Any,
    width: Any,
    arena: Any,
    buckets: Any,
    where: Any,
    state: Any,
) -> Any:
    """Appends a row to a small bucket; False for lack of room."""
    length, room = buckets[bucket, BUCKET_LENGTH], buckets[bucket, BUCKET_ROOM]
    stride = buckets[bucket, BUCKET_STRIDE]
    wanted = max(stride, ROW_INTERVALS + 3 * width)
    if length == room or wanted > stride:
        words = wanted * (max(1, 2 * length) if length == room else room)
        chunk = allocate(arena, words)
        if chunk < 0:
            state[REASON] = ARENA_FULL
            return False
        old = buckets[bucket, BUCKET_START]
        for row in range(length):
            for word in range(stride):
                arena[chunk + wanted * row + word] = arena[old + stride * row + word]
        if room:
            release(arena, old, stride * room)
        stride = wanted
        buckets[bucket, BUCKET_START] = chunk
        buckets[bucket, BUCKET_ROOM] = (1 << size_class(words)) // stride
        buckets[bucket, BUCKET_STRIDE] = stride
    row = buckets[bucket, BUCKET_START] + stride * length
    arena[row + ROW_META] = meta
    arena[row + ROW_NEED] = need
    arena[row + ROW_WIDTH] = width
    for word in range(3 * width):
        arena[row + ROW_INTERVALS + word] = arena[source + word]
    where[meta & HANDLE_MASK, WHERE_HOME] = bucket
    where[meta & HANDLE_MASK, WHERE_POSITION] = length
    return True


@compiled
def convert(
    bucket: Any,
    arena: Any,
    buckets: Any,
    groups: Any,
    group_doors: Any,
    free_groups: Any,
    where: Any,
    state: Any,
) -> Any:
    """Turns a small bucket into a large one; False, and nothing done, for lack of room."""
    start, length = buckets[bucket, BUCKET_START], buckets[bucket, BUCKET_LENGTH]
    room, stride = buckets[bucket, BUCKET_ROOM], buckets[bucket, BUCKET_STRIDE]
    if arena[ARENA_END] + 32 * length * stride > arena.shape[0]:
        state[REASON] = ARENA_FULL
        return False
    taken = state[USED_GROUPS] - state[FREE_GROUPS]
    no_doors = state[GROUP_DOORS] + length >= group_doors.shape[0] // 2
    if no_doors or taken + length >= groups.shape[0]:
        state[REASON] = TABLES_FULL
        return False
    buckets[bucket, BUCKET_STRIDE] = 0
    buckets[bucket, BUCKET_ROOM] = 0
    buckets[bucket, BUCKET_LISTED] = 0
    for nth in range(length):
        row = start + stride * nth
        source = row + ROW_INTERVALS
        group = group_for(
            bucket,
            arena[row + ROW_NEED],
            source,
            arena[row + ROW_WIDTH],
            arena,
            buckets,
            groups,
            group_doors,
            free_groups,
            state,
        )
        add_to_group(group, arena[row + ROW_META], source, arena, buckets, groups, where, state)
    release(arena, start, stride * room)
    return True


@compiled
def insert_batch(
    begin: Any,
    items: Any,
    arena: Any,
    doors: Any,
    buckets: Any,
    free_buckets: Any,
    groups: Any,
    group_doors: Any,
    free_groups: Any,
    slots: Any,
    where: Any,
    counts: Any,
    state: Any,
) -> Any:
    """Inserts the items from `begin` on; returns where it stopped, and in `state` why.

    All values that the rows pin are counted first, so that the first rows choose as well as the
    last where to be filed.
    """
    if begin == 0 and state[REASON] == DONE:
        count_pins(items, counts)
    item = begin
    while item < items.shape[0]:
        part, meta = items[item + ITEM_PART], items[item + ITEM_META]
        first = item + ITEM_FIELDS
        last = first + 3 * items[item + ITEM_LENGTH]
        access = best_access(items, first, last, part, slots, counts)
        place, key, pin = part << 32 | NO_SLOT, np.int64(ANY_KEY), -1
        if access >= 0:
            place |= items[access]
            if items[access + 1] == items[access + 2]:
                key, pin = items[access + 1], access
        door = door_of(doors, place, key)
        bucket = doors[door, DOOR_TARGET]
        if bucket < 0:
            limit = min(doors.shape[0] // 2, buckets.shape[0])
            if state[USED_BUCKETS] - state[FREE_BUCKETS] >= limit:
                state[REASON] = TABLES_FULL
                return item
            if state[FREE_BUCKETS]:
                state[FREE_BUCKETS] -= 1
                bucket = free_buckets[state[FREE_BUCKETS]]
            else:
                bucket = state[USED_BUCKETS]
                state[USED_BUCKETS] += 1
            open_door(doors, door, place, key, bucket)
            buckets[bucket, :] = 0
            buckets[bucket, BUCKET_STRIDE] = ROW_INTERVALS
            buckets[bucket, BUCKET_PLACE] = place
            buckets[bucket, BUCKET_KEY] = key
            slots[place & 0xFFFFFFFF, SLOT_FILED] |= FILED_PINNED if pin >= 0 else FILED_ANY
        # The row's intervals, all but the pinned one, in a chunk of their own for a moment.
        width = items[item + ITEM_LENGTH] - (1 if pin >= 0 else 0)
        source = allocate(arena, max(1, 3 * width))
        if source < 0:
            state[REASON] = ARENA_FULL
            return item
        need = np.uint64(0)
        to = source
        for at in range(first, last, 3):
            need |= np.uint64(1) << np.uint64(slots[items[at], SLOT_BIT])
            if at != pin:
                for word in range(3):
                    arena[to + word] = items[at + word]
                to += 3
        done = True
        if buckets[bucket, BUCKET_STRIDE] and buckets[bucket, BUCKET_LENGTH] >= LARGE:
            done = convert(bucket, arena, buckets, groups, group_doors, free_groups, where, state)
        if done and buckets[bucket, BUCKET_STRIDE]:
            done = add_to_rows(
                bucket, meta, np.int64(need), source, width, arena, buckets, where, state
            )
        elif done:
            group = group_for(
                bucket,
                np.int64(need),
                source,
                width,
                arena,
                buckets,
                groups,
                group_doors,
                free_groups,
                state,
            )
            done = group >= 0 and add_to_group(
                group, meta, source, arena, buckets, groups, where, state
            )
        release(arena, source, max(1, 3 * width))
        if not done:
            return item
        buckets[bucket, BUCKET_LENGTH] += 1
        item = last
    state[REASON] = DONE
    return item


@compiled
def uncount(
    bucket: Any, home: Any, position: Any, arena: Any, buckets: Any, groups: Any, counts: Any
) -> None:
    """Takes the values that a row pins out of the counts."""
    part = buckets[bucket, BUCKET_PLACE] >> 32
    if buckets[bucket, BUCKET_KEY] != ANY_KEY:
        slot = buckets[bucket, BUCKET_PLACE] & 0xFFFFFFFF
        count_pin(counts, part, slot, buckets[bucket, BUCKET_KEY], -1)
    if home >= 0:
        row = buckets[bucket, BUCKET_START] + buckets[bucket, BUCKET_STRIDE] * position
        for nth in range(arena[row + ROW_WIDTH]):
            at = row + ROW_INTERVALS + 3 * nth
            if arena[at + 1] == arena[at + 2]:
                count_pin(counts, part, arena[at], arena[at + 1], -1)
        return
    head = head_of(bucket, groups[~home, GROUP_NTH], buckets)
    start = arena[head + HEAD_PLACE] & START_MASK
    width = arena[head + HEAD_PLACE] >> WIDTH_SHIFT
    room = arena[head + HEAD_SIZE] >> HIGH_SHIFT
    for nth in range(width):
        at = start + width + room * (1 + 2 * nth) + position
        if arena[at] == arena[at + room]:
            count_pin(counts, part, arena[start + nth], arena[at], -1)


@compiled
def delete_one(
    handle: Any,
    arena: Any,
    buckets: Any,
    groups: Any,
    group_doors: Any,
    free_groups: Any,
    where: Any,
    counts: Any,
    state: Any,
) -> None:
    """Takes a row out: the last row of its bucket or group moves into its place."""
    home, position = where[handle, WHERE_HOME], where[handle, WHERE_POSITION]
    if where[handle, WHERE_EXTRA]:
        extra = where[handle, WHERE_EXTRA]
        release(arena, extra, arena[extra] >> HIGH_SHIFT)
        where[handle, WHERE_EXTRA] = 0
    bucket = home if home >= 0 else groups[~home, GROUP_BUCKET]
    uncount(bucket, home, position, arena, buckets, groups, counts)
    buckets[bucket, BUCKET_LENGTH] -= 1
    if home < 0:
        take_from_group(
            ~home, position, arena, buckets, groups, group_doors, free_groups, where, state
        )
        if buckets[bucket, BUCKET_LENGTH] == 0:
            release(
                arena,
                buckets[bucket, BUCKET_START],
                (1 + HEAD_WORDS) * buckets[bucket, BUCKET_ROOM],
            )
            buckets[bucket, BUCKET_ROOM] = 0
            buckets[bucket, BUCKET_STRIDE] = ROW_INTERVALS
        return
    last = buckets[bucket, BUCKET_LENGTH]
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
def enter_all(
    arena: Any,
    doors: Any,
    buckets: Any,
    free_buckets: Any,
    groups: Any,
    group_doors: Any,
    slots: Any,
    state: Any,
) -> None:
    """Fills empty directories; buckets without rows are given to others."""
    state[GROUP_DOORS] = 0
    for group in range(state[USED_GROUPS]):
        bucket = groups[group, GROUP_BUCKET]
        if bucket < 0:
            continue
        place = arena[head_of(bucket, groups[group, GROUP_NTH], buckets) + HEAD_PLACE]
        key = slots_key(arena, place & START_MASK, 1, place >> WIDTH_SHIFT)
        door = door_of(group_doors, bucket, key)
        while group_doors[door, DOOR_TARGET] >= 0:
            key += 1
            door = door_of(group_doors, bucket, key)
        open_door(group_doors, door, bucket, key, group)
        state[GROUP_DOORS] += 1
    state[FREE_BUCKETS] = 0
    for bucket in range(state[USED_BUCKETS]):
        place, key = buckets[bucket, BUCKET_PLACE], buckets[bucket, BUCKET_KEY]
        if buckets[bucket, BUCKET_LENGTH]:
            open_door(doors, door_of(doors, place, key), place, key, bucket)
            slots[place & 0xFFFFFFFF, SLOT_FILED] |= FILED_ANY if key == ANY_KEY else FILED_PINNED
            continue
        buckets[bucket, :] = 0
        buckets[bucket, BUCKET_STRIDE] = ROW_INTERVALS
        free_buckets[state[FREE_BUCKETS]] = bucket
        state[FREE_BUCKETS] += 1
