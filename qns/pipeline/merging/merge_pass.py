"""Merge pass: processes one organisation's arrivals and unsubscriptions and counts per producer.

Besides the views it counts the baselines: the messages and rows of mapping alone, and those of
containment alone (the merge subscription at every producer, which is one more bit).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qns.cbr.compilation import compiled
from qns.pipeline.merging.cover_search import is_any, new_space, search
from qns.pipeline.merging.forest import (
    NOBODY,
    SLOTS,
    file,
    has_room,
    new_forest,
    options_of,
    path_of,
    unfile,
    with_room,
)
from qns.pipeline.workload.generator import BLOCK, NEVER, WORD, Generator, words

Counts = NDArray[np.int64]


class Checkpoint(NamedTuple):
    """The counts after some arrivals; arrays have one number for each organisation."""

    arrived: int
    changes: int
    live: int
    messages_mapping: Counts
    messages_both: Counts
    rows_mapping: Counts
    rows_both: Counts
    messages_containment: int
    rows_containment: int


def merge_pass(generator: Generator, organisation: str) -> Iterator[Checkpoint]:
    """Merges the subscriptions of an organisation; yields the counts at each checkpoint."""
    scenario = generator.scenario
    count, checkpoints = scenario.subscriptions, scenario.checkpoints
    names = scenario.organisations
    everybody = len(names)
    covers, relevant = _scope_bits(generator, names.index(organisation))
    forest = new_forest(covers)
    victims = generator.victims(organisation, count)
    ends = _ends(victims)
    slots = np.full(count if scenario.churn else 0, NOBODY, np.int32)
    needs = np.zeros((count if scenario.churn else 0, covers.shape[2]), np.uint64)
    counters = np.zeros((3, covers.shape[2] * WORD), np.int64)
    workspace = _workspace(2 * max(map(len, generator.space.axes)), covers.shape[2])
    gone = 0
    for start in range(0, count, BLOCK):
        rows = min(BLOCK, count - start)
        block = generator.block(organisation, start // BLOCK, rows)
        longest = int(np.diff(block.start).max())
        stops = [each - start for each in checkpoints if start < each <= start + rows]
        row = 0
        for stop in sorted({*stops, rows}):
            while row < stop:
                row = _pass(
                    forest,
                    (block.scope, block.sources, block.start, block.axis, block.bound, block.pin),
                    (row, stop, start, longest, everybody),
                    (victims, ends, slots, needs, relevant),
                    counters,
                    workspace,
                )
                if row < stop:
                    forest = with_room(forest, longest)
            if stop in stops:
                arrived = start + stop
                gone = int((victims[:arrived] >= 0).sum())
                table = _rows(forest, everybody, slots, workspace, counters.shape[1])
                yield Checkpoint(
                    arrived,
                    arrived + gone,
                    arrived - gone,
                    counters[0, :everybody].copy(),
                    counters[1, :everybody].copy(),
                    counters[2, :everybody].copy(),
                    table[:everybody],
                    int(counters[1, everybody]),
                    int(table[everybody]),
                )


def _scope_bits(generator: Generator, own: int) -> tuple[Any, Any]:
    """The producers at which a scope includes another, and the producers that a scope concerns."""
    scenario, scopes = generator.scenario, generator.space.scopes
    names = scenario.organisations
    everybody, width = len(names), words(len(names))
    covers = np.zeros((len(scopes), len(scopes), width), np.uint64)
    relevant = np.zeros((len(scopes), width), np.uint64)
    hosted = [frozenset(scenario.hosts[name]) for name in names]

    def mark(row: Any, bit: int) -> None:
        row[bit // WORD] |= np.uint64(1 << bit % WORD)

    for inner, scope in enumerate(scopes):
        mark(relevant[inner], everybody)
        for bit, classes in enumerate(hosted):
            if bit != own and scope & classes:
                mark(relevant[inner], bit)
        for outer, other in enumerate(scopes):
            if scope <= other:
                mark(covers[outer, inner], everybody)
            for bit, classes in enumerate(hosted):
                if scope & classes <= other:
                    mark(covers[outer, inner], bit)
    return covers, relevant


def _ends(victims: NDArray[np.int64]) -> NDArray[np.int64]:
    """The arrival after which each subscription is removed."""
    ends = np.full(len(victims), NEVER, np.int64)
    leaving = np.flatnonzero(victims >= 0)
    ends[victims[leaving]] = leaving
    return ends


def _workspace(most_options: int, width: int) -> Any:
    path = tuple(np.zeros(most_options, np.int64) for _ in range(3))
    query = tuple(np.zeros(most_options, np.int64) for _ in range(2))
    bits = tuple(np.zeros(width, np.uint64) for _ in range(3))
    return path, query, bits, new_space(most_options)


@compiled
def _count(counts: Any, bits: Any, step: Any) -> None:
    for word in range(len(bits)):
        left = bits[word]
        place = word * WORD
        while left:
            if left & np.uint64(1):
                counts[place] += step
            left >>= np.uint64(1)
            place += 1


@compiled
def _pass(
    forest: Any, block: Any, bounds: Any, lifetimes: Any, counters: Any, workspace: Any
) -> Any:
    """Processes the rows until `stop` or until there is no room; returns the next row."""
    scope, sources, starts, axis, bound, pin = block
    first, stop, offset, longest, everybody = bounds
    victims, ends, slots, needs, relevant = lifetimes
    _, query, bits, space = workspace
    uncovered, kept, needed = bits
    options, option_bounds = query
    for row in range(first, stop):
        if not has_room(forest, longest):
            return row
        number = offset + row
        begin, end = starts[row], starts[row + 1]
        for word in range(len(needed)):
            needed[word] = relevant[scope[row], word] & sources[row, word]
            if everybody // WORD == word:  # the merge subscription ignores sources
                needed[word] |= relevant[scope[row], word] & (
                    np.uint64(1) << np.uint64(everybody % WORD)
                )
            uncovered[word] = kept[word] = needed[word]
        count = options_of(
            axis[begin:end], bound[begin:end], pin[begin:end], options, option_bounds
        )
        asked = (scope[row], sources[row], ends[number], False)
        query_of = (options, option_bounds, count, end - begin)
        search(forest, query_of, NOBODY, asked, everybody, space, uncovered, kept)
        _count(counters[0], needed, 1)
        _count(counters[1], uncovered, 1)
        _count(counters[2], needed, 1)
        slot = NOBODY
        if is_any(kept):
            constraints = (axis[begin:end], bound[begin:end], pin[begin:end])
            slot = file(forest, number, asked, kept, constraints)
        if len(slots):
            slots[number] = slot
            needs[number] = needed
        victim = victims[number]
        if victim >= 0:
            _leave(forest, victim, slots, needs, everybody, counters, workspace)
    return stop


@compiled
def _leave(
    forest: Any, victim: Any, slots: Any, needs: Any, everybody: Any, counters: Any, workspace: Any
) -> None:
    path, query, bits, space = workspace
    uncovered, kept, _ = bits
    options, option_bounds = query
    axis, bound, pin = path
    _count(counters[0], needs[victim], 1)
    _count(counters[2], needs[victim], -1)
    slot = slots[victim]
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
    _count(counters[1], uncovered, 1)
    unfile(forest, slot)
    slots[victim] = NOBODY


@compiled
def _rows(forest: Any, everybody: Any, slots: Any, workspace: Any, width: Any) -> Any:
    """Counts our rows at each producer, and removes subscriptions that cannot matter any more."""
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
        _count(table, uncovered, 1)
        forest.slot_active[slot] = kept
        if not is_any(kept):
            if len(slots):
                slots[forest.slot_owner[slot]] = NOBODY
            unfile(forest, slot)
    return table
