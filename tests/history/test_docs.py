"""The page on histories tells the format as it is; the judge stays apart from what it judges."""

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
"""Reading of texts, so that names and spellings are read in one way; nothing that decides."""


def test_every_record_is_told_with_its_fields() -> None:
    told = {}
    for kinds, fields in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.*?) \|", PAGE, re.MULTILINE):
        for kind in re.findall(r"\w+", kinds):
            told[kind] = set(re.findall(r"`(\w+)`", fields))
    assert told.pop("do") == set()  # the head of the table
    assert told == {do: {*fields} - {"org"} for do, fields in FIELDS.items()}


def test_every_rule_is_told() -> None:
    assert re.findall(r"^\| (\w[\w ]*) \| each ", PAGE, re.MULTILINE) == [str(r) for r in Rule]


def test_the_python_example_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(example, "history.md", "exec"), {})
    assert capsys.readouterr().out.startswith("Liveness [10, 11, 13, 29] Event e1 of CoC")


@pytest.mark.parametrize("path", sorted((ROOT / "qns/history").glob("*.py")), ids=lambda p: p.stem)
def test_the_judge_shares_nothing_that_decides(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("qns"):
            assert node.module in ALLOWED or node.module.startswith("qns.history."), node.module
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("qns") for alias in node.names)
