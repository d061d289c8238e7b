"""Scopes: which scope includes which at each producer, as bits for the compiled code.

Each organisation is a bit, and one more stands for the merge subscription itself ("everybody").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from qns.pipeline.workload.generator import WORD, words
from qns.pipeline.workload.scenario import Hosts


class ScopeBits(NamedTuple):
    """The scopes as one consumer sees them."""

    covers: Any
    """[scope, other scope] -> the producers at which the first scope includes the second."""
    relevant: Any
    """[scope] -> the producers that host a class of it, without the consumer, and everybody."""
    everybody: int
    """The number of the bit for the merge subscription."""


def scope_bits(scopes: Sequence[frozenset[str]], hosts: Hosts, own: int) -> ScopeBits:
    """The bits for the consumer with this number among the hosts."""
    everybody, width = len(hosts), words(len(hosts))
    covers = np.zeros((len(scopes), len(scopes), width), np.uint64)
    relevant = np.zeros((len(scopes), width), np.uint64)
    hosted: Iterable[frozenset[str]] = [frozenset(classes) for classes in hosts.values()]

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
    return ScopeBits(covers, relevant, everybody)
