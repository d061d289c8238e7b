"""A disk that fails on demand: a VFS of SQLite on top of the one that stores use."""

from __future__ import annotations

from typing import Any

import apsw

from qns.store import checksums

NAME = "faulty"


class FaultyDisk(apsw.VFS):
    """While `fault` is set, the operations in `fails` raise that error of SQLite."""

    def __init__(self) -> None:
        super().__init__(NAME, checksums.register())
        self.fault: int | None = None
        self.fails: set[str] = set()

    def fail(self, fault: int | None, *fails: str) -> None:
        self.fault, self.fails = fault, set(fails)

    def check(self, what: str) -> None:
        if self.fault is not None and what in self.fails:
            raise apsw.exception_for(self.fault)

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:  # noqa: N802
        return FaultyFile(self, name, flags)


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        super().__init__(checksums.VFS, name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.check("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.check("sync")
        super().xSync(flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.check("read")
        return super().xRead(amount, offset)
