"""Backups: the content of a backup file, and restoring a store from one, encrypted or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from qns.errors import StoreFailed
from qns.peer.tables import DOCUMENT, IDENTITY
from qns.store.backup_key import BackupKey
from qns.store.connection import refuse_if_in_use
from qns.store.copies import OnCopied, check_file, refuse_existing, restore
from qns.store.encryption import decrypt, is_encrypted
from qns.store.reading import StoreReader

Check = Callable[["BackupContent"], None]
"""Raises an error if a backup must not be restored here."""


class BackupContent(NamedTuple):
    organisation: str
    epoch: int
    document_version: int
    document: bytes
    """The federation document that was in force."""


def content_of(path: Path) -> BackupContent:
    """Reads what an unencrypted backup is of; raises StoreFailed if it is damaged."""
    check_file(path)
    with StoreReader(path) as reader:
        identity = next(reader.rows(IDENTITY), None)
        document = max(reader.rows(DOCUMENT), key=lambda row: row.version, default=None)
    if identity is None or document is None:
        raise StoreFailed("is a store that no peer has used", place=str(path))
    return BackupContent(identity.organisation, identity.epoch, document.version, document.xml)


def restore_backup(
    backup: Path,
    store: Path,
    check: Check,
    *,
    key: BackupKey | None,
    overwrite: bool,
    on_copied: OnCopied = lambda *_: None,
) -> BackupContent:
    """Replaces a store, which no process may use, by a backup that `check` accepts.

    The whole backup is verified before anything is replaced. The lineage file stays as it is.
    """
    if not overwrite:
        refuse_existing(store)
    elif store.exists():
        refuse_if_in_use(store)
    if not backup.is_file():
        raise StoreFailed("there is no such file", place=str(backup), remedy="check the path")
    if key is None and is_encrypted(backup):
        raise StoreFailed("is encrypted", place=str(backup), remedy="give its key with --key")
    plain = backup
    try:
        if key is not None:
            plain = store.with_name(f"{store.name}.decrypted")
            decrypt(backup, plain, key, on_copied)
        content = content_of(plain)
        check(content)
        restore(plain, store, overwrite=overwrite)
    except StoreFailed as error:
        if plain != backup:  # the operator does not know the temporary file
            error.place = error.place.replace(str(plain), str(backup))
        raise
    finally:
        if plain != backup:
            plain.unlink(missing_ok=True)
    return content
