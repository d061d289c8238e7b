"""Files are forced to the disk before they are renamed, and their folder afterwards."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from qns.peer.ports import Mark
from qns.store.files import write_durably
from qns.store.lineage import FileLineage
from qns.store.sqlite import SqliteStore


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens to files, in order: a file or folder is forced to the disk, or renamed."""
    noted: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def note_fsync(handle: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        noted.append("folder synced" if is_folder else f"{os.fstat(handle).st_size} bytes synced")
        fsync(handle)

    def note_replace(old: Path, new: Path) -> Path:
        noted.append(f"{old.name} renamed to {new.name}")
        return replace(old, new)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    return noted


def test_file_is_written_whole_synced_renamed_and_its_folder_synced(
    tmp_path: Path, steps: list[str]
) -> None:
    write_durably(tmp_path / "file", b"content")
    assert steps == ["7 bytes synced", "file.new renamed to file", "folder synced"]


def test_marks_are_written_durably(tmp_path: Path, steps: list[str]) -> None:
    FileLineage(tmp_path / "lineage").write((Mark(1, "a"),))
    size = (tmp_path / "lineage").stat().st_size
    assert steps == [f"{size} bytes synced", "lineage.new renamed to lineage", "folder synced"]


def test_backup_is_synced_before_it_gets_its_name(tmp_path: Path, steps: list[str]) -> None:
    with SqliteStore(tmp_path / "store", low_water_bytes=0) as store:
        steps.clear()
        store.backup(tmp_path / "backup")
    size = (tmp_path / "backup").stat().st_size
    renamed = steps.index("backup.partial renamed to backup")
    assert f"{size} bytes synced" in steps[:renamed]
    assert "folder synced" in steps[renamed:]
