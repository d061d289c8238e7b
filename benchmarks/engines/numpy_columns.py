"""The baseline: numpy compares the columns of the event's class, one event at a time."""

from __future__ import annotations

from benchmarks.engines import NUMPY, Engine, LineEngine, Subscriptions
from benchmarks.numpy_scan import NumpyScan


class NumpyEngine(LineEngine):
    def __init__(self, subscriptions: Subscriptions) -> None:
        super().__init__()
        self._scan = NumpyScan(subscriptions)

    def match(self, work: bytes) -> list[int]:
        return self._scan.match(self.read(work))


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    return {NUMPY: NumpyEngine(subscriptions)}
