"""Page: a report as one self-contained HTML page, readable on paper and on a phone.

Text is escaped unless it is `Markup`, so names from a scenario never become part of the page's
structure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

LONG_TABLE: Final = 12
"""A table with more rows is folded."""
_LONG_TEXT: Final = 24
"""A cell with more characters gets a wide column."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    """The number of columns at the left that are text; the others are right-aligned numbers."""
    foot: str = ""
    folded: bool | None = None
    """True if the table is folded; None if that depends on its length."""


def markup(text: str) -> Markup:
    """Escapes text, and keeps units and intervals on the line of their number."""
    if isinstance(text, Markup):
        return text
    return Markup(escape(text).replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0"))


def element(name: str, *inside: str, **attributes: str) -> Markup:
    """Returns an HTML element. `class_` and `aria_label` become class and aria-label."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{given}>{''.join(map(markup, inside))}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    return Markup("\n".join(map(markup, parts)))


def table_markup(table: Table) -> Markup:
    head = element(
        "tr",
        *(
            element("th", name, scope="col", class_="words" if nth < table.texts else "number")
            for nth, name in enumerate(table.head)
        ),
    )
    body = joined(element("tr", *_cells(row, table.texts)) for row in table.rows)
    whole = element(
        "div",
        element(
            "table",
            element("caption", table.caption),
            element("thead", head),
            Markup("\n"),
            element("tbody", body),
        ),
        class_="scroll",
        role="region",
        aria_label=table.caption,
        tabindex="0",
    )
    if table.foot:
        whole = joined([whole, element("p", table.foot, class_="small")])
    folded = len(table.rows) > LONG_TABLE if table.folded is None else table.folded
    if not folded:
        return whole
    rows = f"{len(table.rows):,} row{'s' * (len(table.rows) != 1)}"
    return element(
        "details", element("summary", f"Table: {table.caption} ({rows})"), Markup("\n"), whole
    )


def page(title: str, parts: Sequence[str]) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{joined(parts)}\n</main>\n</body>\n</html>\n"
    )


def _cells(row: Sequence[str], texts: int) -> list[Markup]:
    first = element("th", row[0], scope="row", class_="words")
    rest = [
        element("td", cell, class_=_kind(cell) if nth < texts else "number")
        for nth, cell in enumerate(row[1:], start=1)
    ]
    return [first, *rest]


def _kind(cell: str) -> str:
    return "words long" if len(cell) > _LONG_TEXT else "words"


STYLE: Final = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1a1c20; --soft: #565d67;
  --faint: #d5d9df; --box: #f5f6f8; --link: #005f9e; --yes: #00735c; --no: #b3261e;
  --line-1: #005f9e; --line-2: #b84a00; --line-3: #00735c; --line-4: #9c3d78;
  --line-5: #7a6200; --line-6: #5b6470; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #14161a; --ink: #e8eaed; --soft: #a8b0ba; --faint: #3a4048;
    --box: #1d2026; --link: #7cc0f5; --yes: #5fd3b3; --no: #ff9d94;
    --line-1: #62b5f0; --line-2: #f39a55; --line-3: #4fcfae; --line-4: #e596c5;
    --line-5: #e3cb4f; --line-6: #a8b0ba; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 47rem; margin: 0 auto; padding: 2.5rem 1.1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .6rem; text-wrap: balance; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 3rem 0 .6rem; padding-top: .9rem;
  border-top: 1px solid var(--faint); }
h3 { font-size: 1.02rem; margin: 1.6rem 0 .4rem; }
p { margin: .6rem 0; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible {
  outline: 2px solid var(--link); outline-offset: 2px; }
.lead { font-size: 1.08rem; }
.small, figcaption { color: var(--soft); font-size: .86rem; }
.shows { border-left: 3px solid var(--line-1); padding-left: .8rem; margin: .9rem 0; }
.box { background: var(--box); border: 1px solid var(--faint); border-radius: .5rem;
  padding: 1rem 1.1rem; margin: 1.4rem 0; }
.box h2 { margin: 0 0 .4rem; padding: 0; border: 0; }
.claims { list-style: none; margin: .6rem 0 0; padding: 0; }
.claims li { display: grid; grid-template-columns: 4.2rem 1fr; gap: .15rem .8rem; padding: .6rem 0;
  border-top: 1px solid var(--faint); }
.claims p { margin: 0; }
.claims .claim { grid-column: 1 / -1; font-weight: 600; }
.claims .small { grid-column: 2; }
.verdict { font-weight: 700; white-space: nowrap; }
.yes { color: var(--yes); } .no { color: var(--no); } .open { color: var(--soft); }
nav ul { padding: 0; margin: .4rem 0 0; list-style: none; display: flex; flex-wrap: wrap;
  gap: .2rem 1rem; }
figure { margin: 1.2rem 0; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20.5rem, 100%), 1fr));
  gap: 1rem; justify-items: center; }
.panels svg { width: 100%; max-width: 30rem; height: auto; display: block; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .84rem; min-width: 100%;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 0 0 .4rem; }
th, td { padding: .28rem .42rem; border-bottom: 1px solid var(--faint); vertical-align: top; }
thead th { border-bottom: 2px solid var(--soft); vertical-align: bottom; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
th.words, td.words { text-align: left; }
th.number, td.number { text-align: right; }
td.number { white-space: nowrap; }
tbody th { font-weight: 400; }
td.words { min-width: 5rem; } td.long { min-width: 11rem; }
details { margin: .8rem 0; }
summary { cursor: pointer; color: var(--link); font-size: .9rem; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .88em; background: var(--box); padding: .05em .3em; border-radius: .25rem;
  overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .25rem 1rem;
  font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 34rem) {
  .claims li, dl { grid-template-columns: 1fr; }
  .claims .small { grid-column: 1; }
  dd { margin-bottom: .4rem; } }
@media print {
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  nav, summary { display: none; } a { color: inherit; text-decoration: none; }
  h2, h3, caption { break-after: avoid; } figure, tr, .claims li { break-inside: avoid; }
  .scroll { overflow: visible; } .panels { grid-template-columns: 1fr 1fr; }
  details::details-content { content-visibility: visible; display: block; height: auto; } }
@page { margin: 18mm 16mm; }
"""
