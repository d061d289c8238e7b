"""Tests of style: docstrings, the length of files, and no TODOs."""

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
"""Path from the root -> the reason why this file may be longer."""

TODO = re.compile(r"\b(TODO|FIXME)\b")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def has_docstring(source: str) -> bool:
    """True if the module has a docstring or is empty, as `__init__.py` may be."""
    return not source.strip() or bool(ast.get_docstring(ast.parse(source)))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_has_a_docstring(path: Path) -> None:
    assert has_docstring(path.read_text(encoding="utf-8")), f"{name(path)} has no docstring"


def test_missing_docstring_is_detected() -> None:
    assert not has_docstring("import re\n")
    assert not has_docstring('""" """\n')
    assert has_docstring('"""A noun."""\n')


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_file_is_short_or_has_a_reason_to_be_long(path: Path) -> None:
    if name(path) not in LONG_FILES:
        assert line_count(path) <= MAX_LINES, (
            f"{name(path)} has {line_count(path)} lines: split it by noun, or give the reason "
            "in LONG_FILES"
        )


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_source_has_a_todo(path: Path) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        assert not TODO.search(line), f"{name(path)}:{number}: {line.strip()}"


def test_every_long_file_with_a_reason_is_long() -> None:
    for path, reason in LONG_FILES.items():
        assert reason
        assert line_count(ROOT / path) > MAX_LINES, f"{path} is short again: drop it from the list"


def test_compiled_functions_are_only_where_make_renews_the_cache_of_numba() -> None:
    compiling = re.compile(r"^from qns\.cbr\.compilation import .*(compiled|inlined)", re.MULTILINE)
    for path in MODULES:
        if compiling.search(path.read_text(encoding="utf-8")):
            assert name(path).startswith(("qns/cbr/", "qns/pipeline/")), (
                f"{name(path)} has compiled functions: add its package to COMPILED in the Makefile"
            )
