"""Findings: how often each rule of an audit was asked, and where it is broken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

MOST_PER_RULE: Final = 20


@dataclass(slots=True)
class Findings:
    violations: list[str] = field(default_factory=list)
    """At most `MOST_PER_RULE` of each rule."""
    asked: Counter[str] = field(default_factory=Counter)
    """Rule -> how often it had something to decide."""
    broken: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    """What neither keeps nor breaks a rule."""

    def ask(self, rule: str, number: int = 1) -> None:
        self.asked[rule] += number

    def break_rule(self, rule: str, text: str) -> None:
        self.broken[rule] += 1
        if self.broken[rule] <= MOST_PER_RULE:
            self.violations.append(f"{rule}: {text}")

    def judge(self, rule: str, holds: bool, text: str) -> None:
        """Asks the rule once, and notes a violation unless it holds."""
        self.ask(rule)
        if not holds:
            self.break_rule(rule, text)
