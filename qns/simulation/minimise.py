"""Minimising: reduces a plan that breaks a rule to few actions that still break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from qns.simulation.actions import Action
from qns.simulation.campaign import Breach, Result, play
from qns.simulation.workload import Plan

_FEWEST_PEERS = 2


class Attempt(NamedTuple):
    """The state of minimising after a number of runs."""

    runs: int
    plan: Plan
    """The smallest plan so far that breaks the rule."""
    result: Result
    """The result of playing that plan."""
    breach: Breach | None
    """The breach of the rule in that result; None if the first plan broke no rule."""


def minimise(plan: Plan) -> Iterator[Attempt]:
    """Plays the plan, then smaller ones to find those that still break its first broken rule.

    Yields one attempt for each run, so that the caller can stop at any time. If the plan breaks no
    rule, there is one attempt.
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
    """The smallest plan so far that breaks the rule."""

    plan: Plan
    result: Result
    breach: Breach

    def compare(self, plan: Plan, result: Result) -> None:
        """Replaces the best plan if the smaller one breaks the same rule."""
        for breach in result.breaches:
            if breach.rule == self.breach.rule:
                self.plan, self.result, self.breach = plan, result, breach
                return


def _candidates(best: _Best) -> Iterator[Plan]:
    """Yields plans that are smaller than the best one, which changes when a candidate succeeds."""
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
    """Yields the plan with correct clocks, without limits, and with memory stores."""
    if any(best.plan.clocks.values()):
        yield replace(best.plan, clocks=dict.fromkeys(best.plan.clocks, 0.0))
    if best.plan.most_owed != inf:
        yield replace(best.plan, most_owed=inf)
    if best.plan.longest_queue != inf:
        yield replace(best.plan, longest_queue=inf)
    if best.plan.federation.rights is not None:
        yield replace(best.plan, federation=replace(best.plan.federation, rights=None))
    if best.plan.sqlite:
        yield replace(best.plan, sqlite=False)


def _without_each_kind(best: _Best) -> Iterator[Plan]:
    kinds = {each.kind: None for each in (*best.plan.actions, *best.plan.calm_actions)}
    for kind in kinds:
        yield _filtered(best.plan, lambda action, kind=kind: action.kind != kind)  # type: ignore[misc]


def _without_pieces(best: _Best) -> Iterator[Plan]:
    """Delta debugging: yields plans without halves, quarters, … and single actions, until no single
    action can be removed."""
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
    """Returns the plan without actions `first` to `end`, counted through both phases."""
    before_calm = len(plan.actions)
    calm_first, calm_end = max(0, first - before_calm), max(0, end - before_calm)
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
    left = replace(plan.federation.without(name), version=plan.federation.version)
    smaller = replace(
        plan,
        federation=left,
        clocks={k: v for k, v in plan.clocks.items() if k != name},
        actions=tuple(_without_links(each, name) for each in plan.actions),
    )
    return _filtered(smaller, lambda each: each.org != name and each.fields.get("pairs") != "")


def _without_links(action: Action, name: str) -> Action:
    """Returns the action without the links of an organisation."""
    pairs = action.fields.get("pairs")
    if not isinstance(pairs, str):
        return action
    kept = [pair for pair in pairs.split() if name not in pair.split(">")]
    return replace(action, fields={**action.fields, "pairs": " ".join(kept)})
