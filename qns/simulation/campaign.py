"""Campaign: plays many seeds of the simulator, in one process or several, and adds up counts."""

from __future__ import annotations

import gc
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from qns.history.judge import judge
from qns.history.verdict import Rule
from qns.peer.turn import Record
from qns.simulation import broken_disks, lie_bounds, rest, twin_rules
from qns.simulation.audit import AUDITED, NEEDED_FAULTS
from qns.simulation.faults import FAULTS
from qns.simulation.scenario import Scenario, ScenarioResult
from qns.simulation.workload import Plan, make_plan

_RECORDS: Final = {
    "pub": "events published",
    "ntfy": "notifications",
    "skip": "skips",
    "drop": "drops",
    "overflow": "overflows",
    "rewind": "rewinds",
}
_MESSAGES: Final = " messages"
RULES: Final = (
    *map(str, Rule),
    *rest.RULES,
    *AUDITED,
    *broken_disks.RULES,
    *lie_bounds.RULES,
    *twin_rules.RULES,
)
"""The rules that are counted: of the history, of the world at rest, of the audit, and about members
that lie or run twice."""
ASKED_WITHIN: Final = 200
"""The number of seeds in which each rule must have something to decide."""
ENOUGH_PEERS: Final = 6
"""With fewer peers, some rules rarely have anything to decide."""
_RELEASED_NAMES: Final = {"PullGap": "Pull"}
"""Kinds of requests whose name in the JSON report is older than the name of their class."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters that all seeds of a campaign share."""

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
    """The result of one run."""

    seed: int
    breaches: tuple[Breach, ...]
    counts: dict[str, int]
    history: Sequence[Record] = ()
    trace: str = ""
    """The stack trace, if the run ended with an exception."""
    asked: dict[str, int] = field(default_factory=dict)
    """Rule -> how often it had something to decide."""


_GC_THRESHOLDS = (50_000, 50, 100)
"""A world is large and short-lived: with the default thresholds, garbage collection takes a fifth
of the time."""


def play(plan: Plan) -> Result:
    """Plays one plan; an exception that ends the run is returned as a breach."""
    gc.set_threshold(*_GC_THRESHOLDS)
    scenario = Scenario(plan)
    try:
        outcome = scenario.run()
    except Exception as error:
        breach = Breach(type(error).__name__, str(error))
        trace = "".join(traceback.format_exception(error))
        return Result(plan.seed, (breach,), scenario.counts, scenario.world.history, trace)
    breaches, counts, history = _breaches(outcome), outcome.counts, outcome.history
    return Result(plan.seed, breaches, counts, history, asked=outcome.asked)


def _breaches(outcome: ScenarioResult) -> tuple[Breach, ...]:
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
    """Yields the results in the order of the seeds, without the histories.

    An executor gets at most `ahead` seeds beyond the one whose result is awaited.
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
    """The sums over the seeds played so far."""

    seeds: int = 0
    broken: list[Result] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(RULES, 0)))
    """Rule -> how often it had something to decide."""

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.counts.update(result.counts)
        self.asked.update(result.asked)
        if result.breaches:
            self.broken.append(result)

    def never_asked(self, setting: Setting) -> list[str]:
        """Returns the rules that had nothing to decide, though the faults that they need were in
        use."""
        faults = set(setting.faults)
        return [
            rule
            for rule in RULES
            if not self.asked[rule] and NEEDED_FAULTS.get(rule, set()) <= faults
        ]

    def must_ask_all(self, setting: Setting) -> bool:
        """True if the campaign is so large that a rule which was never asked is a failure."""
        return self.seeds >= ASKED_WITHIN and setting.peers >= ENOUGH_PEERS

    @property
    def messages(self) -> dict[str, int]:
        """The number of requests by kind: the name of the class, or its released name."""
        return {
            _RELEASED_NAMES.get(name := kind.removesuffix(_MESSAGES), name): number
            for kind, number in sorted(self.counts.items())
            if _is_kind(kind)
        }

    @property
    def records(self) -> dict[str, int]:
        """The number of records of the kinds that are reported, by their names in the report."""
        return {name: self.counts[do] for do, name in _RECORDS.items()}

    @property
    def faults(self) -> dict[str, int]:
        """The number of injected faults by kind."""
        return {
            fault: number
            for fault, number in sorted(self.counts.items())
            if fault not in _RECORDS and not _is_kind(fault)
        }


def _is_kind(count: str) -> bool:
    return count.endswith(_MESSAGES) and count[0].isupper()
