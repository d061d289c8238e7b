"""Losing files: a file layer of SQLite on a disk that loses what was not synced.

It is for trials and simulated peers. The files that processes read are real ones: they stand for
what the operating system has in memory. Beside them it keeps what is on the disk, which only a sync
changes. Chosen syncs fail. The operating system then takes what it could not write for written: it
either keeps it in memory, so that the process reads it until the power is cut, or forgets it at
once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import apsw

from qns.store import checksums

SECTOR: Final = 512


@dataclass(slots=True, eq=False)
class Shadow:
    """What is on the disk of one file, and what has been written to it since the last sync."""

    path: Path
    handle: int
    """Open until the file is forgotten: closing it would release the locks of this process."""
    on_disk: bytearray
    is_durable: bool
    """True if the name of the file is on the disk."""
    dirty: dict[int, list[bytes]] = field(default_factory=dict)
    """Sector -> what has been written there, oldest first."""

    def read(self, amount: int, offset: int) -> bytes:
        """Returns what the operating system shows of the file."""
        return os.pread(self.handle, amount, offset)

    def wrote(self, amount: int, offset: int) -> None:
        first, last = offset // SECTOR, (offset + amount - 1) // SECTOR
        found = self.read((last - first + 1) * SECTOR, first * SECTOR)
        for place, sector in enumerate(range(first, last + 1)):
            content = found[place * SECTOR : (place + 1) * SECTOR]
            self.dirty.setdefault(sector, []).append(content)

    def resized(self, size: int) -> None:
        self.dirty = {each: had for each, had in self.dirty.items() if each * SECTOR < size}

    def synced(self) -> None:
        size = os.fstat(self.handle).st_size
        _resize(self.on_disk, size)
        for sector, versions in self.dirty.items():
            _place(self.on_disk, sector, versions[-1])
        _resize(self.on_disk, size)
        self.dirty.clear()
        self.is_durable = True

    def sync_failed(self, chance: Random, is_kept: bool) -> None:
        """Some sectors reach the disk; the others are never written unless they change again."""
        part = chance.choice((0.0, 0.5, 0.9))
        for sector, versions in self.dirty.items():
            if chance.random() < part:
                _place(self.on_disk, sector, versions[-1])
            elif not is_kept:
                old = bytes(self.on_disk[sector * SECTOR : (sector + 1) * SECTOR])
                os.pwrite(self.handle, old.ljust(len(versions[-1]), b"\0"), sector * SECTOR)
        self.dirty.clear()

    def after_cut(self, chance: Random) -> bytes:
        """Returns what is on the disk after a power cut at this moment."""
        found = bytearray(self.on_disk)
        if chance.random() < 0.5:
            _resize(found, os.fstat(self.handle).st_size)
        part = chance.choice((0.0, 0.5, 0.9, 1.0))
        for sector, versions in self.dirty.items():
            if chance.random() < part:
                _place(found, sector, chance.choice(versions))
        return bytes(found)

    def change_bit(self, offset: int, bit: int) -> None:
        """Changes a bit on the disk; who reads the file sees it."""
        if offset < len(self.on_disk):
            self.on_disk[offset] ^= 1 << bit
        (found,) = self.read(1, offset)
        os.pwrite(self.handle, bytes((found ^ 1 << bit,)), offset)


class LosingFiles(apsw.VFS):
    """Counts the syncs from 0; those in `failing` fail."""

    def __init__(self, name: str, chance: Random) -> None:
        super().__init__(name, checksums.register())
        self.name = name
        self.chance = chance
        self.failing: set[int] = set()
        self.is_kept = True
        """True if the process can still read what a failed sync has not written."""
        self.syncs = 0
        self.failed = 0
        self.operations = 0
        self.cut_at = -1
        """The operation before which the power is cut."""
        self.cut_after_failure = -1
        """If not negative: the power is cut so many operations after the last sync that fails."""
        self.on_cut: Any = None
        self.is_off = False
        """True if nothing can be written any more, because the power was cut."""
        self.shadows: dict[Path, Shadow] = {}
        self.gone: dict[Path, Shadow] = {}
        """Deleted files whose deletion is not on the disk yet."""
        self._handles: list[int] = []

    def xOpen(self, name: Any, flags: list[int]) -> LosingFile:  # noqa: N802
        return LosingFile(self, name, flags)

    def xDelete(self, name: str, sync_folder: bool) -> None:  # noqa: N802
        self.count()
        super().xDelete(name, sync_folder)
        shadow = self.shadows.pop(Path(name), None)
        if shadow is not None and shadow.is_durable and not sync_folder:
            self.gone[Path(name)] = shadow

    def opened(self, path: Path) -> Shadow:
        if path not in self.shadows:
            handle = os.open(path, os.O_RDWR)
            self._handles.append(handle)
            content = os.pread(handle, os.fstat(handle).st_size, 0)
            self.shadows[path] = Shadow(path, handle, bytearray(content), bool(content))
        return self.shadows[path]

    def count(self) -> None:
        if self.operations == self.cut_at and self.on_cut is not None:
            self.on_cut()
        if self.is_off:
            raise apsw.exception_for(apsw.SQLITE_IOERR_WRITE)
        self.operations += 1

    def sync_fails(self) -> bool:
        self.syncs += 1
        return self.syncs - 1 in self.failing

    def sync_failed(self) -> None:
        self.failed += 1
        if self.cut_after_failure >= 0:
            self.cut_at = self.operations + self.cut_after_failure

    def after_cut(self) -> dict[str, bytes]:
        """Returns the files that are on the disk after a power cut at this moment."""
        found = {}
        for path, shadow in self.gone.items():
            if self.chance.random() < 0.5:
                found[path.name] = shadow.after_cut(self.chance)
        for path, shadow in self.shadows.items():
            if shadow.is_durable or self.chance.random() < 0.5:
                found[path.name] = shadow.after_cut(self.chance)
        return found

    def forget(self) -> None:
        """Takes all files as they are for what is on the disk; none of them may be in use."""
        self.shadows.clear()
        self.gone.clear()
        for handle in self._handles:
            with suppress(OSError):
                os.close(handle)
        self._handles.clear()

    def end(self) -> None:
        self.forget()
        self.unregister()


class LosingFile(apsw.VFSFile):
    def __init__(self, files: LosingFiles, name: Any, flags: list[int]) -> None:
        super().__init__(checksums.VFS, name, flags)
        self._files = files
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._shadow = None if path is None else files.opened(Path(path))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._files.count()
        super().xWrite(data, offset)
        if self._shadow is not None:
            self._shadow.wrote(len(data), offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._files.count()
        super().xTruncate(size)
        if self._shadow is not None:
            self._shadow.resized(size)

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        self._files.count()
        if self._shadow is None:
            return
        if self._files.sync_fails():
            self._files.sync_failed()
            self._shadow.sync_failed(self._files.chance, self._files.is_kept)
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        if not self._shadow.is_durable:  # SQLite syncs the folder too
            self._files.gone.clear()
        self._shadow.synced()


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def _place(content: bytearray, sector: int, data: bytes) -> None:
    start = sector * SECTOR
    if len(content) < start + len(data):
        _resize(content, start + len(data))
    content[start : start + len(data)] = data
