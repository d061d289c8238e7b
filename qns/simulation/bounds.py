"""Tiny bounds: limits of the peers that are reached within a simulated minute."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any, Final

from qns.peer.tuning import Tuning
from qns.simulation.actions import Action

_SHARE: Final = 0.25
"""The share of the seeds that have tiny bounds."""
_VALUES: Final[dict[str, tuple[int, ...]]] = {
    "most_early": (1, 2),
    "most_custody": (1, 3),
    "most_dead_letters": (1,),
    "notifications_per_call": (1, 2, 3),
    "bytes_per_call": (300, 800),
    "events_remembered": (1,),
    "most_events": (20,),
}
"""Setting -> its values. `publications_remembered` is missing: the peer may then publish an event
twice whose factory repeats it late, which no rule could tell from a bug. So is `ended_remembered`:
a subscription whose answer is late is asked for again after it has ended.

Two bounds can make peers stand still. With a `most_events` of 15, early entries and events for
subscriptions that are not stable yet fill the log, and the event that would release them is
refused. If `most_custody` of a forwarder is reached with entries that are too early for a consumer,
the missing one cannot pass; so it is not drawn if links stay broken."""
_UNCERTAIN: Final = ("sever", "gone", "clock", "clock-step", "slow-disk", "fail-syncs")


def with_tiny_bounds(seed: int, actions: list[Action]) -> list[Action]:
    """Adds tiny values of some settings, as an action, so that a plan shows them.

    A full event log waits until users read and events are not available any more. So the events
    are available for seconds, and there is no such limit if the plan makes that uncertain, or if
    users do not read because links stay broken or a publisher is away.
    """
    chance = Random(f"bounds {seed}")  # noqa: S311
    if chance.random() > _SHARE:
        return actions
    chosen = {
        name: chance.choice(values) for name, values in _VALUES.items() if chance.random() < 0.5
    }
    if any(each.kind in _UNCERTAIN for each in actions):
        chosen.pop("most_events", None)
    if any(each.kind == "sever" for each in actions):
        chosen.pop("most_custody", None)
    if not chosen:
        return actions
    if "most_events" in chosen:
        actions = [
            replace(each, fields={**each.fields, "available": 10})
            if each.kind == "publish" and each.fields["available"] == "INF"
            else each
            for each in actions
        ]
    return [Action(0.0, "bounds", "", dict(chosen)), *actions]


def with_bounds(tuning: Tuning, actions: Iterable[Action]) -> Tuning:
    """Returns the settings of the peers in a plan."""
    for action in actions:
        if action.kind == "bounds":
            fields: dict[str, Any] = action.fields
            tuning = replace(tuning, **fields)
    return tuning
