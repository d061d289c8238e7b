"""Verdicts: True, False, or None if the 95 % interval over seeds contains the threshold."""

from __future__ import annotations

from typing import Final

from qns.report.statistics import Estimate

RULE: Final = "; open if the 95 % interval over seeds contains the threshold"

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
    """False if any verdict is False; otherwise None if any is None."""
    if any(each is False for each in verdicts):
        return False
    return None if None in verdicts else True
