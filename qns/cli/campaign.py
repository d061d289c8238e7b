"""Campaign: runs the seeds of one `qns simulate`, minimises the first failure, prints a report."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from qns.cli.problems import visible
from qns.cli.processes import processes
from qns.cli.progress import counted_progress
from qns.cli.replay import (
    LONGEST_LINE,
    breach_as_json,
    plan_as_json,
    show_breach,
    show_plan,
    size,
    smallest,
)
from qns.cli.screen import Screen
from qns.cli.wording import counted, shortened
from qns.errors import QnsError
from qns.simulation.campaign import Result, Setting, Totals, campaign
from qns.simulation.faults import FAULTS
from qns.simulation.minimise import Attempt

MOST_SHOWN: Final = 20
"""How many failures are listed with their rules; the others only by seed."""


@dataclass(slots=True)
class Campaign:
    """A range of seeds, their setting and the results."""

    seeds: range
    setting: Setting
    totals: Totals = field(default_factory=Totals)
    seconds: float = 0.0
    found: Attempt | None = None
    """The minimised plan of the first seed that broke a rule."""
    interrupted: bool = False

    def play(self, jobs: int) -> None:
        """Runs all seeds in `jobs` processes."""
        started, violations = monotonic(), 0
        try:
            with (
                counted_progress("playing seeds", len(self.seeds)) as advance,
                processes(jobs) as executor,
            ):
                for result in campaign(self.seeds, self.setting, executor, ahead=jobs * 8):
                    self.totals.add(result)
                    violations += len(result.breaches)
                    advance(f"playing seeds, {counted(violations, 'violation')}")
        except KeyboardInterrupt:
            self.interrupted = True
        except BrokenProcessPool:
            raise QnsError(
                "a worker process was killed",
                remedy="if memory ran out, use fewer --jobs",
            ) from None
        self.seconds = monotonic() - started

    def minimise(self) -> None:
        """Minimises the first failure, unless Ctrl-C has stopped the campaign."""
        if self.totals.broken and not self.interrupted:
            try:
                plan = self.setting.plan(self.totals.broken[0].seed)
                self.found, self.interrupted = smallest(plan)
            except KeyboardInterrupt:
                self.interrupted = True

    @property
    def never_asked(self) -> list[str]:
        """The rules that had nothing to decide in any seed."""
        return self.totals.never_asked(self.setting)

    @property
    def asked_too_little(self) -> bool:
        """True if there were enough seeds, and a rule had nothing to decide in any of them."""
        is_large = not self.interrupted and self.totals.must_ask_all(self.setting)
        return is_large and bool(self.never_asked)

    @property
    def held(self) -> bool:
        """True if no rule was broken, and all were asked if there were enough seeds."""
        return not self.totals.broken and not self.asked_too_little

    # -- text ------------------------------------------------------------------------------------

    def show(self, screen: Screen) -> None:
        """Prints the report."""
        totals = self.totals
        screen.line(
            f"seeds {range_text(self.seeds)}, {self.setting.peers} peers, {self._faults}: ",
            (self._verdict, "bold green" if self.held else "bold red"),
        )
        for title, numbers in (
            ("faults injected", totals.faults),
            ("messages sent", totals.messages),
            ("in the histories", totals.records),
            ("rules asked", totals.asked),
        ):
            if numbers:
                screen.line()
                screen.line((title, "bold"))
            for name, number in numbers.items():
                screen.line(f"  {name:<22}{number:>12,}")
        if self.never_asked:
            screen.line()
            screen.line(
                ("never asked", "bold red" if self.asked_too_little else "bold"),
                f": {', '.join(self.never_asked)}. In {counted(totals.seeds, 'seed')} there was "
                "nothing to decide, so nothing is proved.",
            )
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
        if totals.broken:
            return f"{stopped}{len(totals.broken)} of {played} broke a rule"
        if self.asked_too_little:
            return f"{counted(len(self.never_asked), 'rule')} never asked"
        return f"{stopped}every rule held"

    def _show_broken(self, screen: Screen) -> None:
        shown = {self._replay(r.seed): r for r in self.totals.broken[:MOST_SHOWN]}
        width = max(map(len, shown))
        for command, result in shown.items():
            screen.line((f"{command:<{width}}", "bold"), f"  {_rules(result)}")
        rest = self.totals.broken[MOST_SHOWN:]
        if rest:
            screen.line("and seeds ", ", ".join(str(result.seed) for result in rest))

    def _show_found(self, found: Attempt, screen: Screen) -> None:
        """Prints the minimised plan and the paragraph on the broken rule."""
        seed = found.plan.seed
        if found.breach is None:
            screen.line(
                (f"seed {seed} broke no rule in a second run", "bold red"),
                ": the simulator depends on more than the seed",
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
        """Returns the command that runs the seed again."""
        words = [f"qns simulate --replay {seed}"]
        if self.setting.peers != Setting().peers:
            words.append(f"--peers {self.setting.peers}")
        if self.setting.faults != FAULTS:
            words.append(f"--faults {','.join(self.setting.faults) or 'none'}")
        return " ".join(words)

    # -- JSON ------------------------------------------------------------------------------------

    @property
    def _seeds_per_second(self) -> float:
        return self.totals.seeds / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        totals, found = self.totals, self.found
        return {
            "ok": self.held,
            "seeds": range_text(self.seeds),
            "played": totals.seeds,
            "interrupted": self.interrupted,
            "peers": self.setting.peers,
            "faults": list(self.setting.faults),
            "injected": totals.faults,
            "messages": totals.messages,
            "records": totals.records,
            "asked": dict(totals.asked),
            "never_asked": self.never_asked,
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
    """Returns the broken rules, as in `Liveness (3), Rest`, or the last line of an exception."""
    if result.trace:
        return shortened(visible(str(result.breaches[0])), LONGEST_LINE)
    rules = Counter(breach.rule for breach in result.breaches)
    return ", ".join(f"{rule} ({n})" if n > 1 else rule for rule, n in rules.items())
