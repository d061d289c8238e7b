"""Verdict: what a judge found in a history: checks made, rules broken, things counted apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from qns.history.records import Record

MOST_PER_RULE: Final = 20


class Rule(StrEnum):
    """The guarantees of semantics §9; Economy is the "all and only" of §6, Custody the last line
    of §9: what a forwarder holds arrives, also when its publisher is gone."""

    LEGALITY = "Legality"
    VALIDITY = "Validity"
    LIVENESS = "Liveness"
    COMPLETENESS = "Completeness"
    MINIMALITY = "Minimality"
    FIFO = "FIFO"
    NO_GAP = "No gap"
    ECONOMY = "Economy"
    CUSTODY = "Custody"


class Numbered(NamedTuple):
    """A record with its place in the history, counted from 1."""

    number: int
    record: Record


@dataclass(frozen=True, slots=True)
class Violation:
    rule: Rule
    records: tuple[Numbered, ...]
    """The last one is where the rule was found broken."""
    text: str

    def explain(self) -> str:
        """One paragraph: who, which event, which subscription, when, what should have happened."""
        return self.text


@dataclass(frozen=True, slots=True)
class Counts:
    records: int = 0
    events: int = 0
    subscriptions: int = 0
    notifications: int = 0
    void: int = 0
    """Records that a restore has undone; the counts above leave them out."""
    lost: int = 0
    """Events whose publication a restore has undone: nobody is owed them."""
    skipped: int = 0
    """Numbers that producers declared as skipped."""
    dropped: int = 0
    """Owed events that an operator's limit dropped, as declared."""
    excused: int = 0
    """Notifications that are owed no longer: declared lost, or forgotten where nobody can help."""


@dataclass(frozen=True, slots=True)
class Verdict:
    violations: list[Violation]
    """In the order of the rules, then of the history; of each rule at most so many."""
    checks: dict[Rule, int]
    broken: dict[Rule, int]
    """All of them, also those that are not reported one by one."""
    counts: Counts
    was_calm: bool
    """Whether there was a calm moment, at which alone Liveness and Completeness are judged."""

    @property
    def holds(self) -> bool:
        return not any(self.broken.values())


class _Found(NamedTuple):
    rule: Rule
    numbers: tuple[int, ...]
    words: Callable[[], str]


@dataclass(slots=True)
class Findings:
    """What the rules note down while the history is read."""

    found: list[_Found] = field(default_factory=list)
    excused: set[tuple[object, ...]] = field(default_factory=set)
    """Who is not owed which publication any more, though nobody was notified of it."""
    checks: dict[Rule, list[int]] = field(default_factory=lambda: {rule: [] for rule in Rule})
    """Rule -> the records at which it was asked."""

    def broken(self, rule: Rule, numbers: Iterable[int], words: Callable[[], str]) -> None:
        """A rule is broken by the last of these records; `words` is asked at most once."""
        self.found.append(_Found(rule, tuple(numbers), words))

    def verdict(
        self,
        records: Sequence[Record],
        void: Set[int],
        counts: Counts,
        was_calm: bool,
        most_per_rule: int,
    ) -> Verdict:
        """What is left when records that a restore has undone are not held against anyone."""
        kept: dict[Rule, list[_Found]] = {rule: [] for rule in Rule}
        for found in self.found:
            if found.numbers[-1] not in void:
                kept[found.rule].append(found)
        return Verdict(
            [
                Violation(rule, tuple(Numbered(n, records[n - 1]) for n in numbers), words())
                for each in kept.values()
                for rule, numbers, words in each[:most_per_rule]
            ],
            {rule: _count(numbers, void) for rule, numbers in self.checks.items()},
            {rule: len(each) for rule, each in kept.items()},
            counts,
            was_calm,
        )


def _count(numbers: Sequence[int], void: Set[int]) -> int:
    return sum(number not in void for number in numbers) if void else len(numbers)
