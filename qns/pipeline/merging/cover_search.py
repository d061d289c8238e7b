"""Cover search: finds the producers at which a kept subscription contains another one.

Each producer is a bit. Candidates clear bits one after the other, general subscriptions first, and
the search ends as soon as no bit is left.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qns.cbr.compilation import compiled, inlined
from qns.pipeline.merging.forest import NOBODY, _below, is_bound

_GUARDS: Final = 0x80008000
_WORD: Final = 64


def new_space(most_options: int) -> Any:
    """Scratch arrays of a search: nodes, next options, bounds passed, our bounds."""
    return tuple(np.zeros(most_options + 1, np.int64) for _ in range(4))


@inlined
def is_any(bits: Any) -> Any:
    found = np.uint64(0)
    for word in range(len(bits)):
        found |= bits[word]
    return found != 0


@compiled
def _is_within(sources: Any, other: Any) -> Any:
    missing = np.uint64(0)
    for word in range(len(sources)):
        missing |= sources[word] & ~other[word]
    return missing == 0


@compiled
def _settle(
    forest: Any, slot: Any, alike: Any, asked: Any, everybody: Any, uncovered: Any, kept: Any
) -> None:
    """Clears the bits of the producers at which this subscription contains the asked one.

    They are cleared in `uncovered`, and in `kept` only if this one outlives the asked one. When
    rows are counted, only subscriptions that can still matter at a producer count there, and of two
    that contain each other only the longer-lived one.
    """
    scope, sources, ends, counting = asked
    other_scope, other_sources = forest.slot_scope[slot], forest.slot_sources[slot]
    outlives = forest.slot_ends[slot] >= ends
    within = _is_within(sources, other_sources)
    spared = counting and alike and not outlives
    back = spared and _is_within(other_sources, sources)
    for word in range(len(uncovered)):
        bits = forest.covers[other_scope, scope, word]
        both_ways = forest.covers[scope, other_scope, word]
        general = np.uint64(0)
        if everybody // _WORD == word:
            general = np.uint64(1) << np.uint64(everybody % _WORD)
        cleared = bits & other_sources[word] & ~general
        if spared:
            cleared &= ~(both_ways & sources[word])
        if within and not (back and both_ways & general):
            cleared |= bits & general
        if counting:
            cleared &= forest.slot_active[slot, word]
        uncovered[word] &= ~cleared
        if outlives:
            kept[word] &= ~cleared


@compiled
def _look_through(
    forest: Any, node: Any, ours: Any, query: Any, itself: Any, asked: Any, everybody: Any,
    uncovered: Any, kept: Any,
) -> None:  # fmt: skip
    """Examines all subscriptions at one node."""
    _, __, count, steps = query
    start, rows = forest.drawer[node, 0], forest.drawer[node, 1]
    width, stride = forest.node_bounds[node], forest.node_steps[node] + 1
    for row in range(rows):
        at = start + row * stride
        contains, same = True, True
        for place in range(width):
            theirs = np.int64(forest.arena[at + 1 + place])
            if ((ours[place] | _GUARDS) - theirs) & _GUARDS != _GUARDS:
                contains = False
                break
            same = same and ours[place] == theirs
        slot = forest.arena[at]
        if contains and slot != itself:
            # With equal numbers of steps and of pins, attributes and pins are the same.
            alike = same and stride - 1 == steps and stride - 1 - width == count - steps
            _settle(forest, slot, alike, asked, everybody, uncovered, kept)
            if not is_any(kept):
                return


@compiled
def search(
    forest: Any, query: Any, itself: Any, asked: Any, everybody: Any, space: Any,
    uncovered: Any, kept: Any,
) -> None:  # fmt: skip
    """Clears the bits of all producers at which another kept subscription contains the asked one.

    `query` has the options with our bounds, their number and the number of attributes; `asked` has
    the scope, the sources, the end, and whether equal subscriptions are counted once.
    """
    options, bounds, count, _ = query
    nodes, following, passed, ours = space
    scope = asked[0]
    for root in range(len(forest.covers)):
        if forest.beneath[root] == 0:
            continue
        useful = False
        for word in range(len(kept)):
            if forest.covers[root, scope, word] & kept[word]:
                useful = True
        if not useful:
            continue
        depth = 0
        nodes[0], following[0], passed[0] = root, 0, 0
        _look_through(forest, root, ours, query, itself, asked, everybody, uncovered, kept)
        while depth >= 0:
            if not is_any(kept):
                return
            option = following[depth]
            if option == count:
                depth -= 1
                continue
            following[depth] += 1
            child = _below(forest, nodes[depth], options[option])
            if child == NOBODY or forest.beneath[child] == 0:
                continue
            behind = passed[depth]
            if is_bound(options[option]):
                ours[behind] = bounds[option]
                behind += 1
            depth += 1
            nodes[depth], following[depth], passed[depth] = child, option + 1, behind
            _look_through(forest, child, ours, query, itself, asked, everybody, uncovered, kept)
