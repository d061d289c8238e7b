"""Tests of the operation backup at a peer in this process: cancelling, and one at a time."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from qns.errors import StoreFailed
from qns.iil.requests import Published
from qns.peer.gateway import Gateway
from qns.runtime.admin.operations import backup as operation
from qns.runtime.admin.protocol import write_request
from qns.store.copies import OnCopied
from qns.store.sqlite import SqliteStore
from tests.runtime.admin.stage import ask, running_peer
from tests.runtime.peers import change


def files(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir() if each.name.startswith("copy")}


class HeldCopy:
    """Makes backups wait inside the copy until they are released or cancelled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()
        back_up = SqliteStore.backup

        def held(store: SqliteStore, path: Path, on_copied: OnCopied) -> None:
            self.begun.set()
            while not self.released.wait(0.01):
                on_copied(1, 2)
            back_up(store, path, on_copied)

        monkeypatch.setattr(SqliteStore, "backup", held)


def test_backup_ends_and_leaves_nothing_when_the_operator_disconnects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldCopy(monkeypatch)

    async def story() -> None:
        async with running_peer(tmp_path) as running:
            _, writer = await asyncio.open_unix_connection(str(running.admin.path))
            writer.write(write_request("backup", {"file": str(tmp_path / "copy")}))
            await asyncio.to_thread(held.begun.wait)
            writer.close()
            while running.admin.context.copying.locked():
                await asyncio.sleep(0.01)
            held.released.set()
            (line,) = await ask(running, "backup", file=str(tmp_path / "copy"))
            assert line["result"]["organisation"] == "INPS"

    asyncio.run(story())
    assert files(tmp_path) == {"copy"}


def test_second_backup_at_the_same_time_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldCopy(monkeypatch)

    async def story() -> None:
        async with running_peer(tmp_path) as running:
            first = asyncio.create_task(ask(running, "backup", file=str(tmp_path / "copy1")))
            await asyncio.to_thread(held.begun.wait)
            (line,) = await ask(running, "backup", file=str(tmp_path / "copy2"))
            assert line["error"]["problem"] == "another backup is under way"
            published = await running.driver.submit(change("e1"))
            assert isinstance(published, Published)  # the peer works on
            held.released.set()
            *progress, last = await first
            assert "result" in last
            assert all(each["progress"]["stage"] == "copying" for each in progress)

    asyncio.run(story())
    assert files(tmp_path) == {"copy1"}


def test_backup_gets_no_name_if_the_mark_cannot_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise StoreFailed("the disk failed")

    monkeypatch.setattr(Gateway, "renew_mark", fail)

    async def story() -> None:
        async with running_peer(tmp_path) as running:
            (line,) = await ask(running, "backup", file=str(tmp_path / "copy"))
            assert line["error"]["problem"] == "the disk failed"

    asyncio.run(story())
    assert files(tmp_path) == set()


def test_backup_that_would_fill_the_disk_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "free_bytes", lambda _: operation.LOW_WATER_BYTES + 10)

    async def story() -> None:
        async with running_peer(tmp_path) as running:
            (line,) = await ask(running, "backup", file=str(tmp_path / "copy"))
            assert "are free" in line["error"]["problem"]
            (line,) = await ask(running, "backup", file="copy")
            assert "not absolute" in line["error"]["problem"]

    asyncio.run(story())
    assert files(tmp_path) == set()
