"""Minimising: from a plan that breaks a rule to the few actions that are enough to break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from qns.simulation.campaign import Breach, Result, play
from qns.simulation.workload import Action, Plan

_FEWEST_PEERS = 2


class Attempt(NamedTuple):
    runs: int
    plan: Plan
    """The smallest so far that breaks the rule."""
    result: Result
    breach: Breach | None
    """How it breaks it."""


def minimise(plan: Plan) -> Iterator[Attempt]:
    """Plays the plan, then smaller ones that still break the first rule that it broke.

    One attempt for each run, so that the caller can stop at any time. If the plan breaks no rule,
    there is one attempt.
    """
    result = play(plan)
    if not result.breaches:
        yield Attempt(1, plan, result, None)
        return
    best = _Best(plan, result, result.breaches[0])
    yield Attempt(1, best.plan, best.result, best.breach)
    for runs, candidate in enumerate(_candidates(best), start=2):
        best.compare(candidate, play(candidate))
        yield Attempt(runs, best.plan, best.result, best.breach)


@dataclass(slots=True)
class _Best:
    plan: Plan
    result: Result
    breach: Breach

    def compare(self, plan: Plan, result: Result) -> None:
        for breach in result.breaches:
            if breach.rule == self.breach.rule:
                self.plan, self.result, self.breach = plan, result, breach
                return


def _candidates(best: _Best) -> Iterator[Plan]:
    """Plans that are smaller than the best one; it changes when a candidate did well."""
    yield from _without_each_organisation(best)
    yield from _in_simpler_settings(best)
    yield from _without_each_kind(best)
    yield from _without_pieces(best)
    yield from _in_milder_weather(best)
    yield from _without_each_organisation(best)


def _without_each_organisation(best: _Best) -> Iterator[Plan]:
    for name in reversed(list(best.plan.federation.organisations)):
        if len(best.plan.federation.organisations) > _FEWEST_PEERS:
            yield _without_organisation(best.plan, name)


def _in_simpler_settings(best: _Best) -> Iterator[Plan]:
    """Right clocks, no limit to what is owed, stores in memory."""
    if any(best.plan.clocks.values()):
        yield replace(best.plan, clocks=dict.fromkeys(best.plan.clocks, 0.0))
    if best.plan.most_owed != inf:
        yield replace(best.plan, most_owed=inf)
    if best.plan.sqlite:
        yield replace(best.plan, sqlite=False)


def _without_each_kind(best: _Best) -> Iterator[Plan]:
    kinds = {each.kind: None for each in (*best.plan.actions, *best.plan.calm_actions)}
    for kind in kinds:
        yield _filtered(best.plan, lambda action, kind=kind: action.kind != kind)  # type: ignore[misc]


def _without_pieces(best: _Best) -> Iterator[Plan]:
    """Delta debugging: without halves, quarters, …, single actions, until none can be spared."""
    piece = max(1, _size(best.plan) // 2)
    while _size(best.plan):
        before, first = best.plan, 0
        while first < _size(best.plan):
            candidate = _without_piece(best.plan, first, first + piece)
            yield candidate
            if best.plan is not candidate:
                first += piece
        if piece == 1 and best.plan is before:
            return
        piece = max(1, piece // 2)


def _in_milder_weather(best: _Best) -> Iterator[Plan]:
    for number, action in enumerate(best.plan.actions):
        for name in action.fields if action.kind == "weather" else ():
            actions = list(best.plan.actions)
            kept = {k: v for k, v in actions[number].fields.items() if k != name}
            actions[number] = replace(action, fields=kept)
            yield replace(best.plan, actions=tuple(actions))


def _size(plan: Plan) -> int:
    return len(plan.actions) + len(plan.calm_actions)


def _without_piece(plan: Plan, first: int, end: int) -> Plan:
    """Without these actions, counted through both phases."""
    breaking = len(plan.actions)
    calm_first, calm_end = max(0, first - breaking), max(0, end - breaking)
    return replace(
        plan,
        actions=plan.actions[:first] + plan.actions[end:],
        calm_actions=plan.calm_actions[:calm_first] + plan.calm_actions[calm_end:],
    )


def _filtered(plan: Plan, is_kept: Callable[[Action], bool]) -> Plan:
    return replace(
        plan,
        actions=tuple(filter(is_kept, plan.actions)),
        calm_actions=tuple(filter(is_kept, plan.calm_actions)),
    )


def _without_organisation(plan: Plan, name: str) -> Plan:
    left = {k: v for k, v in plan.federation.organisations.items() if k != name}
    smaller = replace(
        plan,
        federation=replace(plan.federation, organisations=left),
        clocks={k: v for k, v in plan.clocks.items() if k != name},
        actions=tuple(_without_links(each, name) for each in plan.actions),
    )
    return _filtered(smaller, lambda each: each.org != name and each.fields.get("pairs") != "")


def _without_links(action: Action, name: str) -> Action:
    """The action without what it does to the links of an organisation."""
    pairs = action.fields.get("pairs")
    if not isinstance(pairs, str):
        return action
    kept = [pair for pair in pairs.split() if name not in pair.split(">")]
    return replace(action, fields={**action.fields, "pairs": " ".join(kept)})
