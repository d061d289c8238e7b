"""Claim: a statement about the results, its verdict in this run and the rule of the verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    figure: str
    claim: str
    holds: bool | None
    """None if this run does not decide it."""
    numbers: str
    reason: str
    """The rule of the verdict, or the reason why there is none."""
    mapping: str = ""
    """The mapping (or case) that was judged; empty if there is only one."""
