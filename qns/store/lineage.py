"""Lineage: keeps the marks of a store in a small file outside the store.

The file must not be part of backups: a restored store is detected because the marks differ. The
file is text, so that an operator can read it. Its last line shows that it is complete.

By default the file is not in the folder of the store, so that a copy of the folder that is put back
is detected too. A second file beside the store counts only where the first one is missing: on a
host to which the folder was moved.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

from qns.errors import StoreFailed, ValueRefused, shorten
from qns.peer.ports import Mark
from qns.store.faults import from_os
from qns.store.files import write_atomically, write_durably

_FIRST_LINE: Final = "QNS lineage 1: keep this file, and keep it out of backups"
_LAST_LINE: Final = "end"
_LINE: Final = re.compile(
    r"epoch (0|[1-9][0-9]{0,18}) nonce ([!-~]{1,200})(?: turns (0|[1-9][0-9]{0,18}))?"
)
_MAX_BYTES: Final = 100_000


class FileLineage:
    """Implements `ports.Lineage` with a file, and perhaps a second one beside the store."""

    def __init__(self, path: str | Path, beside: str | Path | None = None) -> None:
        self._path = Path(path)
        self._beside = self._path if beside is None else Path(beside)
        self._lock = Lock()

    @property
    def exists(self) -> bool:
        return self._path.exists() or self._beside.exists()

    def read(self) -> tuple[Mark, ...]:
        found = _read(self._path)
        return (_read(self._beside) if found is None else found) or ()

    def write(self, marks: tuple[Mark, ...]) -> None:
        with self._lock:
            if self._may_write_outside():
                write_durably(self._path, _content(marks))
            if self._beside != self._path:
                write_durably(self._beside, _content(marks))

    def advance(self, mark: Mark) -> None:
        with self._lock:
            before = self.read()
            marks = _advanced(before, mark)
            if marks != before:
                # After a power cut the file may have the older count: then fewer losses are seen.
                path = self._path if self._path.exists() else self._beside
                write_atomically(path, _content(marks))

    def _may_write_outside(self) -> bool:
        """Creates the folder; False if that is impossible and there is a file beside the store."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            if self._beside == self._path:
                raise from_os(error, str(self._path)) from None
            return False
        is_writable = os.access(self._path.parent, os.W_OK)
        return is_writable or self._path.exists() or self._beside == self._path


class MemoryLineage:
    """Implements `ports.Lineage` in memory, for simulated peers."""

    def __init__(self, marks: tuple[Mark, ...] = ()) -> None:
        self._marks = marks

    def read(self) -> tuple[Mark, ...]:
        return self._marks

    def write(self, marks: tuple[Mark, ...]) -> None:
        self._marks = marks

    def advance(self, mark: Mark) -> None:
        self._marks = _advanced(self._marks, mark)


def default_path(store: Path) -> Path:
    """Returns where the lineage of a store is kept: in the user's folder for state."""
    absolute = store.resolve()
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    digest = sha256(os.fsencode(absolute)).hexdigest()[:16]
    return Path(state) / "qns" / f"{absolute.name}-{digest}.lineage"


def _advanced(marks: tuple[Mark, ...], mark: Mark) -> tuple[Mark, ...]:
    """Returns the marks with the number of turns of `mark` where the nonce is the same."""
    return tuple(
        each._replace(turns=max(each.turns, mark.turns)) if each.nonce == mark.nonce else each
        for each in marks
    )


def _read(path: Path) -> tuple[Mark, ...] | None:
    """Returns the marks in a file; None if there is no file."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise from_os(error, str(path)) from None
    lines = content.decode("ascii", "replace").split("\n")
    if lines[0] != _FIRST_LINE or lines[-2:] != [_LAST_LINE, ""]:
        raise _unreadable(path, "it is incomplete or not a lineage")
    marks = []
    for number, line in enumerate(lines[1:-2], start=2):
        found = _LINE.fullmatch(line)
        if found is None:
            raise _unreadable(path, f"line {number} is {shorten(line)}")
        marks.append(Mark(int(found[1]), found[2], int(found[3] or 0)))
    return tuple(marks)


def _unreadable(path: Path, problem: str) -> StoreFailed:
    return StoreFailed(
        f"the lineage cannot be read: {problem}",
        place=str(path),
        remedy="delete the file; the peer then treats the store as restored from a backup",
    )


def _content(marks: tuple[Mark, ...]) -> bytes:
    return "\n".join([_FIRST_LINE, *map(_line, marks), _LAST_LINE, ""]).encode()


def _line(mark: Mark) -> str:
    line = f"epoch {mark.epoch} nonce {mark.nonce} turns {mark.turns}"
    if not _LINE.fullmatch(line):
        raise ValueRefused(
            f"the nonce {shorten(mark.nonce)} cannot be written",
            remedy="use 1 to 200 printable ASCII characters without spaces",
        )
    return line
