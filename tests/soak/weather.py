"""Weather: decides which fault each request between peers meets, from one seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    """The faults of a request. `PARTITION` is not drawn: it lasts until it is healed."""

    DELAY = "delay"
    DROP = "drop"
    """The request is not forwarded, and the connection closes."""
    DUPLICATE = "duplicate"
    """The request arrives twice, possibly much later; one of the responses is returned."""
    REORDER = "reorder"
    """The request is held back until a later one has passed; its response is lost."""
    CUT_REQUEST = "cut request"
    """A part of the request arrives, then the connection closes."""
    CUT_RESPONSE = "cut response"
    """A part of the response is returned, then the connection closes."""
    LOSE_RESPONSE = "lose response"
    """The request is served, but its response is not returned."""
    PARTITION = "partition"


DRAWN = tuple(fault for fault in Fault if fault is not Fault.PARTITION)


@dataclass(slots=True)
class Weather:
    chance: Random
    roughness: float = 0.0
    """The share of requests that meet a fault, from 0 to 1."""
    longest_delay_s: float = 3.0
    faults: tuple[Fault, ...] = DRAWN
    blocked: set[tuple[str, str]] = field(default_factory=set)
    """Pairs (sender, receiver) between which neither requests nor responses pass."""

    def draw(self) -> Fault | None:
        if self.chance.random() >= self.roughness:
            return None
        return self.chance.choice(self.faults)

    def delay_s(self) -> float:
        """Draws a delay: usually short, sometimes long enough for the sender to time out."""
        return self.longest_delay_s * self.chance.random() ** 3

    def cut(self, size: int) -> int:
        """Draws how many bytes of a message pass: at least one, never all."""
        return self.chance.randrange(1, max(2, size))

    def heal(self) -> None:
        self.roughness = 0.0
        self.blocked.clear()
