"""Every citation such as `semantics §5` resolves to a heading of docs/semantics.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "semantics.md"
FOLDERS = ("qns", "tests", "docs", "benchmarks", "examples", "schemas", "services")
SUFFIXES = {".py", ".md", ".lark", ".sql", ".xsd", ".wsdl", ".html", ".toml", ".xml", ".tsv"}

HEADING = re.compile(r"^## (\d+)\. ", re.MULTILINE)
SECTION = re.compile(r"(?P<foreign>(?:SOAP 1\.1|\b00[0-4])\s+)?§(?P<number>[\w.]*\w)?")
"""A section sign; the sections of SOAP 1.1 and of the papers 000 to 004 are foreign."""
MENTION = re.compile(r"\bsemantics(?: page)? §|\bsemantics page\b", re.IGNORECASE)


def text_files() -> Iterator[Path]:
    """Yields every file that may cite the page."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and "node_modules" not in path.parts:
                yield path
    yield from sorted(ROOT.glob("*.md"))


def sections(text: str) -> set[str]:
    return set(HEADING.findall(text))


def unresolved(text: str, known: set[str]) -> list[str]:
    """Returns every citation of a section that the page does not have."""
    return [
        match.group()
        for match in SECTION.finditer(text)
        if not match["foreign"] and match["number"] and match["number"] not in known
    ]


def cites(text: str) -> bool:
    """True if the text mentions the page, or a section of it."""
    return bool(MENTION.search(text)) or any(
        match["number"] and not match["foreign"] for match in SECTION.finditer(text)
    )


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_sections_of_the_page_are_numbered_without_a_gap() -> None:
    numbers = [int(number) for number in HEADING.findall(PAGE.read_text(encoding="utf-8"))]
    assert numbers
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_citation_resolves_to_a_section_of_the_page() -> None:
    known = sections(PAGE.read_text(encoding="utf-8"))
    wrong = {
        name(path): found
        for path in text_files()
        if path != Path(__file__) and (found := unresolved(path.read_text(encoding="utf-8"), known))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))], ids=name
)
def test_document_that_cites_the_page_links_to_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path != PAGE and cites(text):
        assert re.search(r"\]\((docs/)?semantics\.md(#[^)]*)?\)", text), (
            f"{name(path)} cites the semantics page: link to it"
        )


def test_wrong_citations_are_noticed() -> None:
    known = {"8", "9"}
    assert unresolved("as in semantics §8, §9 and 000 §4.3; SOAP 1.1 §3 forbids it", known) == []
    assert unresolved("semantics §8, §13 and (§9.1)", known) == ["§13", "§9.1"]
    assert cites("the semantics page says so")
    assert cites("see §8")
    assert not cites("SOAP 1.1 §3, and the sign § alone")
