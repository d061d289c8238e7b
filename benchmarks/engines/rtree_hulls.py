"""An R-tree per class over the numeric properties; each subscription that it finds is checked.

The box of a subscription spans its ranges, the whole axis where it has none. Quality values stay
out of the tree: an event carries one to four of 24, and a tree of 27 axes finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from rtree.index import Index, Property

from benchmarks.engines import Engine, LineEngine, Subscriptions
from benchmarks.workload import NUMERIC
from qns.cbr.domains import DECIMAL
from qns.cbr.intervals import Intervals
from qns.cbr.subscription import Subscription

Box = tuple[int, tuple[float, ...], None]


class RtreeEngine(LineEngine):
    def __init__(self, subscriptions: Subscriptions) -> None:
        super().__init__()
        self._subscriptions = subscriptions
        by_class: dict[str, list[int]] = {}
        for id, subscription in subscriptions.items():
            by_class.setdefault(subscription.data_class, []).append(id)
        self._trees = {
            path: Index(self._boxes(path, ids), properties=Property(dimension=len(NUMERIC)))
            for path, ids in by_class.items()
        }
        self._axes = {path: [f"{path}.{name}" for name in NUMERIC] for path in by_class}

    def _boxes(self, path: str, ids: list[int]) -> Iterator[Box]:
        for id in ids:
            spans = [_span(self._subscriptions[id], f"{path}.{name}") for name in NUMERIC]
            yield id, (*(lo for lo, _ in spans), *(hi for _, hi in spans)), None

    def match(self, work: bytes) -> list[int]:
        event = self.read(work)
        tree = self._trees.get(event.data_class)
        if tree is None:
            return []
        # Keys of 18 digits as doubles: rounding keeps their order, so no match is lost.
        point = [float(event.values[name]) for name in self._axes[event.data_class]]
        subscriptions = self._subscriptions
        return [id for id in tree.intersection(point * 2) if subscriptions[id].matches(event)]


def _span(subscription: Subscription, attribute: str) -> tuple[float, float]:
    values = subscription.constraints.get(attribute)
    if not isinstance(values, Intervals):
        return float(DECIMAL.lo), float(DECIMAL.hi)
    return float(values.lowest), float(values.highest)


def build(subscriptions: Subscriptions) -> dict[str, Engine]:
    return {"rtree + post-filter": RtreeEngine(subscriptions)}
