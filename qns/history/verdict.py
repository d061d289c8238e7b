"""Verdict: the result of judging a history: checks, violations and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from qns.history.records import Record

MOST_PER_RULE: Final = 20


class Rule(StrEnum):
    """The guarantees of semantics §9. Economy is the "all and only" of §6. Custody is the last line
    of §9: events in a forwarder's custody arrive, even if their publisher is gone."""

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
    """One place in a history where a rule is broken."""

    rule: Rule
    records: tuple[Numbered, ...]
    """The records concerned; the rule is broken at the last one."""
    text: str

    def explain(self) -> str:
        """Returns one paragraph that names the organisation, event, subscription and time, and
        says what should have happened."""
        return self.text


@dataclass(frozen=True, slots=True)
class Counts:
    """What a history contains, and what is neither kept nor broken."""

    records: int = 0
    events: int = 0
    subscriptions: int = 0
    notifications: int = 0
    void: int = 0
    """Records that a restore has undone. The counts above leave them out."""
    lost: int = 0
    """Events whose publication, or the record of it, a restore has undone. They are not owed."""
    skipped: int = 0
    """Numbers that producers declared as skipped."""
    dropped: int = 0
    """Owed events that producers declared as dropped because of an operator's limit."""
    withheld: int = 0
    """Owed events that their consumers may not read any more, as producers declared."""
    discarded: int = 0
    """Dead letters that operators dropped."""
    overflowed: int = 0
    """Deliveries that peers declared as dropped from users' queues because of an operator's limit.
    A delivery that waited for the end of a pause was never notified."""
    relayed: int = 0
    """Notifications that a peer took for another receiver, whom their sender did not reach."""
    excused: int = 0
    """Owed notifications that are excused: the event was declared lost, or the consumer was
    restored and the producer has left."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of judging a history."""

    violations: list[Violation]
    """At most `most_per_rule` of each rule, in the order of the rules, then of the history."""
    checks: dict[Rule, int]
    """Rule -> how often it was checked."""
    broken: dict[Rule, int]
    """Rule -> the number of all its violations."""
    counts: Counts
    was_calm: bool
    """True if the history has a `calm`. Liveness and Completeness are judged only there."""

    @property
    def holds(self) -> bool:
        """True if no rule is broken."""
        return not any(self.broken.values())


class _Found(NamedTuple):
    """A violation whose text is not written yet."""

    rule: Rule
    numbers: tuple[int, ...]
    words: Callable[[], str]


@dataclass(slots=True)
class Findings:
    """Collects what the rules find while the history is read."""

    found: list[_Found] = field(default_factory=list)
    excused: set[tuple[object, ...]] = field(default_factory=set)
    """Organisation, subscriber, publication: debts that were excused."""
    checks: dict[Rule, list[int]] = field(default_factory=lambda: {rule: [] for rule in Rule})
    """Rule -> the records at which it was checked."""

    def broken(self, rule: Rule, numbers: Iterable[int], words: Callable[[], str]) -> None:
        """Adds a violation at the last of these records. `words`, which writes its text, is called
        at most once."""
        self.found.append(_Found(rule, tuple(numbers), words))

    def verdict(
        self,
        records: Sequence[Record],
        void: Set[int],
        counts: Counts,
        was_calm: bool,
        most_per_rule: int,
    ) -> Verdict:
        """Returns the verdict without the checks and violations at `void` records."""
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
