"""Replay: the plan, the history and the verdict of one simulated seed, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from math import isfinite
from time import monotonic
from typing import Any, Final

from qns.cli.problems import visible
from qns.cli.progress import counted_progress
from qns.cli.screen import Screen
from qns.cli.wording import counted, shortened
from qns.history.records import Record
from qns.simulation.actions import Action
from qns.simulation.campaign import Breach, Result
from qns.simulation.minimise import Attempt, minimise
from qns.simulation.workload import Plan

MOST_RUNS: Final = 300
MOST_SECONDS: Final = 300.0
"""Minimising ends when either bound is reached."""

LONGEST_LINE: Final = 160


def smallest(plan: Plan) -> tuple[Attempt, bool]:
    """Returns the smallest plan found within the bounds, and True if Ctrl-C stopped the search."""
    found: Attempt | None = None
    until = monotonic() + MOST_SECONDS
    try:
        with counted_progress("minimising", MOST_RUNS) as advance:
            for found in islice(minimise(plan), MOST_RUNS):
                advance(f"minimising, {counted(size(found.plan), 'action')} left")
                if monotonic() > until:
                    break
    except KeyboardInterrupt:
        if found is None:
            raise
        return found, True
    assert found is not None
    return found, False


# -- text -----------------------------------------------------------------------------------------


def show_plan(plan: Plan, screen: Screen) -> None:
    screen.line(
        f"stores in {'SQLite' if plan.sqlite else 'plain dictionaries'}, "
        f"{f'at most {plan.most_owed:g}' if isfinite(plan.most_owed) else 'any number of'} "
        "events owed to an organisation, "
        f"{f'at most {plan.longest_queue:g}' if isfinite(plan.longest_queue) else 'any number of'} "
        "deliveries of a user"
    )
    for name, organisation in plan.federation.organisations.items():
        screen.line(
            f"{name}  fan-out {organisation.capability}, clock {plan.clocks[name]:+.3f} s, "
            f"hosts {', '.join(sorted(organisation.hosts))}"
        )
    for when, actions in (
        ("with faults", plan.actions),
        ("after the faults, counted from their end", plan.calm_actions),
    ):
        if actions:
            screen.line((f"{when}:", "dim"))
        for action in actions:
            screen.line(visible(str(action)))


def show_history(history: Iterable[Record], screen: Screen) -> None:
    for number, record in enumerate(history, start=1):
        screen.line(record_line(number, record))


def record_line(number: int, record: Record) -> str:
    """Returns, for example, `   17     3.402 s  Met02  ntfy    sub=s3 source=Met01 event=e5`."""
    fields = " ".join(_fields(record))
    start = f"{number:>5} {record['t']:9.3f} s  {record.get('org', ''):6} {record['do']:8}"
    return shortened(visible(f"{start}{fields}").rstrip(), LONGEST_LINE)


def _fields(record: Record) -> Iterator[str]:
    for name, value in record.items():
        if name == "event" and isinstance(value, dict):
            yield " ".join(f"{key}={value[key]}" for key in ("id", "class") if key in value)
        elif isinstance(value, list):
            yield f"{name}={','.join(map(str, value))}"
        elif name not in ("t", "org", "do", "xml") and value != "":
            yield f"{name}={value}"


def show_breach(breach: Breach, screen: Screen) -> None:
    screen.line((f"{breach.rule}: ", "bold red"), visible(breach.text))


def show_verdict(result: Result, screen: Screen) -> None:
    for breach in result.breaches:
        show_breach(breach, screen)
        screen.line()
    if result.trace:
        screen.raw(result.trace + "\n")
    rules = ", ".join(dict.fromkeys(breach.rule for breach in result.breaches))
    verdict = (f"broken: {rules}", "bold red") if rules else ("every rule held", "bold green")
    screen.line(f"seed {result.seed}: ", verdict)


def size(plan: Plan) -> int:
    return len(plan.actions) + len(plan.calm_actions)


# -- JSON -----------------------------------------------------------------------------------------


def replay_as_json(plan: Plan, result: Result) -> dict[str, Any]:
    return {
        "ok": not result.breaches,
        "seed": plan.seed,
        "plan": plan_as_json(plan),
        "violations": [breach_as_json(breach) for breach in result.breaches],
        "trace": result.trace or None,
        "counts": result.counts,
        "history": list(result.history),
    }


def plan_as_json(plan: Plan) -> dict[str, Any]:
    return {
        "organisations": {
            name: {
                "hosts": sorted(each.hosts),
                "capability": each.capability,
                "clock_ahead_s": plan.clocks[name],
            }
            for name, each in plan.federation.organisations.items()
        },
        "most_owed": plan.most_owed if isfinite(plan.most_owed) else None,
        "longest_queue": plan.longest_queue if isfinite(plan.longest_queue) else None,
        "sqlite": plan.sqlite,
        "actions": [_action_as_json(each) for each in plan.actions],
        "calm_actions": [_action_as_json(each) for each in plan.calm_actions],
    }


def _action_as_json(action: Action) -> dict[str, Any]:
    return {"at": action.at, "do": action.kind, "org": action.org, **action.fields}


def breach_as_json(breach: Breach) -> dict[str, str]:
    return {"rule": breach.rule, "explanation": breach.text}
