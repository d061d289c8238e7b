"""Filing: chooses the constraint under which a row is found, compiled.

A sketch of fixed size counts the rows that pin each value. An estimate is enough, because it
affects only speed, never answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.arena import mix
from qns.cbr.index.layout import (
    ANY_KEY,
    FIELD_WEIGHT,
    INTERVAL_FIELD,
    INTERVAL_HI,
    INTERVAL_LO,
    INTERVAL_WORDS,
    ITEM_INTERVALS,
    ITEM_LENGTH,
    ITEM_PART,
    PART_SHIFT,
)


@compiled
def count_pin(counts: Any, part: Any, field: Any, key: Any, step: Any) -> None:
    """Adds `step` to the counts of rows that pin this value, and any value, of a field."""
    mask = np.uint64(counts.shape[0] - 1)
    space = (part << PART_SHIFT) | field
    counts[np.int64(mix(space, key) & mask)] += step
    counts[np.int64(mix(space, ANY_KEY) & mask)] += step


@compiled
def count_pins(items: Any, counts: Any) -> None:
    """Counts every value that the items pin."""
    item = 0
    while item < items.shape[0]:
        first = item + ITEM_INTERVALS
        last = first + INTERVAL_WORDS * items[item + ITEM_LENGTH]
        for at in range(first, last, INTERVAL_WORDS):
            lo = items[at + INTERVAL_LO]
            if lo == items[at + INTERVAL_HI]:
                count_pin(counts, items[item + ITEM_PART], items[at + INTERVAL_FIELD], lo, 1)
        item = last


@compiled
def best_access(items: Any, first: Any, last: Any, part: Any, fields: Any, counts: Any) -> Any:
    """Returns the interval to file a row under: the one that the fewest events should meet.

    For an interval of one value the probability is multiplied by the share of rows that pin this
    value among those that pin any value of the field. Returns -1 if there is no interval.
    """
    mask = np.uint64(counts.shape[0] - 1)
    best, lowest = -1, 0.0
    for at in range(first, last, INTERVAL_WORDS):
        field, lo = items[at + INTERVAL_FIELD], items[at + INTERVAL_LO]
        chance = float(fields[field, FIELD_WEIGHT])
        if lo == items[at + INTERVAL_HI]:
            space = (part << PART_SHIFT) | field
            pinned = counts[np.int64(mix(space, lo) & mask)]
            of_all = counts[np.int64(mix(space, ANY_KEY) & mask)]
            chance *= pinned / max(1, of_all)
        if best < 0 or chance < lowest:
            best, lowest = at, chance
    return best
