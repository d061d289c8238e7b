"""A simulated network with delays, losses, duplicates, and partitions in one direction or both."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass(slots=True)
class Weather:
    """The probabilities of faults and the delays of the network at one time."""

    least_delay_s: float = 0.01
    most_delay_s: float = 0.05
    loss: float = 0.0
    """The probability that a request or an answer is lost."""
    duplication: float = 0.0
    """The probability that a request arrives twice."""
    straggling: float = 0.0
    """The probability that a duplicate has a long delay."""


FAIR = Weather()

LONGEST_DELAY_S = 40.0
"""The longest delay of a duplicate."""


@dataclass(slots=True, eq=False)
class Network:
    """Decides whether and when messages arrive."""

    chance: Random
    weather: Weather = field(default_factory=Weather)
    blocked: set[tuple[str, str]] = field(default_factory=set)
    """Sender, receiver: all messages in this direction are lost."""
    severed: set[tuple[str, str]] = field(default_factory=set)
    """The blocked directions that stay when other faults are healed."""
    lost: int = 0
    duplicated: int = 0

    def arrivals(self, sender: str, receiver: str, *, is_request: bool) -> list[float]:
        """Returns the delays in seconds after which a message arrives: none, one or two."""
        weather, chance = self.weather, self.chance
        if (sender, receiver) in self.blocked or chance.random() < weather.loss:
            self.lost += 1
            return []
        delays = [chance.uniform(weather.least_delay_s, weather.most_delay_s)]
        if is_request and chance.random() < weather.duplication:
            self.duplicated += 1
            longest = LONGEST_DELAY_S if chance.random() < weather.straggling else 2.0
            delays.append(chance.uniform(weather.least_delay_s, longest))
        return delays

    def cut(self, sender: str, receiver: str) -> None:
        self.blocked.add((sender, receiver))

    def mend(self, sender: str, receiver: str) -> None:
        if (sender, receiver) not in self.severed:
            self.blocked.discard((sender, receiver))

    def sever(self, sender: str, receiver: str) -> None:
        """Blocks a direction until `restore`."""
        self.severed.add((sender, receiver))
        self.cut(sender, receiver)

    def heal(self) -> None:
        """Ends all faults but the lasting ones."""
        self.blocked = set(self.severed)
        self.weather = FAIR

    def restore(self) -> None:
        """Ends the lasting faults too."""
        self.severed.clear()
        self.heal()
