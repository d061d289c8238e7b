"""Engine: simulated time, as a heap of planned actions. Simultaneous ones run in planning order."""

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

    def at(self, when: float, action: Callable[..., None], *arguments: Any) -> None:
        """Plans an action; one that is planned for the past runs now."""
        heappush(self._planned, (max(when, self.now), next(self._numbers), action, arguments))

    def run(self, until: float = inf) -> None:
        """Runs all planned actions, or those up to `until`, and then sets the clock to it."""
        while self._planned and self._planned[0][0] <= until:
            self.now, _, action, arguments = heappop(self._planned)
            action(*arguments)
        if until < inf:
            self.now = max(self.now, until)
