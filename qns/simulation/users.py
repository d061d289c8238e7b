"""Users: draws what users and Quality Factories do in a simulation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from qns.simulation.actions import Action

_REGIONS = ("north", "south", "east")
CLASSES = (
    "Report/Temperature",
    "Report/Wind",
    "Report/Wind/Gust",
    "Report/Precipitation",
)
USER_KINDS = frozenset(("subscribe", "unsubscribe", "pause", "resume", "read", "renew", "publish"))
"""The kinds of the actions that are drawn here."""


def some(chance: Random, of: Iterable[str]) -> list[str]:
    return [each for each in of if chance.random() < 0.6]


@dataclass(slots=True)
class Users:
    """Draws the actions of users and Quality Factories."""

    chance: Random
    names: list[str]
    subscriptions: list[tuple[str, str]] = field(default_factory=list)
    events: int = 0
    prefix: str = "e"
    """With a number, the id of an event."""
    subscription_prefix: str = "s"

    def actions(self, during_s: float, subscriptions: int, publications: int) -> list[Action]:
        chance, found = self.chance, []
        for _ in range(subscriptions):
            found += [self._subscribe(chance.uniform(0.0, during_s * 0.8))]
        for _ in range(subscriptions * 2 // 3):
            org, sub = chance.choice(self.subscriptions)
            at = chance.uniform(0.0, during_s)
            kind = chance.choice(("unsubscribe", "pause", "resume", "read", "read", "renew"))
            found.append(Action(at, kind, org, {"sub": sub}))
            if kind == "pause" and chance.random() < 0.8:
                later = chance.uniform(at, during_s)
                found.append(Action(later, "resume", org, {"sub": sub}))
        found.extend(self.publications(0.0, during_s, publications))
        return found

    def publications(self, since: float, until: float, number: int) -> list[Action]:
        """Draws publications, mostly bursts of several events of one producer."""
        chance, found = self.chance, []
        while number > 0:
            org, at = chance.choice(self.names), chance.uniform(since, until)
            for _ in range(min(number, chance.choice((1, 1, 2, 4)))):
                found.append(Action(at, "publish", org, self._event()))
                at = min(until, at + chance.uniform(0.0, 0.3))
                number -= 1
        return found

    def burst(self) -> list[dict[str, object]]:
        """Draws three events that match many subscriptions."""
        plain = {"class": "Report", "quality": {}, "previous": {}}
        return [self._event() | plain | {"data": {"Region": "north"}} for _ in range(3)]

    def _subscribe(self, at: float) -> Action:
        chance = self.chance
        org = chance.choice(self.names)
        sub = f"{self.subscription_prefix}{len(self.subscriptions) + 1}"
        self.subscriptions.append((org, sub))
        fields: dict[str, object] = {"sub": sub, "text": self._text()}
        if chance.random() < 0.2:
            fields["group"] = chance.choice(("desk", "shift"))
        if chance.random() < 0.15:
            fields["lifetime_s"] = round(chance.uniform(2.0, 30.0), 3)
        return Action(at, "subscribe", org, fields)

    def _text(self) -> str:
        chance = self.chance
        path = chance.choice(("Report", "Report", *CLASSES, "Report/Wind"))
        only = "only " if chance.random() < 0.15 else ""
        sources = ""
        if chance.random() < 0.4:
            sources = " from " + ", ".join(
                chance.sample(self.names, min(len(self.names), chance.choice((1, 2, 2, 3))))
            )
        terms = []
        if chance.random() < 0.35:
            terms.append(f'Region = "{chance.choice(_REGIONS)}"')
        if path == "Report/Wind" and chance.random() < 0.6:
            terms.append(f"Speed > {chance.choice((5, 10, 20))}")
        if path == "Report/Temperature" and chance.random() < 0.6:
            terms.append(
                chance.choice(
                    ("Celsius.accuracy <= medium", "Celsius.accuracy <= low", "Celsius > 10")
                )
            )
        if path == "Report/Wind" and chance.random() < 0.2:
            terms.append("Speed.currency falls below 0.5")
        where = " where " + " and ".join(terms) if terms else ""
        return f"{only}{path}{sources}{where}"

    def _event(self) -> dict[str, object]:
        chance = self.chance
        self.events += 1
        path = chance.choice(("Report", *CLASSES))
        data: dict[str, object] = {"Region": chance.choice(_REGIONS)}
        quality: dict[str, object] = {}
        previous: dict[str, object] = {}
        if path.startswith("Report/Wind"):
            data["Speed"] = chance.choice((3, 8, 15, 30))
        if path == "Report/Wind":
            quality["Speed.currency"] = chance.choice((0.2, 0.4, 0.8))
            previous["Speed.currency"] = chance.choice((0.3, 0.7, 0.9))
        if path == "Report/Temperature":
            data["Celsius"] = chance.choice((-5, 5, 15, 25))
            quality["Celsius.accuracy"] = chance.choice((0.2, 0.5, 0.8))
        return {
            "id": f"{self.prefix}{self.events}",
            "class": path,
            "data": data,
            "quality": quality,
            "previous": previous,
            "available": chance.choice((0, 0, 0, 2, 10, 60, "INF")),
        }
