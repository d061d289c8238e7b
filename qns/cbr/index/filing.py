"""Filing: under which of its constraints a row is best found, compiled.

How many rows pin each value is kept in a sketch of fixed size; an estimate is enough, because it
steers speed only, never answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qns.cbr.compilation import compiled
from qns.cbr.index.arena import mix
from qns.cbr.index.layout import (
    ANY_KEY,
    ITEM_FIELDS,
    ITEM_LENGTH,
    ITEM_PART,
    SLOT_WEIGHT,
)


@compiled
def count_pin(counts: Any, part: Any, slot: Any, key: Any, step: Any) -> None:
    """Counts how many rows pin each value, and any value of a slot, in a sketch of fixed size."""
    mask = np.uint64(counts.shape[0] - 1)
    place = (part << 32) | slot
    counts[np.int64(mix(place, key) & mask)] += step
    counts[np.int64(mix(place, ANY_KEY) & mask)] += step


@compiled
def count_pins(items: Any, counts: Any) -> None:
    item = 0
    while item < items.shape[0]:
        first = item + ITEM_FIELDS
        last = first + 3 * items[item + ITEM_LENGTH]
        for at in range(first, last, 3):
            if items[at + 1] == items[at + 2]:
                count_pin(counts, items[item + ITEM_PART], items[at], items[at + 1], 1)
        item = last


@compiled
def best_access(items: Any, first: Any, last: Any, part: Any, slots: Any, counts: Any) -> Any:
    """The interval to file a row under: the one that the fewest events are expected to meet.

    An interval of one value counts with the share of rows that pin this value among those that
    pin any value of the attribute.
    """
    mask = np.uint64(counts.shape[0] - 1)
    best, lowest = -1, 0.0
    for at in range(first, last, 3):
        chance = float(slots[items[at], SLOT_WEIGHT])
        if items[at + 1] == items[at + 2]:
            place = (part << 32) | items[at]
            pinned = counts[np.int64(mix(place, items[at + 1]) & mask)]
            of_all = counts[np.int64(mix(place, ANY_KEY) & mask)]
            chance *= pinned / max(1, of_all)
        if best < 0 or chance < lowest:
            best, lowest = at, chance
    return best
