"""Habits that a test can keep: small ratchets that only ever tighten."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "qns").rglob("*.py"))
SOURCES = sorted(
    path
    for path in (ROOT / "qns").rglob("*")
    if path.is_file() and path.suffix in {".py", ".lark", ".xsd", ".sql", ".html"}
)

MAX_LINES = 400
LONG_FILES: dict[str, str] = {}
"""Path from the root -> why this file may be longer."""

LEFT_FOR_LATER = re.compile(r"\b(TODO|FIXME)\b")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def has_docstring(source: str) -> bool:
    """Whether the module says what it is; an empty `__init__.py` has nothing to say."""
    return not source.strip() or bool(ast.get_docstring(ast.parse(source)))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert has_docstring(path.read_text(encoding="utf-8")), f"{name(path)} has no docstring"


def test_a_module_without_a_docstring_is_noticed() -> None:
    assert not has_docstring("import re\n")
    assert not has_docstring('""" """\n')
    assert has_docstring('"""A noun."""\n')


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_file_is_one_noun_and_not_too_long(path: Path) -> None:
    if name(path) not in LONG_FILES:
        assert line_count(path) <= MAX_LINES, (
            f"{name(path)} has {line_count(path)} lines: split it by noun, or give the reason "
            "in LONG_FILES"
        )


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_nothing_is_left_for_later(path: Path) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        assert not LEFT_FOR_LATER.search(line), f"{name(path)}:{number}: {line.strip()}"


def test_an_exception_goes_when_it_is_no_longer_needed() -> None:
    for path, reason in LONG_FILES.items():
        assert reason
        assert line_count(ROOT / path) > MAX_LINES, f"{path} is short again: drop it from the list"
