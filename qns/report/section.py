"""Section: one result of a report, as a sentence, a picture and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qns.report.figures import Picture, page_drawings
from qns.report.page import Markup, Table, element, joined, table_markup


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    """The name in claims and files: 5.8a, trees."""
    title: str
    sentence: str
    """The result in numbers, or the command that computes it if it is missing."""
    picture: Picture | None = None
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    missing: bool = False


def anchor(name: str) -> str:
    return "figure-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def section_markup(section: Section) -> Markup:
    parts: list[str] = [
        element("h2", section.title),
        element("p", section.sentence, class_="open" if section.missing else "shows"),
    ]
    if section.picture:
        drawings = joined(Markup(each) for each in page_drawings(section.picture))
        files = Markup(" · ").join(
            element("a", kind.upper(), href=f"figures/{section.picture.name}.{kind}")
            for kind in ("svg", "png")
        )
        parts.append(
            element(
                "figure",
                element("div", drawings, class_="panels"),
                element("figcaption", section.picture.description, " ", Markup(files)),
            )
        )
    parts.extend(table_markup(table) for table in section.tables)
    parts.extend(element("p", note, class_="small") for note in section.notes)
    return element("section", joined(parts), id=anchor(section.name))
