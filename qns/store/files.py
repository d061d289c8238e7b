"""Files that are there after a power cut, or are there as they were before."""

from __future__ import annotations

import os
from pathlib import Path

from qns.store.faults import from_os


def write_durably(path: Path, content: bytes) -> None:
    """The file has this content, or still the old one if anything stops us on the way."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise from_os(error, str(path)) from None
    rename_durably(new, path)


def rename_durably(old: Path, new: Path) -> None:
    """One step, whatever happens; a file that was there goes."""
    try:
        old.replace(new)
        _sync(new.parent)
    except OSError as error:
        raise from_os(error, str(new)) from None


def sync_file(path: Path) -> None:
    try:
        _sync(path)
    except OSError as error:
        raise from_os(error, str(path)) from None


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
