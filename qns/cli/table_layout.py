"""Table layout: rows of text in aligned columns, for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.cells import cell_len

from qns.cli.screen import Part


def table_lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str]
) -> Iterator[list[Part]]:
    """Returns the lines of a table, the head first. The columns in `numbers` align right."""
    widths = [max(map(cell_len, column)) for column in zip(head, *rows, strict=True)]
    is_number = [name in numbers for name in head]
    yield _line(head, widths, is_number, ["dim"] * len(head))
    for row in rows:
        yield _line(row, widths, is_number, ["bold cyan", *[""] * (len(head) - 1)])


def _line(
    texts: Sequence[str], widths: list[int], is_number: list[bool], styles: list[str]
) -> list[Part]:
    parts: list[Part] = []
    for text, width, right, style in zip(texts, widths, is_number, styles, strict=True):
        space = " " * (width - cell_len(text))
        parts += [space, (text, style), "  "] if right else [(text, style), space, "  "]
    return parts
