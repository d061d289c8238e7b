"""Lineage: keeps the marks of a store in a small file outside the store.

The file must not be part of backups: a restored store is detected because the marks differ. The
file is text, so that an operator can read it. Its last line shows that it is complete.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from qns.errors import StoreFailed, ValueRefused, shorten
from qns.peer.ports import Mark
from qns.store.faults import from_os
from qns.store.files import write_durably

_FIRST_LINE: Final = "QNS lineage 1: keep this file, and keep it out of backups"
_LAST_LINE: Final = "end"
_LINE: Final = re.compile(r"epoch (0|[1-9][0-9]{0,18}) nonce ([!-~]{1,200})")
_MAX_BYTES: Final = 100_000


class FileLineage:
    """Implements `ports.Lineage` with a file."""

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
            raise self._unreadable("it is incomplete or not a lineage")
        marks = []
        for number, line in enumerate(lines[1:-2], start=2):
            found = _LINE.fullmatch(line)
            if found is None:
                raise self._unreadable(f"line {number} is {shorten(line)}")
            marks.append(Mark(int(found[1]), found[2]))
        return tuple(marks)

    def _unreadable(self, problem: str) -> StoreFailed:
        return StoreFailed(
            f"the lineage cannot be read: {problem}",
            place=str(self._path),
            remedy="delete the file; the peer then treats the store as restored from a backup",
        )


class MemoryLineage:
    """Implements `ports.Lineage` in memory, for simulated peers."""

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
            f"the nonce {shorten(mark.nonce)} cannot be written",
            remedy="use 1 to 200 printable ASCII characters without spaces",
        )
    return line
