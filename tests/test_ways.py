"""docs/ARCHITECTURE.md describes the way of an event and of a subscription as they are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .ways import Way, trace

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
STEP = re.compile(r"^\d+\. `(qns/[\w/]+\.py)`, `([\w.]+)`:", re.MULTILINE)
COMPONENT = re.compile(r"^\| [A-Z][\w ]+ \| `(\w+)` \| `(qns/[\w/]+\.py)` \|$", re.MULTILINE)
MOST_FILES = {"event": 25, "subscription": 21}


def section(way: str) -> str:
    """The part of the page that describes a way."""
    found = PAGE.partition(f"## The way of {'an event' if way == 'event' else 'a subscription'}")
    return found[2].partition("\n## ")[0]


def steps(way: str) -> list[tuple[str, str]]:
    """The (file, name) of each step of a way, in order."""
    return STEP.findall(section(way))


def defined_names(file: str) -> set[str]:
    """The functions, classes and methods that a file defines."""
    names = set()
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = ast.FunctionDef | ast.AsyncFunctionDef
            names |= {
                f"{node.name}.{each.name}" for each in node.body if isinstance(each, functions)
            }
    return names


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Way]:
    event, subscription = trace(tmp_path_factory.mktemp("ways"))
    return {"event": event, "subscription": subscription}


@pytest.mark.parametrize(("file", "name"), sorted({*steps("event"), *steps("subscription")}))
def test_every_step_of_a_way_exists(file: str, name: str) -> None:
    assert name in defined_names(file)


@pytest.mark.parametrize(("name", "file"), COMPONENT.findall(PAGE))
def test_every_component_of_the_thesis_is_in_its_file(name: str, file: str) -> None:
    assert name in defined_names(file)


def test_page_lists_the_thirteen_components_of_the_thesis() -> None:
    assert len(COMPONENT.findall(PAGE)) == 13


@pytest.mark.parametrize("way", MOST_FILES)
def test_way_on_the_page_has_few_files(way: str) -> None:
    files = [file for file, _ in steps(way)]
    assert len(files) == len(set(files)) > 10
    assert len(files) <= MOST_FILES[way]


@pytest.mark.parametrize("way", MOST_FILES)
def test_traced_way_crosses_few_files(way: str, ways: dict[str, Way]) -> None:
    assert 10 < len(ways[way].crossed) <= MOST_FILES[way]


@pytest.mark.parametrize("way", MOST_FILES)
def test_every_step_on_the_page_is_in_the_trace(way: str, ways: dict[str, Way]) -> None:
    called = {(f"qns/{file}", name) for file, name in ways[way].functions}
    files = {f"qns/{file}" for file in ways[way].files}
    for file, name in steps(way):
        is_class = name.rpartition(".")[2][0].isupper()
        assert file in files if is_class else (file, name) in called, f"{file}: {name}"


@pytest.mark.parametrize("way", MOST_FILES)
def test_page_names_every_file_that_the_trace_crosses(way: str, ways: dict[str, Way]) -> None:
    assert [file for file in ways[way].crossed if f"`qns/{file}`" not in section(way)] == []
