"""Problems: an error with its place in the input, as text and as JSON.

subscriptions.tsv:3: Enterprise/Holder has no property 'Nmae' (did you mean Name?)
  S3  Enterprise/Holder where Nmae = "Rossi"
                              ^
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len

from qns.errors import QnsError, mark_text

EXCERPT_CHARACTERS: Final = 76


@dataclass(frozen=True, slots=True)
class Problem:
    """`line` and `column` count from 1. `text` is the line with the column."""

    problem: str
    remedy: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    text: str = ""

    @classmethod
    def of(
        cls,
        error: QnsError,
        file: str | None = None,
        *,
        line: int | None = None,
        text: str = "",
        offset: int = 0,
    ) -> Problem:
        """Converts an error about `text`.

        `text` begins on a line of the file after `offset` characters. The line and the column of
        the error are relative to `text`.
        """
        own_line, column = error.line or 1, error.column
        rows = text.split("\n")
        row = rows[own_line - 1] if own_line <= len(rows) else ""
        if column is not None and own_line == 1:
            column += offset
        if line is not None:
            line += own_line - 1
        elif error.line is not None and (file is None or len(rows) > 1 or not text):
            line = error.line
        return cls(_message(error, file), error.remedy, file, line, column, row)

    @property
    def place(self) -> str:
        if self.file is None or self.line is None:
            return self.file or ""
        return f"{self.file}:{self.line}"

    @property
    def message(self) -> str:
        """Place, problem and remedy in one line."""
        where = f"{self.place}: " if self.place else ""
        what_now = f" ({self.remedy})" if self.remedy else ""
        return visible(f"{where}{self.problem}{what_now}")

    @property
    def excerpt(self) -> tuple[str, str] | None:
        """A part of the wrong line, and a caret under the column."""
        if self.column is None or not self.text:
            return None
        at = min(self.column - 1, len(self.text))
        start = max(0, min(at - EXCERPT_CHARACTERS // 2, len(self.text) - EXCERPT_CHARACTERS))
        end = start + EXCERPT_CHARACTERS
        before = ("…" if start else "") + _plain(self.text[start:at])
        after = _plain(self.text[at:end]) + ("…" if end < len(self.text) else "")
        return before + after, " " * cell_len(before) + "^"

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "problem": self.problem,
            "remedy": self.remedy,
        }


def visible(text: str) -> str:
    """Returns the text on one line, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _plain(text: str) -> str:
    """Replaces each control character by one character, so that the caret stays right."""
    return "".join(c if c.isprintable() else " " if c in "\t\n\r" else "·" for c in text)


def _message(error: QnsError, file: str | None) -> str:
    """Returns place and problem without the file, line and column, which are shown apart."""
    if file is None:
        return f"{error.place}: {error.problem}" if error.place else error.problem
    known = {file, "" if error.line is None else mark_text(error.line, error.column)}
    return ": ".join([*(s for s in error.place.split(": ") if s and s not in known), error.problem])
