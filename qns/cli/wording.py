"""Wording: small pieces of text that several commands print."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isinf


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, whose plural ends in s: `1 event`, `1,200 events`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shortened(text: str, limit: int) -> str:
    """Returns the text, cut to `limit` characters with an ellipsis at the end if it is longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def moment(at: float) -> str | None:
    """Formats a time in UTC to the second. Returns None for a time that never comes."""
    if isinf(at):
        return None
    try:
        return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # after the year 9999
        return None
