"""Rows: encoded subscriptions of one organisation as columns, for the compiled code.

A moment orders the history of an organisation: the subscription that arrives as number n has the
moment n × STEP, and the unsubscriptions before the next arrival have the moments after it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from qns.pipeline.workload.generator import NEVER, Block

STEP: Final = 1 << 20
"""The moments from one arrival to the next."""


class Rows(NamedTuple):
    """The constraints of row i are start[i] to start[i + 1]; rows are in the order of arrival."""

    moment: Any
    ends: Any
    """The moment of the unsubscription, or NEVER."""
    scope: Any
    sources: Any
    """[row, word] -> a bit for each source; all bits if the subscription names none."""
    start: Any
    axis: Any
    bound: Any
    """How narrow the interval is, in two lanes of 16 bits (`Block.bound`)."""
    pin: Any
    """The rank of an equality; RANGE for an interval."""

    def taken(self, chosen: Any) -> Rows:
        """The rows with these places."""
        sizes = np.diff(self.start)[chosen]
        start = np.zeros(len(chosen) + 1, np.int32)
        np.cumsum(sizes, out=start[1:])
        # The place of each constraint: the first one of its row, plus its number in the row.
        places = np.repeat(self.start[:-1][chosen] - start[:-1], sizes) + np.arange(start[-1])
        return Rows(
            self.moment[chosen],
            self.ends[chosen],
            self.scope[chosen],
            self.sources[chosen],
            start,
            self.axis[places],
            self.bound[places],
            self.pin[places],
        )

    @property
    def longest(self) -> int:
        """The most constraints of a row."""
        return int(np.diff(self.start).max()) if len(self.scope) else 0


def rows_of_block(block: Block, first: int, ends: Any) -> Rows:
    """The rows of a block whose first row is the arrival with that number; `ends` are moments."""
    moment = (first + np.arange(len(block.scope), dtype=np.int64)) * STEP
    return Rows(
        moment, ends, block.scope, block.sources, block.start, block.axis, block.bound, block.pin
    )


def moments_of_ends(victims: Any) -> Any:
    """The moment of the unsubscription of each subscription, from `Generator.victims`."""
    ends = np.full(len(victims), NEVER, np.int64)
    leaving = np.flatnonzero(victims >= 0)
    ends[victims[leaving]] = (leaving + 1) * STEP + 1
    return ends


def limits_of(checkpoints: tuple[int, ...]) -> Any:
    """For each checkpoint the first moment after it: the arrival of the next subscription."""
    return (np.array(checkpoints, np.int64) + 1) * STEP
