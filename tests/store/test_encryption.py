"""Encrypted backups: every change of the file and every other key is detected."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest

from qns.errors import StoreFailed
from qns.store import encryption
from qns.store.backup_key import BackupKey, read_key, write_new_key
from qns.store.encryption import decrypt, encrypt, is_encrypted

KEY = BackupKey(bytes(range(32)))
_CHUNK = 1_000
_HEADER = encryption._HEADER_BYTES
_SEALED = _CHUNK + encryption._TAG_BYTES


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encryption, "_CHUNK_BYTES", _CHUNK)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain"
    path.write_bytes(random.Random(1).randbytes(3 * _CHUNK + 17))
    return path


@pytest.fixture
def sealed(tmp_path: Path, plain: Path) -> Path:
    path = tmp_path / "sealed"
    encrypt(plain, path, KEY, lambda *_: None)
    return path


def opened(sealed: Path, key: BackupKey = KEY) -> bytes:
    """Returns the decrypted content."""
    target = sealed.with_name("opened")
    decrypt(sealed, target, key, lambda *_: None)
    return target.read_bytes()


@pytest.mark.parametrize("size", [0, 1, _CHUNK - 1, _CHUNK, _CHUNK + 1, 5 * _CHUNK])
def test_decrypting_returns_what_was_encrypted(tmp_path: Path, size: int) -> None:
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    content = random.Random(size).randbytes(size)
    plain.write_bytes(content)
    digest = encrypt(plain, sealed, KEY, lambda *_: None)
    assert opened(sealed) == content
    assert decrypt(sealed, None, KEY, lambda *_: None) == digest
    assert is_encrypted(sealed)
    assert not is_encrypted(plain)


def test_nothing_of_the_content_is_visible_and_no_two_files_are_equal(
    tmp_path: Path, plain: Path
) -> None:
    plain.write_bytes(b"MCLMSM73H17H501F" * 200)
    one, other = tmp_path / "one", tmp_path / "other"
    encrypt(plain, one, KEY, lambda *_: None)
    encrypt(plain, other, KEY, lambda *_: None)
    assert b"MCLMSM73" not in one.read_bytes()
    assert one.read_bytes()[_HEADER:] != other.read_bytes()[_HEADER:]


def test_every_flipped_bit_is_detected(sealed: Path) -> None:
    whole = sealed.read_bytes()
    places = {*range(_HEADER), *random.Random(2).sample(range(_HEADER, len(whole)), 200)}
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        sealed.write_bytes(changed)
        with pytest.raises(StoreFailed):
            opened(sealed)


def test_every_truncation_is_detected(sealed: Path) -> None:
    whole = sealed.read_bytes()
    ends = {*range(_HEADER + 2), *(_HEADER + n * _SEALED for n in range(4)), len(whole) - 1}
    for end in ends:
        sealed.write_bytes(whole[:end])
        with pytest.raises(StoreFailed):
            opened(sealed)


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 1, 3), (0, 0, 1, 2, 3), (0, 1, 2, 3, 3)])
def test_exchanged_missing_and_repeated_chunks_are_detected(
    sealed: Path, order: tuple[int, ...]
) -> None:
    whole = sealed.read_bytes()
    body = whole[_HEADER:]
    chunks = [body[at : at + _SEALED] for at in range(0, len(body), _SEALED)]
    assert len(chunks) == 4
    sealed.write_bytes(whole[:_HEADER] + b"".join(chunks[each] for each in order))
    with pytest.raises(StoreFailed, match="damaged"):
        opened(sealed)


def test_bytes_after_the_end_are_detected(sealed: Path) -> None:
    sealed.write_bytes(sealed.read_bytes() + b"x")
    with pytest.raises(StoreFailed, match="damaged"):
        opened(sealed)


def test_chunk_of_another_backup_with_the_same_key_is_detected(sealed: Path, plain: Path) -> None:
    other = sealed.with_name("other")
    encrypt(plain, other, KEY, lambda *_: None)
    sealed.write_bytes(sealed.read_bytes()[:-_SEALED] + other.read_bytes()[-_SEALED:])
    with pytest.raises(StoreFailed, match="damaged"):
        opened(sealed)


def test_wrong_key_is_named(sealed: Path) -> None:
    other = BackupKey(bytes(32))
    with pytest.raises(StoreFailed, match=f"key {KEY.id.hex()}, and the given one is") as caught:
        opened(sealed, other)
    assert other.id.hex() in caught.value.problem
    assert KEY.secret.hex() not in str(caught.value)


def test_file_that_is_no_encrypted_backup_is_named(plain: Path) -> None:
    with pytest.raises(StoreFailed, match="is no encrypted backup"):
        opened(plain)


def test_encrypted_and_decrypted_files_are_private(sealed: Path) -> None:
    before = os.umask(0)
    try:
        opened(sealed)
        encrypt(sealed, sealed.with_name("twice"), KEY, lambda *_: None)
    finally:
        os.umask(before)
    for name in ("opened", "twice"):
        assert stat.S_IMODE(sealed.with_name(name).stat().st_mode) == 0o600


# --- keys -----------------------------------------------------------------------------------------


def test_new_key_can_be_read_again_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    before = os.umask(0)
    try:
        made = write_new_key(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key(path) == made
    assert len(made.secret) == 32
    assert made.secret.hex() not in repr(made)


def test_key_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    write_new_key(path)
    before = path.read_text()
    with pytest.raises(StoreFailed, match="exists already"):
        write_new_key(path)
    assert path.read_text() == before


def test_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    write_new_key(path)
    path.chmod(0o640)
    with pytest.raises(StoreFailed, match="other users can read") as caught:
        read_key(path)
    assert caught.value.remedy == f"chmod 600 {path}"


@pytest.mark.parametrize("content", [b"", b"secret", b"\xff" * 100])
def test_file_that_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StoreFailed, match="is no backup key"):
        read_key(path)
    with pytest.raises(StoreFailed, match="No such file"):
        read_key(tmp_path / "none")
