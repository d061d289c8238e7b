"""Findings: prints what a check found out, one line for each finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.runtime.findings import Finding

_STYLES: Final = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


def show_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    width = max((len(finding.what) for finding in findings), default=0)
    for verdict, what, words, remedy in findings:
        if screen.as_json:
            screen.json({"verdict": verdict.value, "what": what, "words": words, "remedy": remedy})
            continue
        screen.line(
            (f"{verdict.value:<5}", _STYLES[verdict.value]),
            visible(f"{what:<{width}}  {words}" + (f" ({remedy})" if remedy else "")),
        )
