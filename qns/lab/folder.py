"""Folder: where a report goes, whole or not at all.

All files are written into a new folder beside it, which takes its name in the end. Only what holds
nothing, or an earlier report on the same question, is replaced.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from qns.errors import NotAllowed, StoreFailed

MARK: Final = "lab.json"
"""What was asked: says that a folder is a report of this laboratory."""

Save = Callable[[Mapping[str, bytes]], None]
"""Name in the folder -> content."""


@contextmanager
def new_folder(path: Path, asked: Mapping[str, object]) -> Iterator[Save]:
    """Refused at once if it would overwrite something else, or cannot be written."""
    description = f"{json.dumps(asked, ensure_ascii=False, sort_keys=True)}\n".encode()
    with _told_with(path):
        path = Path(os.path.realpath(path))
        _check(path, description)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = Path(mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        with _told_with(path):
            new.chmod(0o755)
            _write(new, {MARK: description})

        def save(files: Mapping[str, bytes]) -> None:
            with _told_with(path):
                _write(new, files)

        yield save
        with _told_with(path):
            _check(path, description)
            _replace(path, new)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _check(path: Path, description: bytes) -> None:
    if not path.exists():
        return
    held = sorted(each.name for each in path.iterdir())
    if MARK in held:
        if (path / MARK).read_bytes() != description:
            raise NotAllowed(
                "the folder holds another report",
                place=str(path),
                remedy=f"choose another folder, or remove this one ({MARK} tells what was asked)",
            )
    elif held:
        more = "…" if len(held) > 3 else ""
        raise NotAllowed(
            f"the folder holds other files: {', '.join(held[:3])}{more}",
            place=str(path),
            remedy="choose an empty folder, or a new one",
        )


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        with file.open("wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())


def _replace(path: Path, new: Path) -> None:
    """The old one stays under another name until the new one is there."""
    if not path.exists():
        new.rename(path)
        return
    old = new.with_name(f"{new.name}-old")
    path.rename(old)
    try:
        new.rename(path)
    except OSError:
        with suppress(OSError):
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _told_with(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise StoreFailed(
            f"cannot be written: {problem.strerror or problem}",
            place=str(path),
            remedy="choose another folder",
        ) from None
