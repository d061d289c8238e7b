"""Backup key: the operator's key for encrypted backups, in a small file of text."""

from __future__ import annotations

import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qns.errors import StoreFailed
from qns.store.faults import from_os

_BYTES: Final = 32
_FIRST_LINE: Final = "QNS backup key 1: without this file, encrypted backups cannot be read"
_TEXT: Final = re.compile(rf"{re.escape(_FIRST_LINE)}\n([0-9a-f]{{{2 * _BYTES}}})\n")
_ID_BYTES: Final = 8
_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True, repr=False)
class BackupKey:
    secret: bytes

    @property
    def id(self) -> bytes:
        """Identifies the key without revealing it."""
        return self.derived(b"id", salt=None, length=_ID_BYTES)

    def derived(self, purpose: bytes, *, salt: bytes | None, length: int) -> bytes:
        """Derives a key for one purpose."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return HKDF(SHA256(), length, salt, b"QNS backup 1 " + purpose).derive(self.secret)


def write_new_key(path: Path) -> BackupKey:
    """Draws a key and writes it to a new file that only this user can read."""
    key = BackupKey(secrets.token_bytes(_BYTES))
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{_FIRST_LINE}\n{key.secret.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise StoreFailed(
            "exists already", place=str(path), remedy="give another name; a key is never replaced"
        ) from None
    except OSError as error:
        raise from_os(error, str(path)) from None
    return key


def read_key(path: Path) -> BackupKey:
    """Raises StoreFailed if the file is no key, or if other users can read it."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(1_000)
    except OSError as error:
        raise from_os(error, str(path)) from None
    if stat.S_IMODE(mode) & _OTHERS:
        raise StoreFailed(
            "other users can read or write this key", place=str(path), remedy=f"chmod 600 {path}"
        )
    found = _TEXT.fullmatch(content.decode("ascii", "replace"))
    if found is None:
        raise StoreFailed(
            "is no backup key", place=str(path), remedy="make one with qns peer backup-key FILE"
        )
    return BackupKey(bytes.fromhex(found[1]))
