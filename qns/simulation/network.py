"""A simulated network: delays, losses, duplicates, and partitions in one direction or both."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass(slots=True)
class Weather:
    """How bad the network is at the moment."""

    least_delay_s: float = 0.01
    most_delay_s: float = 0.05
    loss: float = 0.0
    """Of requests and of answers."""
    duplication: float = 0.0
    """Of requests."""
    straggling: float = 0.0
    """How often a duplicate wanders for a long time before it arrives."""


FAIR = Weather()


@dataclass(slots=True, eq=False)
class Network:
    chance: Random
    weather: Weather = field(default_factory=Weather)
    blocked: set[tuple[str, str]] = field(default_factory=set)
    """(from, to): what goes this way is lost."""
    lost: int = 0
    duplicated: int = 0

    def arrivals(self, sender: str, receiver: str, *, is_request: bool) -> list[float]:
        """After how many seconds a message arrives: not at all, once, or twice."""
        weather, chance = self.weather, self.chance
        if (sender, receiver) in self.blocked or chance.random() < weather.loss:
            self.lost += 1
            return []
        delays = [chance.uniform(weather.least_delay_s, weather.most_delay_s)]
        if is_request and chance.random() < weather.duplication:
            self.duplicated += 1
            longest = 40.0 if chance.random() < weather.straggling else 2.0
            delays.append(chance.uniform(weather.least_delay_s, longest))
        return delays

    def cut(self, sender: str, receiver: str) -> None:
        self.blocked.add((sender, receiver))

    def heal(self) -> None:
        self.blocked.clear()
        self.weather = FAIR
