"""The arena's allocator and the directories, compiled.

Chunks are 2^n words; freed chunks of a size are linked by their first word. Directories use open
addressing and are at most half full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.layout import (
    ARENA_END,
    ARENA_FREE,
    DOOR_KEY,
    DOOR_PLACE,
    DOOR_TARGET,
    NO_DOOR,
)


@compiled
def size_class(words: Any) -> Any:
    shift = 2
    while (1 << shift) < words:
        shift += 1
    return shift


@compiled
def allocate(arena: Any, words: Any) -> Any:
    """The start of a chunk of at least `words`, or -1 when the arena has to grow first."""
    shift = size_class(words)
    start = arena[ARENA_FREE + shift]
    if start:
        arena[ARENA_FREE + shift] = arena[start]
        return start
    start = arena[ARENA_END]
    if start + (1 << shift) > arena.shape[0]:
        return np.int64(-1)
    arena[ARENA_END] = start + (1 << shift)
    return start


@compiled
def release(arena: Any, start: Any, words: Any) -> None:
    shift = size_class(words)
    arena[start] = arena[ARENA_FREE + shift]
    arena[ARENA_FREE + shift] = start


@compiled
def mix(place: Any, key: Any) -> Any:
    """A hash of both, all bits of it good."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(place) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


@compiled
def door_of(doors: Any, place: Any, key: Any) -> Any:
    """Where (place, key) is in the directory, or where it would go."""
    mask = doors.shape[0] - 1
    at = np.int64(mix(place, key) & np.uint64(mask))
    while doors[at, DOOR_TARGET] != NO_DOOR and not (
        doors[at, DOOR_PLACE] == place and doors[at, DOOR_KEY] == key
    ):
        at = (at + 1) & mask
    return at


@compiled
def open_door(doors: Any, door: Any, place: Any, key: Any, target: Any) -> None:
    doors[door, DOOR_PLACE] = place
    doors[door, DOOR_KEY] = key
    doors[door, DOOR_TARGET] = target
