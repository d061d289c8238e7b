"""Atomic folder: results of one request, each file or folder written completely or not at all.

A file or a folder is written under a temporary name, forced to the disk and renamed. A folder of
results holds a file that describes the request; a folder with anything else in it is refused.

`qns/store/files.py` writes the files of a peer in the same way. The code is not shared, because
reports are independent of the store.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from qns.errors import NotAllowed, StoreFailed, StoreFull

TEMPORARY: Final = ".new"
"""Suffix of a file that is not complete yet."""
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_NAMED: Final = 3


@contextmanager
def storage_errors(path: Path, when_full: str = "") -> Iterator[None]:
    """Translates errors of the file system into errors that name the folder.

    `when_full` is the remedy for a full disk. Without one it is reported like any other failure.
    """
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        if when_full and problem.errno in _NO_ROOM:
            raise StoreFull(
                f"no room left on the disk ({reason})", place=str(path), remedy=when_full
            ) from None
        raise StoreFailed(
            f"cannot be written: {reason}", place=str(path), remedy="choose another folder"
        ) from None


def holds_request(
    path: Path, name: str, description: bytes, kind: str, ignored: Collection[str] = ()
) -> bool:
    """True if the folder holds results of this request, False if it is empty or does not exist.

    `name` is the file with the description of the request. Raises NotAllowed if the folder holds
    another request (`kind` says of what), or files that are neither its own nor `ignored`.
    """
    if not path.exists():
        return False
    if (path / name).exists():
        if (path / name).read_bytes() == description:
            return True
        raise NotAllowed(
            f"the folder holds another {kind}",
            place=str(path),
            remedy=f"choose another folder, or remove this one ({name} describes the request)",
        )
    foreign = sorted(each.name for each in path.iterdir() if each.name not in ignored)
    if foreign:
        more = "…" if len(foreign) > _MOST_NAMED else ""
        raise NotAllowed(
            f"the folder holds other files: {', '.join(foreign[:_MOST_NAMED])}{more}",
            place=str(path),
            remedy="choose an empty folder, or a new one",
        )
    return False


def write_file(file: Path, data: bytes) -> None:
    """Replaces the file in one step; makes its folder if that is missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(file.name + TEMPORARY)
    try:
        with temporary.open("wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def replace_folder(folder: Path, new: Path) -> None:
    """Renames the new folder, which is complete. An old one keeps another name until then."""
    sync_folder(new)
    if folder.exists():
        old = new.with_name(f"{new.name}-old")
        folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            with suppress(OSError):
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    else:
        new.rename(folder)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Forces the names in the folder to the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
