"""The lineage file is text, is replaced atomically, and is rejected if it is incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import StoreFailed, ValueRefused
from qns.peer.ports import Lineage, Mark
from qns.store.lineage import FileLineage, MemoryLineage, default_path

MARKS = (Mark(7, "0a1b2c", 41), Mark(8, "ffee00", 42))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lineage"


@pytest.fixture(params=["file", "memory"])
def lineage(request: pytest.FixtureRequest, path: Path) -> Lineage:
    return FileLineage(path) if request.param == "file" else MemoryLineage()


def test_new_lineage_has_no_marks(lineage: Lineage) -> None:
    assert lineage.read() == ()


@pytest.mark.parametrize("marks", [(), MARKS[:1], MARKS])
def test_marks_are_read_back_as_written(lineage: Lineage, marks: tuple[Mark, ...]) -> None:
    lineage.write((Mark(1, "before"),))
    lineage.write(marks)
    assert lineage.read() == marks


def test_file_is_readable_text_and_no_other_file_remains(path: Path) -> None:
    FileLineage(path).write(MARKS)
    assert path.read_text() == (
        "QNS lineage 1: keep this file, and keep it out of backups\n"
        "epoch 7 nonce 0a1b2c turns 41\n"
        "epoch 8 nonce ffee00 turns 42\n"
        "end\n"
    )
    assert list(path.parent.iterdir()) == [path]


def test_truncated_file_is_rejected(path: Path) -> None:
    FileLineage(path).write(MARKS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreFailed, match="the lineage cannot be read") as caught:
            FileLineage(path).read()
        assert "delete the file" in caught.value.remedy


@given(content=st.binary(max_size=100))
def test_random_file_content_is_read_exactly_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "lineage"
    start = b"QNS lineage 1: keep this file, and keep it out of backups\n"
    for each in (content, start + content + b"end\n", start + content + b"\nend\n"):
        path.write_bytes(each)
        try:
            marks = FileLineage(path).read()
        except StoreFailed:
            continue
        FileLineage(path).write(marks)
        assert path.read_bytes() == each


def test_interrupted_write_leaves_the_old_marks(path: Path) -> None:
    FileLineage(path).write(MARKS)
    path.with_name("lineage.new").write_bytes(b"QNS lineage 1: keep th")
    assert FileLineage(path).read() == MARKS
    FileLineage(path).write(MARKS[:1])
    assert FileLineage(path).read() == MARKS[:1]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("nonce", ["", "two words", "line\nbreak", "ü", "x" * 201])
def test_nonce_that_cannot_be_read_back_is_rejected(path: Path, nonce: str) -> None:
    FileLineage(path).write(MARKS)
    with pytest.raises(ValueRefused, match=r"the nonce .* cannot be written"):
        FileLineage(path).write((Mark(1, nonce),))
    assert FileLineage(path).read() == MARKS


def test_error_names_a_file_that_cannot_be_read_or_written(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreFailed, match=f"{path}: ") as caught:
        FileLineage(path).read()
    assert caught.value.remedy
    with pytest.raises(StoreFailed, match=f"{path}: "):
        FileLineage(path).write(MARKS)
    FileLineage(path / "new" / "lineage").write(MARKS)  # its folder is made
    assert FileLineage(path / "new" / "lineage").read() == MARKS


def test_marks_of_a_file_without_numbers_of_turns_have_zero_turns(path: Path) -> None:
    path.write_text(
        "QNS lineage 1: keep this file, and keep it out of backups\nepoch 7 nonce a\nend\n"
    )
    assert FileLineage(path).read() == (Mark(7, "a", 0),)


def test_number_of_turns_rises_only_for_the_mark_with_the_same_nonce(lineage: Lineage) -> None:
    lineage.write(MARKS)
    lineage.advance(Mark(9, "ffee00", 50))
    lineage.advance(Mark(8, "ffee00", 49))
    lineage.advance(Mark(8, "unknown", 99))
    assert lineage.read() == (MARKS[0], Mark(8, "ffee00", 50))


@pytest.fixture
def two_files(tmp_path: Path) -> tuple[Path, Path]:
    """Returns the path of the file outside and of the one beside the store."""
    return tmp_path / "state" / "qns" / "outside", tmp_path / "beside"


def test_file_outside_decides_although_the_one_beside_the_store_was_put_back(
    two_files: tuple[Path, Path],
) -> None:
    FileLineage(*two_files).write(MARKS[:1])
    old = two_files[1].read_bytes()
    FileLineage(*two_files).write(MARKS[1:])
    two_files[1].write_bytes(old)
    assert FileLineage(*two_files).read() == MARKS[1:]


def test_file_beside_the_store_counts_if_the_one_outside_is_missing(
    two_files: tuple[Path, Path],
) -> None:
    FileLineage(*two_files).write(MARKS)
    two_files[0].unlink()
    lineage = FileLineage(*two_files)
    assert lineage.exists
    assert lineage.read() == MARKS
    lineage.advance(Mark(8, "ffee00", 60))
    assert lineage.read() == (MARKS[0], Mark(8, "ffee00", 60))
    lineage.write(MARKS[1:])
    assert FileLineage(two_files[0]).read() == MARKS[1:]


def test_lineage_is_only_beside_the_store_if_the_folder_outside_cannot_be_made(
    tmp_path: Path,
) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    lineage = FileLineage(tmp_path / "state" / "qns" / "outside", tmp_path / "beside")
    lineage.write(MARKS)
    assert lineage.read() == FileLineage(tmp_path / "beside").read() == MARKS


def test_lineage_without_a_file_beside_the_store_reports_that_its_folder_cannot_be_made(
    tmp_path: Path,
) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    with pytest.raises(StoreFailed):
        FileLineage(tmp_path / "state" / "outside").write(MARKS)


def test_default_place_differs_for_two_stores_with_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one, other = (default_path(tmp_path / name / "INPS.db") for name in ("one", "other"))
    assert one != other
    assert one.parent == other.parent == tmp_path / "state" / "qns"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path(tmp_path / "INPS.db").parent == tmp_path / ".local" / "state" / "qns"
