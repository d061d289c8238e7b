"""Outputs: writes a named file completely or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from qns.errors import QnsError


def save(name: str, data: bytes) -> None:
    """Replaces a file in one step, because it may be the source of `data`."""
    try:
        target = Path(os.path.realpath(name))
        if target.exists() and not target.is_file():  # a device cannot be replaced
            target.write_bytes(data)
        else:
            _replace(target, data)
    except (OSError, ValueError) as problem:
        reason = (isinstance(problem, OSError) and problem.strerror) or str(problem)
        raise QnsError(f"cannot be written: {reason}", place=name) from None


def _replace(target: Path, data: bytes) -> None:
    beside = target.with_name(f"{target.name}.new")
    try:
        beside.write_bytes(data)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
