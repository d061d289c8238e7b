"""Forest: the views of all producers at once, for very many subscriptions of one organisation.

It answers two questions for each change: which producers need a message, and how many rows each
producer has. A producer gets a message about a new subscription if and only if no live one contains
it there, and about a removed one if and only if no other one does (semantics §6). The producers at
which a subscription contains another are a row of bits: one for each organisation, and one more for
the merge subscription itself ("everybody").

A subscription is not kept if, at every producer, another one that outlives it contains it. The
others are kept in a trie for each scope: first the attributes that they bound, then the values that
they pin. Every subscription that contains another lies on a path that uses only attributes and pins
of the latter, so few candidates are examined. Inside a node the bounds are compared, two 16-bit
lanes at a time.

All data are arrays, so that numba can compile the code. Tests compare it with `qns.cbr`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from qns.cbr.compilation import compiled
from qns.pipeline.workload.space import RANGE

NOBODY: Final = -1
_PIN_BITS: Final = 15
_PIN_MASK: Final = (1 << _PIN_BITS) - 1
_AXIS_BITS: Final = 16
_EMPTY: Final = -1

# Counters: the used length of each array, and the most words of a full drawer.
NODES, SLOTS, FREE, ARENA, LARGEST = range(5)


class Forest(NamedTuple):
    used: Any
    """The used lengths of the arrays, by the counters above."""
    table_key: Any
    table_node: Any
    """Hash table with open addressing: (node, option) -> the child node."""
    node_parent: Any
    node_option: Any
    node_bounds: Any
    node_steps: Any
    """The numbers of bounds and of all steps on the path to a node; the latter is the row width."""
    beneath: Any
    """The number of subscriptions at a node and below it."""
    drawer: Any
    """For each node: the start of its rows, their number, and the capacity."""
    arena: Any
    """The rows: a slot, then the bounds of each attribute in the order of the steps."""
    slot_node: Any
    slot_row: Any
    slot_owner: Any
    """The number of the arrival."""
    slot_scope: Any
    slot_ends: Any
    slot_sources: Any
    slot_active: Any
    """The producers at which the subscription can still matter."""
    free: Any
    """Slots that can be reused."""
    covers: Any
    """[scope, other scope] -> the producers at which the first scope includes the second."""


def new_forest(covers: Any) -> Forest:
    scopes, _, width = covers.shape
    forest = Forest(
        used=np.zeros(5, np.int64),
        table_key=np.full(1 << 10, _EMPTY, np.int64),
        table_node=np.zeros(1 << 10, np.int32),
        node_parent=np.full(256 + scopes, -1, np.int32),
        node_option=np.zeros(256 + scopes, np.int64),
        node_bounds=np.zeros(256 + scopes, np.int32),
        node_steps=np.zeros(256 + scopes, np.int32),
        beneath=np.zeros(256 + scopes, np.int32),
        drawer=np.zeros((256 + scopes, 3), np.int64),
        arena=np.zeros(1 << 12, np.int32),
        slot_node=np.full(256, -1, np.int32),
        slot_row=np.zeros(256, np.int64),
        slot_owner=np.zeros(256, np.int64),
        slot_scope=np.zeros(256, np.int32),
        slot_ends=np.zeros(256, np.int64),
        slot_sources=np.zeros((256, width), np.uint64),
        slot_active=np.zeros((256, width), np.uint64),
        free=np.zeros(256, np.int32),
        covers=covers,
    )
    forest.used[NODES] = scopes  # the first nodes are the roots
    return forest


@compiled
def has_room(forest: Any, steps: Any) -> Any:
    """True if one more subscription with `steps` constraints fits without larger arrays."""
    used = forest.used
    return (
        used[NODES] + steps < len(forest.beneath)
        and used[SLOTS] < len(forest.slot_node)
        and used[ARENA] + 2 * used[LARGEST] + 4 * (steps + 1) < len(forest.arena)
        and 2 * (used[NODES] + steps) < len(forest.table_key)
    )


def with_room(forest: Forest, steps: int) -> Forest:
    """Returns a forest with more room: arrays that are nearly full are doubled."""
    nodes, slots, _, arena, largest = forest.used.tolist()
    changed: dict[str, Any] = {}
    if nodes + steps >= len(forest.beneath):
        for name in Forest._fields:
            if name.startswith("node_") or name in ("beneath", "drawer"):
                changed[name] = _doubled(getattr(forest, name), steps)
    if slots >= len(forest.slot_node):
        for name in Forest._fields:
            if name.startswith("slot_") or name == "free":
                changed[name] = _doubled(getattr(forest, name), 0)
    most = 2 * largest + 4 * (steps + 1)
    if arena + most >= len(forest.arena):
        changed["arena"] = _doubled(forest.arena, most)
    if 2 * (nodes + steps) >= len(forest.table_key):
        size = 4 * len(forest.table_key)
        keys, below = np.full(size, _EMPTY, np.int64), np.zeros(size, np.int32)
        _refill(forest.table_key, forest.table_node, keys, below)
        changed |= {"table_key": keys, "table_node": below}
    return forest._replace(**changed)


def _doubled(array: Any, least: int) -> Any:
    larger = np.zeros((2 * len(array) + least, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@compiled
def _refill(old_keys: Any, old_below: Any, keys: Any, below: Any) -> None:
    mask = len(keys) - 1
    for place in range(len(old_keys)):
        key = old_keys[place]
        if key != _EMPTY:
            at = _hashed(key) & mask
            while keys[at] != _EMPTY:
                at = (at + 1) & mask
            keys[at], below[at] = key, old_below[place]


@compiled
def _hashed(key: Any) -> Any:
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(0x7FFFFFFFFFFFFFFF))


@compiled
def _option(axis: Any, pin: Any) -> Any:
    """Encodes a step in a trie: this attribute is bounded, or pinned to this rank."""
    return (np.int64(axis) << _PIN_BITS) | (pin + 1)


@compiled
def is_bound(option: Any) -> Any:
    return (option & _PIN_MASK) == 0


@compiled
def _key(node: Any, option: Any) -> Any:
    return (np.int64(node) << (_AXIS_BITS + _PIN_BITS)) | option


@compiled
def _below(forest: Any, node: Any, option: Any) -> Any:
    key = _key(node, option)
    mask = len(forest.table_key) - 1
    at = _hashed(key) & mask
    while forest.table_key[at] != _EMPTY:
        if forest.table_key[at] == key:
            return forest.table_node[at]
        at = (at + 1) & mask
    return NOBODY


@compiled
def options_of(axis: Any, bound: Any, pin: Any, options: Any, bounds: Any) -> Any:
    """Writes every step that a containing subscription may take, with our bounds; their number.

    Attributes are ascending. Bounds come before pins, here and in the tries, because there are few
    bounds, which lead to few nodes.
    """
    count = 0
    for place in range(len(axis)):
        options[count], bounds[count] = _option(axis[place], RANGE), bound[place]
        count += 1
    for place in range(len(axis)):
        if pin[place] != RANGE:
            options[count], bounds[count] = _option(axis[place], pin[place]), bound[place]
            count += 1
    return count


@compiled
def _child(forest: Any, node: Any, option: Any) -> Any:
    """The child node, which is created if it does not exist."""
    child = _below(forest, node, option)
    if child != NOBODY:
        return child
    child = forest.used[NODES]
    forest.used[NODES] += 1
    forest.node_parent[child] = node
    forest.node_option[child] = option
    forest.node_bounds[child] = forest.node_bounds[node] + is_bound(option)
    forest.node_steps[child] = forest.node_steps[node] + 1
    key = _key(node, option)
    mask = len(forest.table_key) - 1
    at = _hashed(key) & mask
    while forest.table_key[at] != _EMPTY:
        at = (at + 1) & mask
    forest.table_key[at], forest.table_node[at] = key, child
    return child


@compiled
def file(forest: Any, owner: Any, asked: Any, active: Any, path: Any) -> Any:
    """Adds a subscription, for which there must be room; returns its slot."""
    scope, sources, ends, _ = asked
    axis, bound, pin = path
    used = forest.used
    node = scope
    forest.beneath[node] += 1
    for pinned in (False, True):
        for place in range(len(axis)):
            if (pin[place] != RANGE) == pinned:
                node = _child(forest, node, _option(axis[place], pin[place]))
                forest.beneath[node] += 1
    if used[FREE]:
        used[FREE] -= 1
        slot = forest.free[used[FREE]]
    else:
        slot = used[SLOTS]
        used[SLOTS] += 1
    stride = forest.node_steps[node] + 1
    drawer = forest.drawer[node]
    if drawer[1] == drawer[2]:
        room = max(2 * drawer[2], 2)
        start = used[ARENA]
        for word in range(drawer[1] * stride):
            forest.arena[start + word] = forest.arena[drawer[0] + word]
        used[ARENA] += room * stride
        used[LARGEST] = max(used[LARGEST], room * stride)
        drawer[0], drawer[2] = start, room
    row = drawer[1]
    drawer[1] += 1
    at = drawer[0] + row * stride
    forest.arena[at] = slot
    for pinned in (False, True):
        for place in range(len(axis)):
            if (pin[place] != RANGE) == pinned:
                at += 1
                forest.arena[at] = bound[place]
    forest.slot_node[slot], forest.slot_row[slot] = node, row
    forest.slot_owner[slot], forest.slot_scope[slot], forest.slot_ends[slot] = owner, scope, ends
    forest.slot_sources[slot] = sources
    forest.slot_active[slot] = active
    return slot


@compiled
def unfile(forest: Any, slot: Any) -> None:
    node, row = forest.slot_node[slot], forest.slot_row[slot]
    stride = forest.node_steps[node] + 1
    drawer = forest.drawer[node]
    drawer[1] -= 1
    last = drawer[0] + drawer[1] * stride
    here = drawer[0] + row * stride
    if last != here:  # the last row takes the free place
        for word in range(stride):
            forest.arena[here + word] = forest.arena[last + word]
        forest.slot_row[forest.arena[here]] = row
    forest.slot_node[slot] = NOBODY
    forest.free[forest.used[FREE]] = slot
    forest.used[FREE] += 1
    while node >= 0:
        forest.beneath[node] -= 1
        node = forest.node_parent[node]


@compiled
def path_of(forest: Any, slot: Any, axis: Any, bound: Any, pin: Any) -> Any:
    """Writes the constraints of a kept subscription by ascending attribute; their number."""
    node = forest.slot_node[slot]
    steps = forest.node_steps[node]
    at = forest.drawer[node][0] + forest.slot_row[slot] * (steps + 1)
    count = 0
    for step in range(steps, 0, -1):
        option = forest.node_option[node]
        node = forest.node_parent[node]
        place = count
        while place and axis[place - 1] > option >> _PIN_BITS:
            axis[place], bound[place], pin[place] = (
                axis[place - 1],
                bound[place - 1],
                pin[place - 1],
            )
            place -= 1
        axis[place] = option >> _PIN_BITS
        bound[place] = forest.arena[at + step]
        pin[place] = (option & _PIN_MASK) - 1
        count += 1
    return count
