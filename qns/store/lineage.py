"""Lineage: the marks of the store's life, in a small file of their own.

The file must not be part of the store's backups: that is how a restored store is recognised. It is
text, so that an operator can read it, and ends with a line that says so.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from qns.errors import StoreFailed, ValueRefused, shorten
from qns.ports import Mark
from qns.store.faults import from_os
from qns.store.files import write_durably

_FIRST_LINE: Final = "QNS lineage 1: keep this file, and keep it out of backups"
_LAST_LINE: Final = "end"
_LINE: Final = re.compile(r"epoch (0|[1-9][0-9]{0,18}) nonce ([!-~]{1,200})")
_MAX_BYTES: Final = 100_000


class FileLineage:
    """Implements `ports.Lineage`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def read(self) -> tuple[Mark, ...]:
        try:
            with self._path.open("rb") as file:
                content = file.read(_MAX_BYTES)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise from_os(error, str(self._path)) from None
        return self._parsed(content)

    def write(self, marks: tuple[Mark, ...]) -> None:
        lines = [_FIRST_LINE, *map(_line, marks), _LAST_LINE, ""]
        write_durably(self._path, "\n".join(lines).encode())

    def _parsed(self, content: bytes) -> tuple[Mark, ...]:
        lines = content.decode("ascii", "replace").split("\n")
        if lines[0] != _FIRST_LINE or lines[-2:] != [_LAST_LINE, ""]:
            raise self._unreadable("it is not complete, or not a lineage")
        marks = []
        for number, line in enumerate(lines[1:-2], start=2):
            found = _LINE.fullmatch(line)
            if found is None:
                raise self._unreadable(f"line {number} says {shorten(line)}")
            marks.append(Mark(int(found[1]), found[2]))
        return tuple(marks)

    def _unreadable(self, problem: str) -> StoreFailed:
        return StoreFailed(
            f"the lineage cannot be read: {problem}",
            place=str(self._path),
            remedy="delete the file: the store then counts as restored from a backup",
        )


class MemoryLineage:
    """The same for a simulated peer."""

    def __init__(self, marks: tuple[Mark, ...] = ()) -> None:
        self._marks = marks

    def read(self) -> tuple[Mark, ...]:
        return self._marks

    def write(self, marks: tuple[Mark, ...]) -> None:
        self._marks = marks


def _line(mark: Mark) -> str:
    line = f"epoch {mark.epoch} nonce {mark.nonce}"
    if not _LINE.fullmatch(line):
        raise ValueRefused(
            f"a mark with the nonce {shorten(mark.nonce)}",
            remedy="give 1 to 200 letters, digits or signs of ASCII, without blanks",
        )
    return line
