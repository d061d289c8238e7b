"""Retry-After: the header of HTTP that says in how many seconds a request may be repeated."""

from __future__ import annotations

from math import ceil
from typing import Final

RETRY_AFTER: Final = "Retry-After"
LONGEST_S: Final = 3_600.0
"""A longer pause is cut, so that a wrong header stops nobody for good."""

_MOST_DIGITS: Final = 9


def write_retry_after(seconds: float) -> str:
    return str(max(1, ceil(seconds)))


def read_retry_after(header: str | None) -> float:
    """Returns the seconds; 0 if there is no header, or if it has a date instead."""
    text = (header or "").strip()
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return 0.0
    return min(float(text), LONGEST_S)
