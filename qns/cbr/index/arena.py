"""The allocator of the arena, and the slots of directories, compiled.

Chunks are 2^n words. Free chunks of one size are linked by their first word. Directories use open
addressing and are at most half full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.layout import (
    ARENA_END,
    ARENA_FREE,
    EMPTY_SLOT,
    NO_CHUNK,
    SLOT_KEY,
    SLOT_SPACE,
    SLOT_TARGET,
)


@compiled
def size_class(words: Any) -> Any:
    """Returns the n of the smallest chunk of 2^n words that has room for `words`."""
    shift = 2
    while (1 << shift) < words:
        shift += 1
    return shift


@compiled
def allocate(arena: Any, words: Any) -> Any:
    """Returns the start of a chunk of at least `words`, or NO_CHUNK if the arena has to grow."""
    shift = size_class(words)
    start = arena[ARENA_FREE + shift]
    if start:
        arena[ARENA_FREE + shift] = arena[start]
        return start
    start = arena[ARENA_END]
    if start + (1 << shift) > arena.shape[0]:
        return np.int64(NO_CHUNK)
    arena[ARENA_END] = start + (1 << shift)
    return start


@compiled
def release(arena: Any, start: Any, words: Any) -> None:
    """Frees the chunk that was allocated for `words`."""
    shift = size_class(words)
    arena[start] = arena[ARENA_FREE + shift]
    arena[ARENA_FREE + shift] = start


@compiled
def mix(space: Any, key: Any) -> Any:
    """Returns a hash of both. Each of its bits depends on all bits of both."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(space) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


@compiled
def find_slot(directory: Any, space: Any, key: Any) -> Any:
    """Returns the slot of (space, key), or the empty slot where it belongs."""
    mask = directory.shape[0] - 1
    slot = np.int64(mix(space, key) & np.uint64(mask))
    while directory[slot, SLOT_TARGET] != EMPTY_SLOT and not (
        directory[slot, SLOT_SPACE] == space and directory[slot, SLOT_KEY] == key
    ):
        slot = (slot + 1) & mask
    return slot


@compiled
def fill_slot(directory: Any, slot: Any, space: Any, key: Any, target: Any) -> None:
    directory[slot, SLOT_SPACE] = space
    directory[slot, SLOT_KEY] = key
    directory[slot, SLOT_TARGET] = target
