"""Engine: simulated time, as a heap of what happens when. Ties are settled by order of planning."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any


class Engine:
    def __init__(self) -> None:
        self.now = 0.0
        self._planned: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()

    @property
    def is_idle(self) -> bool:
        return not self._planned

    def at(self, when: float, action: Callable[..., None], *arguments: Any) -> None:
        """Plans an action; one that is in the past happens now."""
        heappush(self._planned, (max(when, self.now), next(self._numbers), action, arguments))

    def run(self, until: float = inf) -> None:
        """Until nothing is planned, or until that time; the clock then stands there."""
        while self._planned and self._planned[0][0] <= until:
            self.now, _, action, arguments = heappop(self._planned)
            action(*arguments)
        if until < inf:
            self.now = max(self.now, until)
