"""Weather: what happens to the requests on their way, drawn from one seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """What may befall one request. `PARTITION` is not drawn: it lasts until it is mended."""

    DELAY = "delay"
    DROP = "drop"
    """It is never forwarded; the connection closes."""
    DUPLICATE = "duplicate"
    """It arrives twice, the second time much later perhaps; one of the answers comes back."""
    REORDER = "reorder"
    """It is held back until a later one has passed, whether anybody waits for it or not."""
    CUT_REQUEST = "cut request"
    """Its first half arrives, then the connection breaks; likewise `CUT_RESPONSE`."""
    CUT_RESPONSE = "cut response"
    LOSE_RESPONSE = "lose response"
    """It arrives and is served, but its answer does not come back."""
    PARTITION = "partition"


DRAWN = tuple(fault for fault in Fault if fault is not Fault.PARTITION)


@dataclass(slots=True)
class Weather:
    chance: Random
    roughness: float = 0.0
    """How many of the requests meet with a fault, from 0 to 1."""
    longest_delay_s: float = 3.0
    faults: tuple[Fault, ...] = DRAWN
    blocked: set[tuple[str, str]] = field(default_factory=set)
    """(from, to): nothing passes this way, neither requests nor answers to the other's."""

    def draw(self) -> Fault | None:
        if self.chance.random() >= self.roughness:
            return None
        return self.chance.choice(self.faults)

    def delay_s(self) -> float:
        """Mostly short, now and then long enough for the sender to give up."""
        return self.longest_delay_s * self.chance.random() ** 3

    def cut(self, size: int) -> int:
        """How much of a message gets through: at least a byte, never all of it."""
        return self.chance.randrange(1, max(2, size))

    def heal(self) -> None:
        self.roughness = 0.0
        self.blocked.clear()
