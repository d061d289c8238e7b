"""Kept inputs: what earlier runs of the fuzzer found, one file for each target.

A line is one input in base64. Inputs that once crashed a decoder stay for ever.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "corpus"


def kept(target: str) -> list[bytes]:
    """Returns the kept inputs of a target."""
    path = _FOLDER / f"{target}.txt"
    return [b64decode(line) for line in path.read_text().split()] if path.exists() else []


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Adds inputs to those of a target."""
    lines = sorted({*map(b64encode, kept(target)), *map(b64encode, inputs)}, key=len)
    (_FOLDER / f"{target}.txt").write_bytes(b"".join(line + b"\n" for line in lines))
