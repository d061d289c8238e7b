"""What users, factories and operators do in a simulated federation, and what breaks meanwhile.

A plan is data: actions with their times, drawn from one seed. So it can be printed, cut down to
the few actions that matter, and played again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from random import Random
from typing import Final

from qns.d2q.shipped import WEATHER
from qns.federation.document import Federation, Organisation

FAULTS: Final = (
    "delay",
    "loss",
    "duplicate",
    "partition",
    "crash",
    "restore",
    "disk-full",
    "federation",
    "retention",
    "gone",
)

CHAOS_S: Final = 40.0
"""How long things break, before everything is healed."""

_REGIONS = ("north", "south", "east")
_CLASSES = (
    "Report/Temperature",
    "Report/Wind",
    "Report/Wind/Gust",
    "Report/Precipitation",
)


@dataclass(frozen=True, slots=True)
class Action:
    at: float
    kind: str
    org: str = ""
    fields: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        told = " ".join(f"{key}={value}" for key, value in self.fields.items())
        return f"{self.at:7.3f} s  {self.org:6} {self.kind:12} {told}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    federation: Federation
    actions: tuple[Action, ...]
    """While things break."""
    calm_actions: tuple[Action, ...]
    """Once everything is healed; times count from then."""
    clocks: dict[str, float]
    newcomer: Organisation | None
    """It joins while the others run."""
    most_owed: float
    sqlite: bool


def make_plan(seed: int, peers: int, faults: Iterable[str]) -> Plan:
    faults = frozenset(faults)
    chance = Random(seed)  # noqa: S311
    federation = _federation(chance, peers)
    names = list(federation.organisations)
    newcomer = None
    if "federation" in faults and peers > 2 and chance.random() < 0.15:
        newcomer = federation[names[-1]]
        members = {name: federation[name] for name in names[:-1]}
        federation = replace(federation, organisations=members)
    users = _Users(chance, names)
    breaks = _Breaks(chance, names, faults, users)
    actions = [*users.actions(CHAOS_S, 26, 40), *breaks.actions()]
    if newcomer is not None:
        actions.append(Action(chance.uniform(0.5, CHAOS_S * 0.7), "rejoin", newcomer.name))
    calm = [*users.actions(6.0, 8, 6), *users.publications(1.0, 5.0, 8)]
    return Plan(
        seed,
        federation,
        tuple(sorted(actions, key=lambda each: each.at)),
        tuple(sorted(calm, key=lambda each: each.at)),
        {name: chance.uniform(-30.0, 30.0) for name in names},
        newcomer,
        6 if "retention" in breaks.faults and chance.random() < 0.1 else inf,
        chance.random() < 0.5,
    )


def _federation(chance: Random, peers: int) -> Federation:
    names = [f"Met{number:02}" for number in range(1, peers + 1)]
    hosts = {name: ["Report", *_some(chance, _CLASSES)] for name in names}
    organisations = {
        name: Organisation(name, frozenset(hosts[name]), capability=chance.choice((1, 2, 2, 3)))
        for name in names
    }
    return Federation("weather", WEATHER, organisations)


def _some(chance: Random, of: Iterable[str]) -> list[str]:
    return [each for each in of if chance.random() < 0.6]


@dataclass(slots=True)
class _Users:
    chance: Random
    names: list[str]
    subscriptions: list[tuple[str, str]] = field(default_factory=list)
    events: int = 0

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
        """Mostly in bursts: several events of one producer on each other's heels."""
        chance, found = self.chance, []
        while number > 0:
            org, at = chance.choice(self.names), chance.uniform(since, until)
            for _ in range(min(number, chance.choice((1, 1, 2, 4)))):
                found.append(Action(at, "publish", org, self._event()))
                at = min(until, at + chance.uniform(0.0, 0.3))
                number -= 1
        return found

    def burst(self) -> list[dict[str, object]]:
        """Three events that many want."""
        plain = {"class": "Report", "quality": {}, "previous": {}}
        return [self._event() | plain | {"data": {"Region": "north"}} for _ in range(3)]

    def _subscribe(self, at: float) -> Action:
        chance = self.chance
        org = chance.choice(self.names)
        sub = f"s{len(self.subscriptions) + 1}"
        self.subscriptions.append((org, sub))
        fields: dict[str, object] = {"sub": sub, "text": self._text()}
        if chance.random() < 0.2:
            fields["group"] = chance.choice(("desk", "shift"))
        if chance.random() < 0.15:
            fields["lifetime_s"] = round(chance.uniform(2.0, 30.0), 3)
        return Action(at, "subscribe", org, fields)

    def _text(self) -> str:
        chance = self.chance
        path = chance.choice(("Report", "Report", *_CLASSES, "Report/Wind"))
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
        path = chance.choice(("Report", *_CLASSES))
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
            "id": f"e{self.events}",
            "class": path,
            "data": data,
            "quality": quality,
            "previous": previous,
            "available": chance.choice((0, 0, 0, 2, 10, 60, "INF")),
        }


@dataclass(slots=True)
class _Breaks:
    chance: Random
    names: list[str]
    faults: frozenset[str]
    users: _Users

    def actions(self) -> list[Action]:
        chance, found = self.chance, []
        if self.faults & {"delay", "loss", "duplicate"}:
            for _ in range(chance.choice((1, 2, 3))):
                found += [Action(self._time(), "weather", "", self._weather())]
        if "partition" in self.faults:
            for _ in range(chance.choice((0, 1, 2, 3))):
                found.extend(self._partition())
        if "crash" in self.faults:
            for _ in range(chance.choice((0, 1, 2, 4))):
                found += [self._crash()]
        if "restore" in self.faults:
            for _ in range(chance.choice((0, 0, 1, 1, 2))):
                found.extend(self._restore())
        if "disk-full" in self.faults and chance.random() < 0.3:
            during = round(chance.uniform(0.1, 4.0), 3)
            found.append(
                Action(self._time(), "disk-full", chance.choice(self.names), {"during_s": during})
            )
        if "federation" in self.faults:
            found.extend(self._changes())
        if "gone" in self.faults and chance.random() < 0.3:
            found.extend(self._gone())
        return found

    def _time(self) -> float:
        return self.chance.uniform(1.0, CHAOS_S * 0.95)

    def _weather(self) -> dict[str, object]:
        chance = self.chance
        weather: dict[str, object] = {}
        if "delay" in self.faults:
            weather["most_delay_s"] = round(chance.choice((0.05, 0.3, 1.5)), 3)
        if "loss" in self.faults:
            weather["loss"] = chance.choice((0.0, 0.05, 0.2))
        if "duplicate" in self.faults:
            weather["duplication"] = chance.choice((0.0, 0.1, 0.3))
            weather["straggling"] = 0.3
        return weather

    def _partition(self) -> list[Action]:
        chance = self.chance
        at = self._time()
        until = min(CHAOS_S, at + chance.uniform(0.5, 15.0))
        inside = set(chance.sample(self.names, chance.randint(1, max(1, len(self.names) // 2))))
        outside = [name for name in self.names if name not in inside]
        way = chance.choice(("both", "in", "out", "some"))
        pairs = [
            pair
            for one in sorted(inside)
            for other in outside
            for pair in ((one, other), (other, one))
            if way == "both"
            or (way == "out" and pair[0] == one)
            or (way == "in" and pair[1] == one)
            or (way == "some" and chance.random() < 0.5)
        ]
        told: dict[str, object] = {"pairs": " ".join(f"{a}>{b}" for a, b in pairs)}
        return [Action(at, "cut", "", told), Action(until, "mend", "", told)]

    def _crash(self) -> Action:
        chance = self.chance
        points = ("now", "before", "after", "halfway", "before", "halfway")
        fields: dict[str, object] = {
            "point": chance.choice(points),
            "down_s": round(chance.choice((0.2, 1.0, 6.0, 15.0)), 3),
        }
        return Action(self._time(), "crash", chance.choice(self.names), fields)

    def _restore(self) -> list[Action]:
        chance = self.chance
        org = chance.choice(self.names)
        backed_up = chance.uniform(0.5, CHAOS_S * 0.6)
        restored = chance.uniform(backed_up + 0.5, CHAOS_S * 0.95)
        down = {"down_s": round(chance.choice((0.1, 1.0, 4.0)), 3)}
        return [Action(backed_up, "backup", org), Action(restored, "restore", org, dict(down))]

    def _gone(self) -> list[Action]:
        """A publisher dies right after publishing and stays away; forwarders die meanwhile."""
        chance = self.chance
        at = chance.uniform(5.0, CHAOS_S - 12.0)
        publisher, *others = chance.sample(self.names, len(self.names))
        behind = others[: max(1, len(others) // 3)]
        pairs = [f"{one}>{other}" for one in self.names for other in behind if one != other]
        cut: dict[str, object] = {"pairs": " ".join(pairs)}
        found = [
            Action(at - 0.2, "cut", "", cut),
            Action(at + 8.0, "mend", "", cut),
            Action(at + chance.choice((0.2, 0.5, 2.5)), "gone", publisher),
        ]
        found += [Action(at, "publish", publisher, event) for event in self.users.burst()]
        for name in others[len(behind) :]:
            if chance.random() < 0.5:
                fields: dict[str, object] = {"point": "now", "down_s": 0.5}
                found += [Action(at + chance.uniform(0.3, 6.0), "crash", name, fields)]
        return found

    def _changes(self) -> list[Action]:
        chance, found = self.chance, []
        for _ in range(chance.choice((0, 0, 1, 2))):
            org = chance.choice(self.names)
            hosts = ",".join(["Report", *_some(chance, _CLASSES)])
            found.append(Action(self._time(), "host", org, {"hosts": hosts}))
        if chance.random() < 0.25:
            org, at = chance.choice(self.names), self._time()
            found.append(Action(at, "leave", org))
            if chance.random() < 0.7:
                back = chance.uniform(at + 0.5, CHAOS_S)
                found.append(Action(back, "rejoin", org))
        return found
