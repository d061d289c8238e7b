"""Tests that docs/history.md describes the format, and that the judge is independent."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from qns.history.records import FIELDS
from qns.history.verdict import Rule

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/history.md").read_text(encoding="utf-8")

ALLOWED = {
    "qns.errors",
    "qns.d2q.language",
    "qns.d2q.schema",
    "qns.d2q.schema_xml",
    "qns.d2q.terms",
}
"""Parsers of texts, so that names and spellings are read in one way. None of them decides whether
an event matches."""


def test_page_lists_every_kind_of_record_with_its_fields() -> None:
    listed = {}
    for kinds, fields in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.*?) \|", PAGE, re.MULTILINE):
        for kind in re.findall(r"\w+", kinds):
            listed[kind] = set(re.findall(r"`(\w+)`", fields))
    assert listed.pop("do") == set()  # the head of the table
    assert listed == {do: {*fields} - {"org"} for do, fields in FIELDS.items()}


def test_page_lists_every_rule() -> None:
    assert re.findall(r"^\| (\w[\w ]*) \| each ", PAGE, re.MULTILINE) == [str(r) for r in Rule]


def test_python_example_of_the_page_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(example, "history.md", "exec"), {})
    assert capsys.readouterr().out.startswith("Liveness [10, 11, 13, 29] Event e1 of CoC")


@pytest.mark.parametrize("path", sorted((ROOT / "qns/history").glob("*.py")), ids=lambda p: p.stem)
def test_judge_imports_only_parsers_from_other_rooms(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("qns"):
            assert node.module in ALLOWED or node.module.startswith("qns.history."), node.module
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("qns") for alias in node.names)
