"""Files: writes and renames files so that a power failure leaves the old or the new content."""

from __future__ import annotations

import os
from pathlib import Path

from qns.store.faults import from_os


def write_durably(path: Path, content: bytes) -> None:
    """Replaces the content of a file; after a crash the file has the new content."""
    write_atomically(path, content)
    sync_file(path.parent)


def write_atomically(path: Path, content: bytes) -> None:
    """Replaces the content of a file; after a crash the file has the old or the new content."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise from_os(error, str(path)) from None


def create_private(path: Path) -> None:
    """Creates an empty file that only this user can read and write; replaces an older file."""
    try:
        path.unlink(missing_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise from_os(error, str(path)) from None


def rename_durably(old: Path, new: Path) -> None:
    """Renames a file in one step, also across a crash; replaces an existing file."""
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
