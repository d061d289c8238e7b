"""Atomic folder: files are complete or absent, and foreign folders are refused."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from qns.errors import NotAllowed, StoreFailed, StoreFull
from qns.report.atomic_folder import holds_request, replace_folder, storage_errors, write_file


def test_failed_write_keeps_the_old_file_and_leaves_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "figures" / "a.svg"
    write_file(file, b"old")

    def fails(_: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr("qns.report.atomic_folder.os.fsync", fails)
    with pytest.raises(OSError, match="broken"):
        write_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("has_old", [False, True])
def test_new_folder_replaces_an_old_one_and_leaves_nothing_beside_it(
    tmp_path: Path, has_old: bool
) -> None:
    folder, new = tmp_path / "out", tmp_path / ".out-1"
    if has_old:
        write_file(folder / "old", b"")
    write_file(new / "new", b"")
    replace_folder(folder, new)
    assert [each.name for each in folder.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [folder]


def test_old_folder_keeps_its_name_if_the_new_one_cannot_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, new = tmp_path / "out", tmp_path / ".out-1"
    write_file(folder / "old", b"")
    write_file(new / "new", b"")
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path == new:
            raise OSError(errno.EIO, "broken")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="broken"):
        replace_folder(folder, new)
    assert [each.name for each in folder.iterdir()] == ["old"]


def test_folder_of_the_same_request_is_accepted(tmp_path: Path) -> None:
    assert not holds_request(tmp_path / "missing", "run.json", b"{}", "run")
    assert not holds_request(tmp_path, "run.json", b"{}", "run")
    write_file(tmp_path / "run.json", b"{}")
    write_file(tmp_path / "report.html", b"")
    assert holds_request(tmp_path, "run.json", b"{}", "run")


def test_folder_of_another_request_is_refused(tmp_path: Path) -> None:
    write_file(tmp_path / "run.json", b"{}")
    with pytest.raises(NotAllowed, match=r"holds another run.*run.json describes the request"):
        holds_request(tmp_path, "run.json", b"[]", "run")


def test_folder_with_foreign_files_is_refused_with_some_of_their_names(tmp_path: Path) -> None:
    for name in ("d", "c", "b", "a", ".lock"):
        write_file(tmp_path / name, b"")
    with pytest.raises(NotAllowed, match="other files: a, b, c…"):
        holds_request(tmp_path, "run.json", b"{}", "run", {".lock"})


def test_full_disk_is_reported_as_such_only_with_a_remedy() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(StoreFull, match=r"no room left.*free some"),
        storage_errors(Path("x"), "free some"),
    ):
        raise full
    with pytest.raises(StoreFailed, match="cannot be written"), storage_errors(Path("x")):
        raise full
