"""Workload: draws subscriptions and events of the weather federation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random

from qns.cbr.event import Event
from qns.d2q.event_json import EventReader
from qns.iil.requests import Subscribe
from qns.simulation.users import draw_values
from tests.soak.stage import Stage

OWNER = "user"

_REGIONS = ("north", "south", "east")
_TERMS = {
    "Report": ("",),
    "Report/Wind": ("Speed > 5", "Speed > 20", "Speed.currency falls below 0.5"),
    "Report/Temperature": ("Celsius.accuracy <= medium", "Celsius > 10"),
    "Report/Precipitation": ("",),
}


@dataclass(slots=True, eq=False)
class Workload:
    chance: Random
    stage: Stage
    number: int = 0
    """The last id; ids are not reused during a soak."""

    def subscription(self, organisation: str) -> Subscribe:
        chance = self.chance
        self.number += 1
        return Subscribe(
            OWNER,
            self._text(list(self.stage.federation.organisations)),
            id=f"s{self.number}",
            group=chance.choice(("desk", "shift")) if chance.random() < 0.2 else "",
            lifetime_s=float(chance.randint(20, 60)) if chance.random() < 0.2 else inf,
        )

    def event(self, source: str) -> Event:
        chance = self.chance
        self.number += 1
        path = chance.choice(sorted(self.stage.federation[source].hosts))
        data: dict[str, object] = {"Region": chance.choice(_REGIONS)}
        if chance.random() < 0.03:
            data["Region"] = "far away " * chance.randint(1_000, 5_000)
        measured, quality, previous = draw_values(chance, path)
        fields = {
            "id": f"e{self.number}",
            "class": path,
            "source": source,
            "data": {**data, **measured},
            "quality": quality,
            "previous": previous,
            "available": chance.choice((0, 0, 0, 2, 10, 60, "INF")),
        }
        return EventReader(self.stage.federation.schema).from_fields(fields)

    def _text(self, names: Sequence[str]) -> str:
        chance = self.chance
        path = chance.choice(("Report", *_TERMS))
        only = "only " if chance.random() < 0.15 else ""
        sources = ""
        if chance.random() < 0.4:
            sources = " from " + ", ".join(chance.sample(names, chance.choice((1, 2, 3))))
        terms = [chance.choice(_TERMS[path])] if chance.random() < 0.5 else []
        if chance.random() < 0.3:
            terms.append(f'Region = "{chance.choice(_REGIONS)}"')
        where = " and ".join(filter(None, terms))
        return f"{only}{path}{sources}" + (f" where {where}" if where else "")
