"""Report: an archive with diagnostics of the running peer, without payloads and secrets."""

from __future__ import annotations

import asyncio
import os
import tarfile
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from time import time
from typing import Final

from qns.errors import StoreFailed, ValueRefused
from qns.runtime import diagnostics
from qns.runtime.admin.operation import Arguments, Context, Operation, Report, Result
from qns.runtime.admin.operations.backup import absolute_path
from qns.runtime.log_ring import RING
from qns.store.faults import from_os
from qns.store.sqlite import SqliteStore

_ZIP: Final = ".zip"
_TAR: Final = (".tar.gz", ".tgz")


async def _run(context: Context, arguments: Arguments, _: Report) -> Result:
    path = absolute_path(arguments["file"])
    if not path.name.endswith((_ZIP, *_TAR)):
        raise ValueRefused(
            "the name of a report ends with .zip or .tar.gz",
            place=str(path),
            remedy=f"write {path.name}.zip",
        )
    parts = {
        "README.txt": diagnostics.README.encode(),
        "platform.json": diagnostics.as_json(diagnostics.of_platform()),
        "configuration.json": diagnostics.as_json(
            diagnostics.of_configuration(context.configuration)
        ),
        "health.json": diagnostics.as_json(diagnostics.hidden(context.health.state())),
        "status.json": diagnostics.as_json(diagnostics.of_status(context.driver.status)),
        "metrics.txt": context.metrics.page()[0],
        "log.jsonl": "".join(f"{line}\n" for line in RING.lines()).encode(),
    }
    store = context.driver.gateway.store
    assert isinstance(store, SqliteStore)
    try:
        facts = await asyncio.to_thread(diagnostics.of_store, store, context.configuration.store)
    except StoreFailed as error:  # a report is most useful then
        facts = {"problem": str(error)}
    parts["store.json"] = diagnostics.as_json(facts)
    size = await asyncio.to_thread(_write, path, parts)
    return {"file": str(path), "bytes": size, "parts": sorted(parts)}


def _write(path: Path, parts: Mapping[str, bytes]) -> int:
    """Writes the archive to a new file that only this user can read; returns its size."""
    archive = _zipped(parts) if path.name.endswith(_ZIP) else _tarred(parts)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(archive)
    except FileExistsError:
        raise StoreFailed("exists already", place=str(path), remedy="give another name") from None
    except OSError as error:
        raise from_os(error, str(path)) from None
    return len(archive)


def _zipped(parts: Mapping[str, bytes]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _tarred(parts: Mapping[str, bytes]) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), int(time()), 0o600
            archive.addfile(entry, BytesIO(content))
    return buffer.getvalue()


REPORT: Final = Operation("report", _run, {"file": str})
