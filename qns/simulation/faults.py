"""Faults: draws the faults of a plan and the changes of its federation."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.disk_faults import FAILING_SYNC, ROT
from qns.simulation.host_faults import HOST_FAULTS
from qns.simulation.users import CLASSES, Users, some

SEPARATE: Final = ("liar", "twin", "rights", FAILING_SYNC, ROT)
"""Faults of which a swarm decides one by one, so that they leave the other plans as they were."""
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
    "overflow",
    "bounds",
    "gone",
    "lasting",
    "split",
    *HOST_FAULTS,
    "repeat",
    *SEPARATE,
    "swarm",
)


@dataclass(slots=True)
class Faults:
    """Draws the faults and the changes of the federation."""

    chance: Random
    names: list[str]
    faults: frozenset[str]
    users: Users

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
        fields: dict[str, object] = {"pairs": " ".join(f"{a}>{b}" for a, b in pairs)}
        return [Action(at, "cut", "", fields), Action(until, "mend", "", fields)]

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
        """Returns a random scenario: a cut, a publisher that publishes and dies, and crashes."""
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
            hosts = ",".join(["Report", *some(chance, CLASSES)])
            found.append(Action(self._time(), "host", org, {"hosts": hosts}))
        if chance.random() < 0.25:
            org, at = chance.choice(self.names), self._time()
            found.append(Action(at, "leave", org))
            if chance.random() < 0.7:
                back = chance.uniform(at + 0.5, CHAOS_S)
                found.append(Action(back, "rejoin", org))
        return found
