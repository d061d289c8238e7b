"""Growth: a schema that gets a new class and another number for a label while peers run."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from qns.d2q.schema import Schema
from qns.federation.document import Federation
from qns.simulation.actions import CHAOS_S, Action

_PARENTS = ("Report/Temperature", "Report/Wind", "Report/Wind/Gust", "Report/Precipitation")


def draw_growth(seed: int, names: list[str]) -> list[Action]:
    """Draws a new class, which one organisation hosts, with subscriptions to it and events of it.

    It has draws of its own, so that the rest of a plan does not depend on it.
    """
    chance = Random(f"growth {seed}")  # noqa: S311
    if chance.random() > 0.3:
        return []
    at, org = chance.uniform(1.0, CHAOS_S * 0.8), chance.choice(names)
    path = f"{chance.choice(_PARENTS)}/New"
    medium = chance.choice((0.3, 0.6, 0.9))
    found = [Action(at, "grow", org, {"class": path, "medium": medium})]
    for number in range(1, 4):
        where = chance.choice(("", " where Depth > 2", " where Depth.accuracy < medium"))
        fields: dict[str, object] = {"sub": f"g{number}", "text": path + where}
        later = chance.uniform(at, CHAOS_S)
        found.append(Action(later, "subscribe", chance.choice(names), fields))
    for number in range(1, 7):
        event: dict[str, object] = {
            "id": f"g{number}",
            "class": path,
            "data": {"Depth": chance.choice((1, 5)), "Region": chance.choice(("north", "south"))},
            "quality": {"Depth.accuracy": chance.choice((0.1, 0.5, 0.8))},
            "available": chance.choice((0, 5, "INF")),
        }
        found.append(Action(chance.uniform(at, CHAOS_S), "publish", org, event))
    return found


def grown(federation: Federation, action: Action) -> Federation:
    """Returns the next version of the document, after this growth."""
    before, org, path = federation.schema, action.org, str(action.fields["class"])
    classes = {
        each: {prop.name: prop.domain.name for prop in before.properties[each]}
        for each in before.classes
    }
    medium = action.fields["medium"]
    assert isinstance(medium, float)
    schema = Schema(
        before.name,
        {**classes, path: {"Depth": "integer"}},
        {**before.labels, "medium": medium},
    )
    host = replace(federation[org], hosts=federation[org].hosts | {path})
    next_version = federation.with_schema(schema)
    return replace(next_version, organisations={**next_version.organisations, org: host})
