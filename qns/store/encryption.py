"""Encryption: encrypts a backup into a file that shows every change, and decrypts it.

The file is a header and chunks. The header has a name, the identity of the key and a random salt;
HKDF derives the file's own key from the operator's key and the salt. Each chunk is encrypted with
AES-256-GCM. Its nonce is its place and whether it is the last, and the header is authenticated with
it, so that chunks that are changed, exchanged, repeated or missing are detected (the construction
STREAM of Hoang, Reyhanitabar, Rogaway and Vizár).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import BinaryIO, Final

from qns.errors import StoreFailed
from qns.store.backup_key import BackupKey
from qns.store.copies import OnCopied
from qns.store.faults import from_os
from qns.store.files import create_private

_NAME: Final = b"QNS encrypted backup 1\n\0"
_KEY_ID_BYTES: Final = 8
_SALT_BYTES: Final = 32
_HEADER_BYTES: Final = len(_NAME) + _KEY_ID_BYTES + _SALT_BYTES
_CHUNK_BYTES: Final = 2**20
_TAG_BYTES: Final = 16
_COUNTER_BYTES: Final = 11


def is_encrypted(path: Path) -> bool:
    """True if the file begins as an encrypted backup."""
    try:
        with path.open("rb") as file:
            return file.read(len(_NAME)) == _NAME
    except OSError as error:
        raise from_os(error, str(path)) from None


def encrypt(source: Path, target: Path, key: BackupKey, on_copied: OnCopied) -> bytes:
    """Writes the encrypted content of `source` to `target` and forces it to the disk.

    Returns the SHA-256 of the content, so that the caller can compare what `decrypt` returns.
    """
    create_private(target)
    header = _NAME + key.id + secrets.token_bytes(_SALT_BYTES)
    cipher = _Cipher.of(key, header)
    digest = sha256()
    total = source.stat().st_size
    try:
        with source.open("rb") as plain, target.open("wb") as file:
            file.write(header)
            done = 0
            for number, chunk, is_last in _chunks(plain, _CHUNK_BYTES):
                digest.update(chunk)
                file.write(cipher.encrypt(number, chunk, is_last))
                done += len(chunk)
                on_copied(done, total)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise from_os(error, str(target)) from None
    return digest.digest()


def decrypt(source: Path, target: Path | None, key: BackupKey, on_copied: OnCopied) -> bytes:
    """Writes the decrypted content of `source` to `target`, or only verifies it if that is None.

    Returns the SHA-256 of the content. Raises StoreFailed if the key is another one or if the file
    is incomplete or was changed; `target` must not be used then.
    """
    if target is not None:
        create_private(target)
    try:
        total = source.stat().st_size
        with source.open("rb") as file, open(target or os.devnull, "wb") as plain:
            digest = _decrypt(file, plain, key, str(source), total, on_copied)
            if target is not None:
                plain.flush()
                os.fsync(plain.fileno())
    except OSError as error:
        raise from_os(error, str(source)) from None
    return digest


def _decrypt(
    file: BinaryIO, plain: BinaryIO, key: BackupKey, place: str, total: int, on_copied: OnCopied
) -> bytes:
    header = file.read(_HEADER_BYTES)
    if not header.startswith(_NAME):
        raise StoreFailed("is no encrypted backup", place=place, remedy="leave out --key")
    if len(header) < _HEADER_BYTES:
        raise _damaged("it ends in the header", place)
    key_id = header[len(_NAME) : len(_NAME) + _KEY_ID_BYTES]
    if not compare_digest(key_id, key.id):
        raise StoreFailed(
            f"was encrypted with the key {key_id.hex()}, and the given one is {key.id.hex()}",
            place=place,
            remedy="give the key file with which the backup was made",
        )
    cipher = _Cipher.of(key, header)
    digest = sha256()
    done = _HEADER_BYTES
    for number, chunk, is_last in _chunks(file, _CHUNK_BYTES + _TAG_BYTES):
        content = cipher.decrypt(number, chunk, is_last)
        if content is None:
            raise _damaged(f"its part {number + 1} was changed, or the end is missing", place)
        plain.write(content)
        digest.update(content)
        done += len(chunk)
        on_copied(done, total)
    return digest.digest()


@dataclass(frozen=True, slots=True)
class _Cipher:
    """Encrypts and decrypts the chunks of one file."""

    _key: bytes
    _header: bytes

    @classmethod
    def of(cls, key: BackupKey, header: bytes) -> _Cipher:
        return cls(key.derived(b"file", salt=header[-_SALT_BYTES:], length=32), header)

    def encrypt(self, number: int, chunk: bytes, is_last: bool) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._key).encrypt(_nonce(number, is_last), chunk, self._header)

    def decrypt(self, number: int, chunk: bytes, is_last: bool) -> bytes | None:
        """Returns None if the chunk is not the one that was encrypted at this place."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._key).decrypt(_nonce(number, is_last), chunk, self._header)
        except InvalidTag:
            return None


def _nonce(number: int, is_last: bool) -> bytes:
    return number.to_bytes(_COUNTER_BYTES, "big") + bytes([is_last])


def _chunks(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yields the number and content of each chunk, and whether it is the last; at least one."""
    number, chunk = 0, file.read(size)
    while True:
        following = file.read(size)
        yield number, chunk, not following
        if not following:
            return
        number, chunk = number + 1, following


def _damaged(problem: str, place: str) -> StoreFailed:
    return StoreFailed(
        f"the encrypted backup is damaged: {problem}",
        place=place,
        remedy="copy it again from where it was kept, or use another backup",
    )
