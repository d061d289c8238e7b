"""Campaign: many seeds of the simulator, played here or in processes, and what they add up to."""

from __future__ import annotations

import gc
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from qns.history.judge import judge
from qns.simulation.scenario import Outcome, Scenario
from qns.simulation.workload import FAULTS, Plan, make_plan
from qns.turn import Record

_RECORDS: Final = {
    "pub": "events published",
    "ntfy": "notifications",
    "skip": "skips",
    "drop": "drops",
    "rewind": "rewinds",
}
_MESSAGES: Final = " messages"


@dataclass(frozen=True, slots=True)
class Setting:
    """What all seeds of a campaign share."""

    peers: int = 6
    faults: tuple[str, ...] = FAULTS

    def plan(self, seed: int) -> Plan:
        return make_plan(seed, self.peers, self.faults)


class Breach(NamedTuple):
    """A rule that a run broke; an exception is named by its type."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    breaches: tuple[Breach, ...]
    counts: dict[str, int]
    history: Sequence[Record] = ()
    trace: str = ""
    """The stack, if the run ended with an exception."""


_SELDOM = (50_000, 50, 100)
"""A world is large and short-lived: looking for rubbish in it all the time costs a fifth."""


def play(plan: Plan) -> Result:
    """One run, to its verdict or to the exception that ended it."""
    gc.set_threshold(*_SELDOM)
    scenario = Scenario(plan)
    try:
        outcome = scenario.run()
    except Exception as error:
        breach = Breach(type(error).__name__, str(error))
        trace = "".join(traceback.format_exception(error))
        return Result(plan.seed, (breach,), scenario.counts, scenario.world.history, trace)
    return Result(plan.seed, _breaches(outcome), outcome.counts, outcome.history)


def _breaches(outcome: Outcome) -> tuple[Breach, ...]:
    if outcome.held:
        return ()
    rules = {each.explain(): each.rule for each in judge(outcome.history).violations}
    found = []
    for violation in outcome.violations:
        rule, _, text = violation.partition(": ")
        found.append(
            Breach(rules[violation], violation) if violation in rules else Breach(rule, text)
        )
    return tuple(found)


def campaign(
    seeds: Iterable[int], setting: Setting, executor: Executor | None = None, ahead: int = 64
) -> Iterator[Result]:
    """How each seed ended, in the order of the seeds whoever played them; without the histories.

    An executor is given at most so many seeds `ahead` of the one that is waited for.
    """
    if executor is None:
        for seed in seeds:
            yield _play_seed(setting, seed)
        return
    under_way: deque[Future[Result]] = deque()
    try:
        for seed in seeds:
            under_way.append(executor.submit(_play_seed, setting, seed))
            if len(under_way) > ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        for future in under_way:
            future.cancel()


def _play_seed(setting: Setting, seed: int) -> Result:
    return replace(play(setting.plan(seed)), history=())


@dataclass(slots=True)
class Totals:
    """What the seeds played so far add up to."""

    seeds: int = 0
    broken: list[Result] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.counts.update(result.counts)
        if result.breaches:
            self.broken.append(result)

    @property
    def messages(self) -> dict[str, int]:
        """Requests by kind; kinds are written as their classes."""
        return {
            kind.removesuffix(_MESSAGES): number
            for kind, number in sorted(self.counts.items())
            if _is_kind(kind)
        }

    @property
    def records(self) -> dict[str, int]:
        return {told: self.counts[do] for do, told in _RECORDS.items()}

    @property
    def faults(self) -> dict[str, int]:
        return {
            fault: number
            for fault, number in sorted(self.counts.items())
            if fault not in _RECORDS and not _is_kind(fault)
        }


def _is_kind(count: str) -> bool:
    return count.endswith(_MESSAGES) and count[0].isupper()
