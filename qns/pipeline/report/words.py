"""Words: phrases and helpers that several sections of the report share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qns.pipeline.report.results import Counts, Sizes, over_seeds
from qns.report.section import Section
from qns.report.statistics import Estimate

ACROSS: Final = "subscriptions per organisation"
INTERVALS: Final = "Shaded: 95 % confidence interval over seeds."
THIN_INTERVALS: Final = "Thin lines: 95 % confidence interval over seeds."
MEAN: Final = "mean ± half the 95 % interval over seeds"
PARTS: Final = (("mapping", "mapping alone", 1), ("containment", "containment alone", 2))
"""Suffix of the columns, words and look of each part of QNS alone."""
QNS: Final = ("both", "both (QNS)", 0)
SAVINGS: Final = (("messages", "changes", "messages saved"), ("rows", "live", "table rows saved"))
"""Prefix of the columns, column of the trivial solution, and words."""


def points(sizes: Sizes, value: Callable[[Counts], float]) -> tuple[tuple[float, Estimate], ...]:
    """The points of a curve along the sizes."""
    return tuple((float(size), over_seeds(sizes[size], value)) for size in sorted(sizes))


def capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def named(mapping: str) -> str:
    return f"{capital(mapping)} mapping"


def absent(name: str, title: str, remedy: str) -> Section:
    """The section of a result that this run did not compute."""
    return Section(name, title, f"Not computed in this run: {remedy}.", missing=True)


def joined_up(parts: list[str]) -> str:
    """One sentence from a part for each mapping."""
    return f"{capital('; '.join(parts) or 'there is nothing to compare in this run')}."
