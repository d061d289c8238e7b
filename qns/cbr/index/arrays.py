"""Arrays: the arrays of the compiled index, as the compiled loops pass them to one another.

The functions that Python calls (`insert_batch`, `delete_one`, `refill_directories`) take the arrays
one by one and build this tuple themselves, because numba reads a tuple that comes from Python
slowly: with tuples there, a deletion among 10,000 subscriptions takes 1.5 times as long. The loops
of `matching.py` take no tuple at all, for the reason given there.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class RowArrays(NamedTuple):
    """The arrays in which rows are stored; `layout.py` says what is in each."""

    arena: Any
    buckets: Any
    groups: Any
    group_directory: Any
    free_groups: Any
    where: Any
    state: Any


class Row(NamedTuple):
    """A row to be stored. Its intervals are in the arena from `intervals` on."""

    meta: Any
    need: Any
    intervals: Any
    width: Any
