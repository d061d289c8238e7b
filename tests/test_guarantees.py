"""docs/guarantees.md lists every bound of a peer with its default."""

from __future__ import annotations

import re
from dataclasses import fields
from math import inf
from pathlib import Path

import pytest

from qns.peer.tuning import Tuning
from qns.runtime.driver import MOST_WAITING
from qns.runtime.server import MOST_CONNECTIONS, MOST_PULLS

PAGE = (Path(__file__).parents[1] / "docs/guarantees.md").read_text(encoding="utf-8")
BOUNDS = {each.name: each.default for each in fields(Tuning) if not each.name.endswith("_s")}
"""The settings that are no times."""


def listed(cell: str) -> str:
    """Returns the default in the row of the table with this cell."""
    (default,) = re.findall(rf"^\|[^|]*\| {re.escape(cell)} \| ([^|]*?) \|", PAGE, re.MULTILINE)
    return str(default)


@pytest.mark.parametrize("name", BOUNDS)
def test_page_lists_every_bound_of_the_tuning_with_its_default(name: str) -> None:
    default = BOUNDS[name]
    assert listed(f"`{name}`") == ("no limit" if default == inf else f"{default:,}")


@pytest.mark.parametrize("bound", [MOST_WAITING, MOST_PULLS, MOST_CONNECTIONS])
def test_page_lists_the_bounds_of_the_process(bound: int) -> None:
    assert re.search(rf"^\| [^|]* \| — \| {bound:,} \|", PAGE, re.MULTILINE)
