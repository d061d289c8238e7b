"""Merge pass: processes one organisation's arrivals and unsubscriptions and counts per producer.

It gets the subscriptions that passed the prefilter, in the order of arrival, and computes the
messages and rows of containment alone (the merge subscription at every producer, which is one more
bit) and of both parts of QNS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qns.cbr.compilation import compiled
from qns.pipeline.merging.cover_search import is_any, search
from qns.pipeline.merging.forest import (
    NOBODY,
    file,
    has_room,
    new_forest,
    options_of,
    path_of,
    unfile,
    with_room,
)
from qns.pipeline.merging.pruning import add_bits, needed_bits, pruned, workspace
from qns.pipeline.merging.rows import Rows
from qns.pipeline.merging.scopes import ScopeBits
from qns.pipeline.workload.generator import NEVER, WORD

Counts = NDArray[np.int64]


class Merged(NamedTuple):
    """The counts at a checkpoint: one number for each organisation, then that of everybody."""

    messages: Counts
    rows: Counts


class _Leaving(NamedTuple):
    """The subscriptions that will end: a heap of moments, and where each one is in the forest."""

    used: Any
    """[the number of entries in the heap, the number of subscriptions that will end]"""
    moments: Any
    owners: Any
    """The heap's entries: the moment of the end, and the number of the subscription."""
    slots: Any
    """The slot of a subscription; NOBODY if it is not kept any more."""


class MergePass:
    """Takes the subscriptions of one organisation in the order of arrival."""

    def __init__(self, bits: ScopeBits, limits: Any, most_axes: int) -> None:
        width = bits.covers.shape[2]
        self._bits = bits
        self._limits = limits.tolist()
        self._forest = new_forest(bits.covers)
        self._leaving = _Leaving(
            np.zeros(2, np.int64),
            np.zeros(256, np.int64),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
        )
        self._messages = np.zeros(width * WORD, np.int64)
        self._workspace = workspace(most_axes, width)

    def take(self, rows: Rows) -> Iterator[Merged]:
        """Processes the rows; yields the counts of each checkpoint that they go past."""
        row, many = 0, len(rows.scope)
        while row < many:
            if self._limits and rows.moment[row] >= self._limits[0]:
                yield self._marked()
                continue
            stop = many
            if self._limits:
                stop = int(np.searchsorted(rows.moment, self._limits[0]))
            self._pass(rows, row, stop, rows.moment[stop - 1])
            row = stop

    def finish(self) -> Iterator[Merged]:
        """Yields the counts of the checkpoints that are left."""
        while self._limits:
            yield self._marked()

    def _marked(self) -> Merged:
        limit = self._limits.pop(0)
        self._pass(_NO_ROWS, 0, 0, limit)
        everybody = self._bits.everybody
        slots = self._leaving.slots
        table = pruned(self._forest, everybody, slots, self._workspace, len(self._messages))
        return Merged(self._messages[: everybody + 1].copy(), table[: everybody + 1])

    def _pass(self, rows: Rows, row: int, stop: int, until: int) -> None:
        """Processes rows, and the unsubscriptions before a moment."""
        longest, done = rows.longest, False
        rows = _like(rows, len(self._bits.relevant[0]))
        while not done:
            row, done = _pass(
                self._forest,
                rows,
                (row, stop, until, longest, self._bits.everybody),
                self._bits.relevant,
                self._leaving,
                self._messages,
                self._workspace,
            )
            if not done:
                self._forest = with_room(self._forest, longest)
                self._leaving = _with_room(self._leaving)


_NO_ROWS = Rows(
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int32),
    np.zeros((0, 1), np.uint64),
    np.zeros(1, np.int32),
    np.zeros(0, np.int32),
    np.zeros(0, np.int64),
    np.zeros(0, np.int32),
)


def _like(rows: Rows, width: int) -> Rows:
    """The rows with this width of sources, if there are none."""
    if len(rows.scope):
        return rows
    return rows._replace(sources=np.zeros((0, width), np.uint64))


def _with_room(leaving: _Leaving) -> _Leaving:
    def longer(array: Any) -> Any:
        return np.concatenate([array, np.zeros_like(array)])

    entries, owners = leaving.used.tolist()
    if entries + 1 >= len(leaving.moments):
        leaving = leaving._replace(moments=longer(leaving.moments), owners=longer(leaving.owners))
    if owners + 1 >= len(leaving.slots):
        leaving = leaving._replace(slots=longer(leaving.slots))
    return leaving


@compiled
def _push(leaving: Any, moment: Any, slot: Any) -> None:
    """Enters a subscription that will end."""
    place, owner = leaving.used[0], leaving.used[1]
    leaving.used[0] += 1
    leaving.used[1] += 1
    leaving.slots[owner] = slot
    while place and leaving.moments[(place - 1) >> 1] > moment:
        above = (place - 1) >> 1
        leaving.moments[place] = leaving.moments[above]
        leaving.owners[place] = leaving.owners[above]
        place = above
    leaving.moments[place], leaving.owners[place] = moment, owner


@compiled
def _pop(leaving: Any) -> Any:
    """Removes the subscription that ends first, and returns its slot."""
    owner = leaving.owners[0]
    leaving.used[0] -= 1
    size = leaving.used[0]
    moment, moved = leaving.moments[size], leaving.owners[size]
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and leaving.moments[below + 1] < leaving.moments[below]:
            below += 1
        if leaving.moments[below] >= moment:
            break
        leaving.moments[place] = leaving.moments[below]
        leaving.owners[place] = leaving.owners[below]
        place = below
    leaving.moments[place], leaving.owners[place] = moment, moved
    slot = leaving.slots[owner]
    leaving.slots[owner] = NOBODY
    return slot


@compiled
def _pass(
    forest: Any, rows: Any, bounds: Any, relevant: Any, leaving: Any, messages: Any, workspace: Any
) -> Any:
    """Processes rows until there is no room; returns the next row, and True if all are done."""
    first, stop, until, longest, everybody = bounds
    moments, all_ends, scopes, all_sources, starts, axes, all_bounds, pins = rows
    _, query, bits, space = workspace
    uncovered, kept, needed = bits
    options, option_bounds = query
    for row in range(first, stop):
        if (
            not has_room(forest, longest)
            or leaving.used[0] + 1 >= len(leaving.moments)
            or leaving.used[1] + 1 >= len(leaving.slots)
        ):
            return row, False
        while leaving.used[0] and leaving.moments[0] < moments[row]:
            _leave(forest, _pop(leaving), everybody, messages, workspace)
        begin, end = starts[row], starts[row + 1]
        scope, ends = scopes[row], all_ends[row]
        needed_bits(relevant[scope], all_sources[row], everybody, needed)
        for word in range(len(needed)):
            uncovered[word] = kept[word] = needed[word]
        axis, bound, pin = axes[begin:end], all_bounds[begin:end], pins[begin:end]
        count = options_of(axis, bound, pin, options, option_bounds)
        asked = (scope, all_sources[row], ends, False)
        query_of = (options, option_bounds, count, end - begin)
        search(forest, query_of, NOBODY, asked, everybody, space, uncovered, kept)
        add_bits(messages, uncovered)
        if is_any(kept):
            owner = NOBODY if ends == NEVER else leaving.used[1]
            slot = file(forest, owner, asked, kept, (axis, bound, pin))
            if ends != NEVER:
                _push(leaving, ends, slot)
    while leaving.used[0] and leaving.moments[0] < until:
        _leave(forest, _pop(leaving), everybody, messages, workspace)
    return stop, True


@compiled
def _leave(forest: Any, slot: Any, everybody: Any, messages: Any, workspace: Any) -> None:
    path, query, bits, space = workspace
    uncovered, kept, _ = bits
    options, option_bounds = query
    axis, bound, pin = path
    if slot == NOBODY:  # at every producer another live subscription contains it
        return
    steps = path_of(forest, slot, axis, bound, pin)
    count = options_of(axis[:steps], bound[:steps], pin[:steps], options, option_bounds)
    for word in range(len(uncovered)):
        uncovered[word] = kept[word] = forest.slot_active[slot, word]
    asked = (forest.slot_scope[slot], forest.slot_sources[slot], np.int64(-1), False)
    search(
        forest, (options, option_bounds, count, steps), slot, asked, everybody, space,
        uncovered, kept,
    )  # fmt: skip
    add_bits(messages, uncovered)
    unfile(forest, slot)
