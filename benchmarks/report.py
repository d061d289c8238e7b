"""Writes results: a Markdown page for each subject, and one JSON file with every number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

RAW = "results.json"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a Markdown table; the first column is text, the others are figures."""
    lines = [f"| {' | '.join(headers)} |", f"|---|{'--:|' * (len(headers) - 1)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def figure(value: float) -> str:
    """Returns a number with three significant digits: 12,300; 45.1; 0.0123."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def micro(seconds: float) -> str:
    """Returns a time in s, ms or µs."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{figure(seconds / size)} {unit}"
    return f"{figure(seconds * 1e6)} µs"


def times(ratio: float) -> str:
    return f"{figure(ratio)} ×"


def write(
    out: Path,
    subject: str,
    text: str,
    results: Any,
    machine: Mapping[str, str],
    quick: bool,
) -> Path:
    """Writes the subject's page and its part of the raw file; keeps the parts of other subjects."""
    out.mkdir(parents=True, exist_ok=True)
    kind = "A **quick** run: few repeats, small sizes." if quick else "A full run."
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    page = out / f"{subject}.md"
    page.write_text(f"{text}\n\n{kind} Machine: {facts}.\n", encoding="utf-8")
    raw = out / RAW
    known = json.loads(raw.read_text(encoding="utf-8")) if raw.exists() else {}
    known[subject] = {"machine": dict(machine), "quick": quick, "results": results}
    raw.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return page
