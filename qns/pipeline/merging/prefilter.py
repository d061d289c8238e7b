"""Prefilter: drops the subscriptions that cannot change any view, in any part of a history.

A subscription changes no view and costs no message if, at every producer, an earlier one that
outlives it contains it. Containment and outliving are transitive, so such a subscription is not
needed to drop others either. Each part of an organisation's history can therefore be filtered with
its own subscriptions alone, in parallel; the few that pass go to the merge pass, which is exact.

Every subscription is counted here, for the trivial solution and for mapping alone: these counts
can be added up over parts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qns.cbr.compilation import compiled
from qns.pipeline.merging.cover_search import is_any, search
from qns.pipeline.merging.forest import (
    FREE,
    NOBODY,
    SLOTS,
    Forest,
    file,
    has_room,
    new_forest,
    options_of,
    with_room,
)
from qns.pipeline.merging.pruning import add_bits, needed_bits, pruned, workspace
from qns.pipeline.merging.rows import Rows
from qns.pipeline.merging.scopes import ScopeBits
from qns.pipeline.workload.generator import NEVER, WORD

MOST_KEPT: Final = 1 << 19
"""The most subscriptions that a filter remembers. Beyond, it drops fewer, and stays exact."""
_TRIED: Final = 1 << 15
"""A filter that has seen so many rows and lets most of them pass stops searching: it only costs."""

_PRUNED: Final = 1 << 12
"""A forest that has grown to this size, or to twice what the last pruning left, is pruned."""
_NO_SLOTS: Final = np.zeros(0, np.int32)

ARRIVED, GONE = range(2)


class Prefilter:
    """Filters the subscriptions of one organisation in the order of arrival, and counts them."""

    def __init__(self, bits: ScopeBits, limits: Any, most_axes: int) -> None:
        self.counts = np.zeros((len(limits), 2, bits.covers.shape[2] * WORD), np.int64)
        """[checkpoint, ARRIVED or GONE, producer]: the subscriptions that concern the producer and
        have arrived or ended since the checkpoint before."""
        self.totals = np.zeros((len(limits), 2), np.int64)
        """[checkpoint, ARRIVED or GONE]: all of them."""
        self._bits = bits
        self._limits = limits
        self._forest = new_forest(bits.covers)
        self._workspace = workspace(most_axes, bits.covers.shape[2])
        self._seen = self._passed = 0
        self._prune_at = _PRUNED

    def passing(self, rows: Rows) -> Rows:
        """Counts the rows, and returns those that may change a view."""
        passing = np.zeros(len(rows.scope), np.bool_)
        row, longest = 0, rows.longest
        searching = self._seen < _TRIED or 2 * self._passed < self._seen
        while row < len(passing):
            row = _filter(
                self._forest,
                rows,
                (row, longest, self._bits.everybody, searching, MOST_KEPT),
                self._bits.relevant,
                (self._limits, self.counts, self.totals),
                passing,
                self._workspace,
            )
            if row < len(passing):
                self._forest = with_room(self._forest, longest)
        chosen = np.flatnonzero(passing)
        self._seen += len(passing)
        self._passed += len(chosen)
        if _kept(self._forest) >= self._prune_at:
            counts = self.counts.shape[2]
            pruned(self._forest, self._bits.everybody, _NO_SLOTS, self._workspace, counts)
            self._prune_at = max(_PRUNED, 2 * _kept(self._forest))
        return rows if len(chosen) == len(passing) else rows.taken(chosen)


def _kept(forest: Forest) -> int:
    """The number of subscriptions in the forest."""
    return int(forest.used[SLOTS] - forest.used[FREE])


@compiled
def _interval(limits: Any, moment: Any) -> Any:
    """The first checkpoint that counts this moment; their number if none does."""
    low, high = 0, len(limits)
    while low < high:
        middle = (low + high) >> 1
        if moment < limits[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _filter(
    forest: Any, rows: Any, bounds: Any, relevant: Any, counted: Any, passing: Any, workspace: Any
) -> Any:
    """Filters the rows from the first on, until there is no room; returns the next row."""
    first, longest, everybody, searching, most = bounds
    moments, all_ends, scopes, all_sources, starts, axes, all_bounds, pins = rows
    limits, counts, totals = counted
    _, query, bits, space = workspace
    uncovered, kept, needed = bits
    options, option_bounds = query
    arrival = 0
    for row in range(first, len(scopes)):
        if not has_room(forest, longest):
            return row
        begin, stop = starts[row], starts[row + 1]
        scope, ends = scopes[row], all_ends[row]
        needed_bits(relevant[scope], all_sources[row], everybody, needed)
        while arrival < len(limits) and moments[row] >= limits[arrival]:
            arrival += 1
        if arrival < len(limits):
            totals[arrival, ARRIVED] += 1
            add_bits(counts[arrival, ARRIVED], needed)
            end_at = len(limits) if ends == NEVER else _interval(limits, ends)
            if end_at < len(limits):
                totals[end_at, GONE] += 1
                add_bits(counts[end_at, GONE], needed)
        if not searching:
            passing[row] = True
            continue
        for word in range(len(needed)):
            uncovered[word] = kept[word] = needed[word]
        axis, bound, pin = axes[begin:stop], all_bounds[begin:stop], pins[begin:stop]
        count = options_of(axis, bound, pin, options, option_bounds)
        asked = (scope, all_sources[row], ends, False)
        query_of = (options, option_bounds, count, stop - begin)
        search(forest, query_of, NOBODY, asked, everybody, space, uncovered, kept)
        if is_any(kept):
            passing[row] = True
            if forest.used[SLOTS] - forest.used[FREE] < most:
                file(forest, NOBODY, asked, kept, (axis, bound, pin))
    return len(scopes)
