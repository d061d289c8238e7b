"""docs/threat-model.md: every threat has a test that exists, or says that it is not defended."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/threat-model.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
_OF_ATTACKERS = PAGE.split("## Attackers")[1].partition("\n## ")[0]
ATTACKERS = re.findall(r"^\| ([^|]+?) \| [^|]+ \|$", _OF_ATTACKERS, re.MULTILINE)
THREATS = re.findall(
    r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| ([^|]*?) ?\|$",
    PAGE.split("## Threats")[1].partition("\n## ")[0],
    re.MULTILINE,
)[1:]


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_named_test_exists(file: str, test: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert test in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("threat", THREATS, ids=lambda threat: threat[1][:40])
def test_threat_has_a_test_or_is_said_to_be_open(threat: tuple[str, str, str, str]) -> None:
    attacker, _, defence, test = threat
    assert attacker in ATTACKERS
    assert defence.startswith("not defended") == (not test), "a test, or 'not defended' and why"


def test_every_attacker_has_a_threat() -> None:
    assert len(THREATS) > 25
    assert {attacker for attacker, *_ in THREATS} == set(ATTACKERS) - {"attacker", "---"}


def test_every_bad_input_names_its_test() -> None:
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", PAGE.split("## Bad input")[1], re.MULTILINE)
    assert len(rows) > 15
    assert all("::test_" in test for _, test in rows[2:])
