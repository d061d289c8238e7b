"""Liars: draws a member that lies, and makes room for it in a plan.

The liar is one more member of the federation. Its peer is a real one, and it also sends what no
correct peer sends. Nobody is promised anything about its events, so that users name the members
that they want to hear from; all guarantees among these are judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Final

from qns.federation.document import Federation, Organisation
from qns.simulation.actions import CHAOS_S, Action

LIE: Final = "lie"
"""The kind of the actions of a liar."""
LIES: Final = (
    "fences",
    "epochs",
    "surprises",
    "incarnations",
    "reachability",
    "two-contents",
    "patterns",
    "elements",
    "document",
    "silence",
)
LIAR_CAPABILITY: Final = 2
_SHARE: Final = 0.15
"""The share of the seeds that have a liar."""


def draw_lies(seed: int, names: list[str]) -> list[Action]:
    """Draws what a liar tells the others, if this seed has one."""
    chance = Random(f"liar {seed}")  # noqa: S311
    if len(names) < 2 or chance.random() > _SHARE:
        return []
    liar = f"Met{len(names) + 1:02}"
    found = []
    for lie in chance.sample(LIES, chance.choice((2, 3, 4))):
        for _ in range(chance.choice((1, 2, 4))):
            to, third = chance.sample(names, 2)
            fields: dict[str, object] = {
                "lie": lie,
                "to": to,
                "third": third,
                "times": chance.choice((1, 3, 10)),
                "large": chance.random() < 0.3,
            }
            found.append(Action(chance.uniform(2.0, CHAOS_S * 0.9), LIE, liar, fields))
    return found


def liars_in(actions: Iterable[Action]) -> frozenset[str]:
    """Returns the members that lie in a plan."""
    return frozenset(each.org for each in actions if each.kind == LIE)


def with_liars(federation: Federation, liars: Iterable[str], capability: int) -> Federation:
    """Returns the federation with these further members, which host what all users want.

    Diffusion trees have the members with the highest capability at their top.
    """
    organisations = dict(federation.organisations)
    for name in sorted(liars):
        organisations[name] = Organisation(name, frozenset(["Report"]), capability=capability)
    return replace(federation, organisations=organisations)


def without_events_of_liars(actions: Iterable[Action], names: Iterable[str]) -> list[Action]:
    """Makes every user name the members whose events it wants."""
    sources = " from " + ", ".join(names)
    found = []
    for each in actions:
        if each.kind == "subscribe" and " from " not in str(each.fields["text"]):
            path, where, terms = str(each.fields["text"]).partition(" where ")
            fields = {**each.fields, "text": f"{path}{sources}{where}{terms}"}
            found.append(replace(each, fields=fields))
        else:
            found.append(each)
    return found
