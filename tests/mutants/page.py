"""The page docs/mutants.md: every mutant, and what caught it the last time that it was tried."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS
from tests.mutants.trial import ROOT

PAGE: Final = ROOT / "docs/mutants.md"
SURVIVED: Final = "**survives**"
_NOT_TRIED: Final = "not tried"
_ROW: Final = re.compile(r"^\| `([a-z0-9-]+)` \| .*? \| (.*) \|$", re.MULTILINE)
_HEAD: Final = """\
# Mutants: deliberate bugs, and what catches them

`make mutants` puts each of these bugs into a copy of the project, one at a time, and runs the tests
of the rooms concerned, then 200 seeds of the simulator. It stops at the first test or seed that
notices the bug, and writes it here. `make mutants ARGS="--only NAME"` tries one,
`ARGS="--sample 6 --seed 1"` some, `ARGS=--untried` those that were never tried; CI tries a sample.
Each result is written at once, so that an interrupted run can go on. The bugs are in
[tests/mutants](../tests/mutants), each as a text and its replacement. A test checks that every text
still occurs once, so that a change of the code that concerns a bug changes the bug too.
"""


def known_results(page: Path = PAGE) -> dict[str, str]:
    """Returns the name of each mutant on the page and what caught it; empty if it survived."""
    if not page.exists():
        return {}
    found = _ROW.findall(page.read_text(encoding="utf-8"))
    known = {mutant.name for mutant in MUTANTS}
    return {
        name: "" if result.startswith(SURVIVED) else result.strip("`")
        for name, result in found
        if name in known and result != _NOT_TRIED
    }


def page_text(results: Mapping[str, str]) -> str:
    """Returns the page. A mutant without a result was not tried yet."""
    tried = [mutant for mutant in MUTANTS if mutant.name in results]
    caught = sum(bool(results[mutant.name]) for mutant in tried)
    parts = [
        _HEAD,
        f"{len(MUTANTS)} bugs; {len(tried)} were tried, {caught} of them were caught.\n",
    ]
    by_kind = sorted(MUTANTS, key=lambda mutant: mutant.kind)
    for kind, mutants in groupby(by_kind, key=lambda mutant: mutant.kind):
        parts += [
            f"## {kind.capitalize()}\n",
            "| bug | what it breaks | caught by |\n|---|---|---|",
        ]
        parts += [_row(mutant, results) for mutant in mutants]
        parts.append("")
    return "\n".join(parts)


def _row(mutant: Mutant, results: Mapping[str, str]) -> str:
    if mutant.name not in results:
        result = _NOT_TRIED
    elif results[mutant.name]:
        result = f"`{results[mutant.name].replace('|', '/').replace('`', '')}`"
    else:
        result = f"{SURVIVED}: {mutant.survives or 'a test is missing'}"
    return f"| `{mutant.name}` | {mutant.breaks} | {result} |"
