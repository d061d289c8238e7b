"""Splits: two-sided partitions that last for minutes while users publish and subscribe.

They begin when the other faults are over, so that nothing but the partition delays an event.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from qns.simulation.actions import CHAOS_S, Action
from qns.simulation.users import Users

_SHARE = 0.12
"""The share of the seeds that have a split; each takes minutes of simulated time."""
_SETTLED_S = 5.0


def draw_split(seed: int, names: list[str]) -> list[Action]:
    """Draws a cut between two sides of the federation, and what users do on both sides."""
    chance = Random(f"split {seed}")  # noqa: S311
    if len(names) < 2 or chance.random() > _SHARE:
        return []
    during_s = chance.uniform(120.0, 300.0)
    inside = chance.sample(names, chance.randint(1, max(1, len(names) // 2)))
    pairs = [
        f"{a}>{b}"
        for one in inside
        for other in names
        if other not in inside
        for a, b in ((one, other), (other, one))
    ]
    fields: dict[str, object] = {"pairs": " ".join(pairs)}
    since = CHAOS_S + _SETTLED_S
    users = Users(chance, names, prefix="p", subscription_prefix="p")
    return [
        Action(since, "split", "", fields),
        Action(since + during_s, "reunite", "", fields),
        *(replace(each, at=since + each.at) for each in users.actions(during_s, 8, 14)),
    ]
