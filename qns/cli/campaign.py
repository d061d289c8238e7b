"""Campaign: the seeds of one `qns simulate`: played, the first failure minimised, all told."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from qns.cli.bar import bar
from qns.cli.problems import visible
from qns.cli.processes import processes
from qns.cli.replay import (
    breach_as_json,
    counted,
    cut,
    plan_as_json,
    show_breach,
    show_plan,
    size,
    smallest,
)
from qns.cli.screen import Screen
from qns.errors import QnsError
from qns.simulation.campaign import Result, Setting, Totals, campaign
from qns.simulation.minimise import Attempt
from qns.simulation.workload import FAULTS

MOST_SHOWN: Final = 20
"""Failures that are listed with their rules; of the others, the seeds."""


@dataclass(slots=True)
class Campaign:
    seeds: range
    setting: Setting
    totals: Totals = field(default_factory=Totals)
    seconds: float = 0.0
    found: Attempt | None = None
    """The first seed that broke a rule, minimised."""
    interrupted: bool = False

    def play(self, jobs: int) -> None:
        started, violations = monotonic(), 0
        try:
            with bar("playing seeds", len(self.seeds)) as advance, processes(jobs) as executor:
                for result in campaign(self.seeds, self.setting, executor, ahead=jobs * 8):
                    self.totals.add(result)
                    violations += len(result.breaches)
                    advance(f"playing seeds, {counted(violations, 'violation')}")
        except KeyboardInterrupt:
            self.interrupted = True
        except BrokenProcessPool:
            raise QnsError(
                "a process that played seeds was killed",
                remedy="if memory ran out, take fewer --jobs",
            ) from None
        self.seconds = monotonic() - started

    def minimise(self) -> None:
        """The first failure; after Ctrl-C nobody wants to wait for it."""
        if self.totals.broken and not self.interrupted:
            try:
                plan = self.setting.plan(self.totals.broken[0].seed)
                self.found, self.interrupted = smallest(plan)
            except KeyboardInterrupt:
                self.interrupted = True

    # -- for people -------------------------------------------------------------------------------

    def show(self, screen: Screen) -> None:
        totals = self.totals
        screen.line(
            f"seeds {range_text(self.seeds)}, {self.setting.peers} peers, {self._faults}: ",
            (self._verdict, "bold red" if totals.broken else "bold green"),
        )
        for title, numbers in (
            ("faults injected", totals.faults),
            ("messages sent", totals.messages),
            ("in the histories", totals.records),
        ):
            if numbers:
                screen.line()
                screen.line((title, "bold"))
            for name, number in numbers.items():
                screen.line(f"  {name:<22}{number:>12,}")
        if totals.broken:
            screen.line()
            self._show_broken(screen)
        if self.found is not None:
            screen.line()
            self._show_found(self.found, screen)
        sys.stdout.flush()
        sys.stderr.write(
            f"{counted(totals.seeds, 'seed')} in {self.seconds:.1f} s, "
            f"{self._seeds_per_second:.1f} seeds per second\n"
        )

    @property
    def _faults(self) -> str:
        faults = self.setting.faults
        return {FAULTS: "all faults", (): "no faults"}.get(faults, f"faults {', '.join(faults)}")

    @property
    def _verdict(self) -> str:
        totals = self.totals
        played = counted(totals.seeds, "seed")
        stopped = f"stopped after {played}, " if self.interrupted else ""
        return stopped + (
            f"{len(totals.broken)} of {played} broke a rule" if totals.broken else "every rule held"
        )

    def _show_broken(self, screen: Screen) -> None:
        shown = {self._replay(r.seed): r for r in self.totals.broken[:MOST_SHOWN]}
        width = max(map(len, shown))
        for command, result in shown.items():
            screen.line((f"{command:<{width}}", "bold"), f"  {_rules(result)}")
        rest = self.totals.broken[MOST_SHOWN:]
        if rest:
            screen.line("and seeds ", ", ".join(str(result.seed) for result in rest))

    def _show_found(self, found: Attempt, screen: Screen) -> None:
        """The minimised trace: what is left of the plan, and the paragraph on the rule."""
        seed = found.plan.seed
        if found.breach is None:
            screen.line(
                (f"seed {seed} broke no rule when it was played again", "bold red"),
                ": something in the simulator depends on more than its seed",
            )
            return
        screen.line(
            (f"seed {seed}, {found.breach.rule}", "bold red"),
            f": {size(found.plan)} of {counted(size(self.setting.plan(seed)), 'action')} are "
            f"enough (found in {counted(found.runs, 'run')})",
        )
        show_plan(found.plan, screen)
        screen.line()
        show_breach(found.breach, screen)
        screen.line()
        screen.line("with its history: ", (f"{self._replay(seed)} --minimise", "bold"))

    def _replay(self, seed: int) -> str:
        """The command that plays it again."""
        words = [f"qns simulate --replay {seed}"]
        if self.setting.peers != Setting().peers:
            words.append(f"--peers {self.setting.peers}")
        if self.setting.faults != FAULTS:
            words.append(f"--faults {','.join(self.setting.faults) or 'none'}")
        return " ".join(words)

    # -- for programs -----------------------------------------------------------------------------

    @property
    def _seeds_per_second(self) -> float:
        return self.totals.seeds / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        totals, found = self.totals, self.found
        return {
            "ok": not totals.broken,
            "seeds": range_text(self.seeds),
            "played": totals.seeds,
            "interrupted": self.interrupted,
            "peers": self.setting.peers,
            "faults": list(self.setting.faults),
            "injected": totals.faults,
            "messages": totals.messages,
            "records": totals.records,
            "broken": [
                {
                    "seed": result.seed,
                    "replay": self._replay(result.seed),
                    "violations": [breach_as_json(breach) for breach in result.breaches],
                }
                for result in totals.broken
            ],
            "minimised": found
            and {
                "seed": found.plan.seed,
                "runs": found.runs,
                "plan": plan_as_json(found.plan),
                "violation": found.breach and breach_as_json(found.breach),
            },
            "seconds": round(self.seconds, 3),
            "seeds_per_second": round(self._seeds_per_second, 3),
        }


def range_text(seeds: range) -> str:
    return f"{seeds.start}..{seeds.stop}"


def _rules(result: Result) -> str:
    """`Liveness (3), Rest`; an exception with its last line."""
    if result.trace:
        return cut(visible(str(result.breaches[0])))
    rules = Counter(breach.rule for breach in result.breaches)
    return ", ".join(f"{rule} ({n})" if n > 1 else rule for rule, n in rules.items())
