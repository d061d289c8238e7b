"""Claim: one thing that must hold, what this run says about it, and by which rule it was judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    figure: str
    claim: str
    holds: bool | None
    """None: not computed in this run."""
    numbers: str
    reason: str
    """The rule it was judged by, or why it was not."""
    mapping: str = ""
    """For which mapping; empty where it is not told apart."""
