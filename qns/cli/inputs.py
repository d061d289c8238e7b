"""Inputs: a named file or standard input, read in pieces of bounded size."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, NamedTuple, Self

from qns.errors import DocumentError, LimitExceeded, QnsError

STDIN: Final = "-"
CHUNK_BYTES: Final = 1 << 16
"""Size of one read: some hundred events. A read from a pipe returns what has arrived."""
HEAD_BYTES: Final = 1 << 16
"""Size of the beginning by which the kind of a file is recognised."""

_BOM = b"\xef\xbb\xbf"


class Unreadable(QnsError):
    """A file that cannot be opened or read."""


class Batch(NamedTuple):
    """Consecutive lines without line ends. None stands for a line that is too long."""

    first_number: int
    lines: list[bytes | None]


class Input:
    """An open file. `name` is the user's name for it."""

    def __init__(self, name: str, file: BinaryIO | None = None) -> None:
        self.name = "standard input" if name == STDIN else name
        self._head = b""
        self._is_ours = file is None and name != STDIN
        if file is not None:
            self._file = file
        elif name == STDIN:
            if sys.stdin is None:  # the process was started with closed input
                raise Unreadable("cannot be read: it is closed", place=self.name)
            self._file = sys.stdin.buffer
        else:
            try:
                self._file = open(name, "rb")  # noqa: SIM115  # closed by __exit__
            except (OSError, ValueError) as problem:
                raise self._unreadable(problem) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            self._file.close()

    @property
    def size_bytes(self) -> int | None:
        """The size of the file, or None if it is unknown, as for a pipe."""
        try:
            status = os.fstat(self._file.fileno())
        except (OSError, ValueError):  # a stream in memory
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def head(self) -> bytes:
        """Returns the beginning without consuming it."""
        while len(self._head) < HEAD_BYTES and (more := self._read_some()):
            self._head += more
        return self._head

    def read(self, limit: int) -> bytes:
        """Returns the whole content, or `limit` + 1 bytes if it is longer."""
        pieces, size = [], 0
        for piece in self._pieces():
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                break
        return b"".join(pieces)[: limit + 1]

    def batches(
        self, max_line_bytes: int, seen: Callable[[int], None] = lambda _: None
    ) -> Iterator[Batch]:
        """Yields the lines as they arrive. The memory is bounded for lines of any length."""
        number, rest, started, skipping = 1, b"", False, False
        for piece in self._pieces():
            seen(len(piece))
            data = rest + piece
            if not started:
                if len(data) < len(_BOM) and _BOM.startswith(data):
                    rest = data
                    continue
                data, started = data.removeprefix(_BOM), True
            lines: list[bytes | None] = [*data.split(b"\n")]
            last = lines.pop()
            if skipping and lines:
                lines[0], skipping = None, False
            rest = b"" if skipping else last or b""
            if len(rest) > max_line_bytes:
                rest, skipping = b"", True
            if lines:
                kept = [x if x is not None and len(x) <= max_line_bytes else None for x in lines]
                yield Batch(number, kept)
                number += len(lines)
        if rest or skipping:
            is_kept = not skipping and len(rest) <= max_line_bytes
            yield Batch(number, [rest if is_kept else None])

    def _pieces(self) -> Iterator[bytes]:
        if self._head:
            head, self._head = self._head, b""
            yield head
        while piece := self._read_some():
            yield piece

    def _read_some(self) -> bytes:
        try:
            return self._file.read1(CHUNK_BYTES)  # type: ignore[attr-defined,no-any-return]
        except (OSError, ValueError) as problem:
            raise self._unreadable(problem) from None

    def _unreadable(self, problem: Exception) -> Unreadable:
        reason = (isinstance(problem, OSError) and problem.strerror) or str(problem)
        return Unreadable(f"cannot be read: {reason}", place=self.name)


def decoded(line: bytes) -> str:
    """Decodes a line without its carriage return. Raises DocumentError if it is not UTF-8."""
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as problem:
        column = len(line[: problem.start].decode("utf-8")) + 1
        raise DocumentError(
            f"byte 0x{line[problem.start]:02X} is not UTF-8", remedy="save the file as UTF-8"
        ).at_mark(1, column) from None


def too_long(max_line_bytes: int) -> LimitExceeded:
    """Returns the error for a line that is too long."""
    return LimitExceeded("a line that is too long", remedy=f"at most {max_line_bytes:,} bytes")
