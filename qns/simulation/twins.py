"""Twins: draws a copy of a peer that is started beside it, and what users do at the copy."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.users import Users

_SHARE: Final = 0.15
"""The share of the seeds that have a twin."""
_DISTURBING: Final = ("restore", "rollback", "lose-log", "rot", "leave", "rejoin", "gone", "lie")
"""What makes a peer forget or stop by itself: such a peer gets no twin."""


def draw_twin(seed: int, names: list[str], actions: list[Action]) -> list[Action]:
    """Draws one twin of a peer that stays a member and keeps its store, if this seed has one."""
    chance = Random(f"twin {seed}")  # noqa: S311
    disturbed = {each.org for each in actions if each.kind in _DISTURBING}
    free = [name for name in names if name not in disturbed]
    if len(names) < 3 or not free or chance.random() > _SHARE:
        return []
    org, since = chance.choice(free), chance.uniform(4.0, CHAOS_S * 0.8)
    users = Users(chance, [org], prefix="t", subscription_prefix="t")
    found = [Action(since, "twin", org)]
    for each in users.actions(60.0, 3, 8):
        if each.kind in ("publish", "subscribe"):
            fields = {k: v for k, v in each.fields.items() if k not in ("group", "lifetime_s")}
            if each.kind == "publish":  # it stays in the store of the twin
                fields["available"] = "INF"
            kind = f"twin-{each.kind}"
            found.append(replace(each, at=since + each.at, kind=kind, fields=fields))
    return found
