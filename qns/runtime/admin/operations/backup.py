"""Backup: copies the store of the running peer to a file, verified and, with a key, encrypted.

The copy gets its final name only after the peer has changed its mark, because until then a restore
of the copy would not be detected (`qns.peer.lineage`).
"""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path
from time import perf_counter
from typing import Final

from qns.errors import Busy, StoreFailed, StoreFull, ValueRefused
from qns.runtime.admin.background import WorkProgress, in_background
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result
from qns.runtime.health import free_bytes
from qns.store.backup_key import BackupKey, read_key
from qns.store.backups import BackupContent, content_of
from qns.store.copies import refuse_existing
from qns.store.encryption import decrypt, encrypt
from qns.store.files import rename_durably
from qns.store.sqlite import LOW_WATER_BYTES, SqliteStore

_UNFINISHED: Final = ".unfinished"


async def _run(context: Context, arguments: Arguments, report: Report) -> Result:
    started = perf_counter()
    target = absolute_path(arguments["file"])
    key = read_key(absolute_path(arguments["key"])) if "key" in arguments else None
    if context.copying.locked():
        raise Busy("another backup is under way", remedy="try again when it is done")
    async with context.copying:
        refuse_existing(target)
        store = context.configuration.store.absolute()
        # The copy of an encrypted backup stays beside the store, which is as well protected.
        copy = (store if key else target).with_name((store if key else target).name + _UNFINISHED)
        for folder in {copy.parent, target.parent}:
            _require_room(store, folder)
        try:
            content = await in_background(lambda progress: _copy(context, copy, progress), report)
            nonce = secrets.token_hex(8)
            await context.driver.between_turns(lambda gateway: gateway.renew_mark(nonce))
            size = await in_background(
                lambda progress: _finish(copy, target, key, progress), report
            )
        finally:
            # Deleting a large file takes a tenth of a second.
            await asyncio.to_thread(copy.unlink, missing_ok=True)
    return {
        "file": str(target),
        "bytes": size,
        "organisation": content.organisation,
        "epoch": content.epoch,
        "document": content.document_version,
        "encrypted": key is not None,
        "seconds": round(perf_counter() - started, 3),
    }


def absolute_path(text: str) -> Path:
    path = Path(text)
    if not path.is_absolute() or "\0" in text:
        raise ValueRefused("the path of the file is not absolute", place=text)
    return path


def _copy(context: Context, copy: Path, progress: WorkProgress) -> BackupContent:
    store = context.driver.gateway.store
    assert isinstance(store, SqliteStore)
    copy.unlink(missing_ok=True)  # an earlier backup was interrupted
    progress.begin("copying")
    store.backup(copy, progress)
    progress.begin("verifying")
    return content_of(copy)


def _finish(copy: Path, target: Path, key: BackupKey | None, progress: WorkProgress) -> int:
    """Gives the copy its final name and content; returns its size."""
    size = copy.stat().st_size
    if key is not None:
        partial = target.with_name(target.name + ".partial")
        try:
            progress.begin("encrypting")
            digest = encrypt(copy, partial, key, progress)
            progress.begin("verifying")
            if decrypt(partial, None, key, progress) != digest:
                raise StoreFailed("the encrypted copy is not what was written", place=str(target))
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        copy, size = partial, partial.stat().st_size
    refuse_existing(target)
    rename_durably(copy, target)
    return size


def _require_room(store: Path, folder: Path) -> None:
    """Raises StoreFull if a copy would leave less than the reserve of the peer's own disk."""
    log = store.with_name(f"{store.name}-wal")
    needed = sum(os.stat(each).st_size for each in (store, log) if each.exists())
    free = free_bytes(folder / "any")
    if free is not None and free < needed + LOW_WATER_BYTES:
        raise StoreFull(
            f"the copy needs up to {needed:,} bytes, and {free:,} are free",
            place=str(folder),
            remedy=f"free some space, so that {LOW_WATER_BYTES:,} bytes are left",
        )


BACKUP: Final = Operation("backup", _run, {"file": str}, {"key": str})
