"""Overlay: the tree of links between brokers, independent of the network below it.

Links are added and removed. Between two reconfigurations the overlay is a tree in which no broker
has more links than its fan-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from qns.errors import ValueRefused


class Overlay:
    def __init__(self, brokers: int, fan_out: int) -> None:
        self.fan_out = fan_out
        # Dictionaries serve as ordered sets, so that a run does not depend on the hash seed.
        self._links: list[dict[int, None]] = [{} for _ in range(brokers)]
        self._half_open: dict[tuple[int, int], None] = {}

    @classmethod
    def random_tree(cls, brokers: int, fan_out: int, random: Random) -> Overlay:
        """Each broker joins at a random earlier one that has links available (thesis 4.5.2)."""
        return cls._tree(brokers, fan_out, lambda _, room: random.choice(room))

    @classmethod
    def near_tree(
        cls, brokers: int, fan_out: int, latency_ms: Callable[[int, int], float]
    ) -> Overlay:
        """Each broker joins at the nearest earlier one that has links available."""
        return cls._tree(
            brokers, fan_out, lambda broker, room: min(room, key=partial(latency_ms, broker))
        )

    @classmethod
    def _tree(cls, brokers: int, fan_out: int, choose: Callable[[int, list[int]], int]) -> Overlay:
        if fan_out < 2 and brokers > 2:
            raise ValueRefused(
                f"fan-out {fan_out} for {brokers} brokers", remedy="a tree needs at least 2"
            )
        overlay = cls(brokers, fan_out)
        for broker in range(1, brokers):
            room = [other for other in range(broker) if overlay.available(other)]
            overlay.link(broker, choose(broker, room))
        return overlay

    @property
    def brokers(self) -> int:
        return len(self._links)

    def neighbours(self, broker: int) -> list[int]:
        return list(self._links[broker])

    def degree(self, broker: int) -> int:
        return len(self._links[broker])

    def available(self, broker: int) -> int:
        """al of thesis 4.3.1: the number of further links that the broker may have."""
        return self.fan_out - len(self._links[broker])

    def link(self, one: int, other: int) -> None:
        assert one != other, "a broker cannot link to itself"
        self._links[one][other] = None
        self._links[other][one] = None

    def open(self, one: int, other: int) -> None:
        """Marks one end as ready; the link exists once both ends are."""
        if (other, one) in self._half_open:
            del self._half_open[other, one]
            self.link(one, other)
        else:
            self._half_open[one, other] = None

    def cut(self, one: int, other: int) -> None:
        del self._links[one][other]
        del self._links[other][one]

    def links(self) -> Iterator[tuple[int, int]]:
        for one, others in enumerate(self._links):
            for other in others:
                if one < other:
                    yield one, other

    def parents(self, root: int = 0) -> list[int]:
        """Each broker's next hop to the root; −1 for the root and for unconnected brokers."""
        parents = [-1] * self.brokers
        waiting = [root]
        while waiting:
            broker = waiting.pop()
            for other in self._links[broker]:
                if other != parents[broker]:
                    if parents[other] != -1 or other == root:
                        raise AssertionError("the overlay has a cycle")
                    parents[other] = broker
                    waiting.append(other)
        return parents

    def path(self, start: int, end: int) -> list[int]:
        parents = self.parents(end)
        path = [start]
        while path[-1] != end:
            assert parents[path[-1]] >= 0, "the brokers are not connected"
            path.append(parents[path[-1]])
        return path

    @property
    def is_tree(self) -> bool:
        if sum(1 for _ in self.links()) != self.brokers - 1:
            return False
        return self.parents().count(-1) == 1
