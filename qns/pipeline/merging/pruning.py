"""Pruning: removes from a forest what cannot matter any more, and counts the rest per producer."""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled, inlined
from qns.pipeline.merging.cover_search import is_any, new_space, search
from qns.pipeline.merging.forest import NOBODY, SLOTS, options_of, path_of, unfile
from qns.pipeline.workload.generator import WORD


def workspace(most_axes: int, width: int) -> Any:
    """Scratch arrays for passes over subscriptions with at most so many constraints."""
    most_options = 2 * most_axes
    path = tuple(np.zeros(most_options, np.int64) for _ in range(3))
    query = tuple(np.zeros(most_options, np.int64) for _ in range(2))
    bits = tuple(np.zeros(width, np.uint64) for _ in range(3))
    return path, query, bits, new_space(most_options)


@compiled
def add_bits(counts: Any, bits: Any) -> None:
    """Adds one to the counts of all producers whose bit is set."""
    for word in range(len(bits)):
        left = bits[word]
        place = word * WORD
        while left:
            if left & np.uint64(1):
                counts[place] += 1
            left >>= np.uint64(1)
            place += 1


@inlined
def needed_bits(relevant: Any, sources: Any, everybody: Any, needed: Any) -> None:
    """Writes the producers that a subscription concerns; everybody is one of them."""
    for word in range(len(needed)):
        needed[word] = relevant[word] & sources[word]
        if everybody // WORD == word:  # the merge subscription ignores sources
            needed[word] |= relevant[word] & (np.uint64(1) << np.uint64(everybody % WORD))


@compiled
def pruned(forest: Any, everybody: Any, slots: Any, workspace: Any, width: Any) -> Any:
    """Removes the subscriptions that cannot matter any more; returns our rows at each producer."""
    path, query, bits, space = workspace
    uncovered, kept, _ = bits
    options, option_bounds = query
    axis, bound, pin = path
    table = np.zeros(width, np.int64)
    for slot in range(forest.used[SLOTS]):
        if forest.slot_node[slot] == NOBODY:
            continue
        steps = path_of(forest, slot, axis, bound, pin)
        count = options_of(axis[:steps], bound[:steps], pin[:steps], options, option_bounds)
        for word in range(len(uncovered)):
            uncovered[word] = kept[word] = forest.slot_active[slot, word]
        ends = forest.slot_ends[slot]
        asked = (forest.slot_scope[slot], forest.slot_sources[slot], ends, True)
        search(
            forest, (options, option_bounds, count, steps), slot, asked, everybody, space,
            uncovered, kept,
        )  # fmt: skip
        add_bits(table, uncovered)
        forest.slot_active[slot] = kept
        if not is_any(kept):
            if forest.slot_owner[slot] != NOBODY:
                slots[forest.slot_owner[slot]] = NOBODY
            unfile(forest, slot)
    return table
