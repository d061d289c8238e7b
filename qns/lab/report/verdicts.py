"""Verdicts: yes, no, or None where the 95 % interval over seeds holds both."""

from __future__ import annotations

from typing import Final

from qns.report.statistics import Estimate

RULE: Final = "; open where the 95 % interval over seeds does not tell"

Verdict = bool | None


def at_least(value: Estimate, level: float) -> Verdict:
    if value.low >= level:
        return True
    return False if value.high < level else None


def at_most(value: Estimate, level: float) -> Verdict:
    if value.high <= level:
        return True
    return False if value.low > level else None


def above(value: Estimate, level: float) -> Verdict:
    within = at_most(value, level)
    return None if within is None else not within


def below(value: Estimate, level: float) -> Verdict:
    reached = at_least(value, level)
    return None if reached is None else not reached


def all_of(*verdicts: Verdict) -> Verdict:
    """One no is enough; one that is open leaves the rest open."""
    if any(each is False for each in verdicts):
        return False
    return None if None in verdicts else True
