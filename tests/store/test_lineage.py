"""The lineage file is text, is replaced atomically, and is rejected if it is incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import StoreFailed, ValueRefused
from qns.peer.ports import Lineage, Mark
from qns.store.lineage import FileLineage, MemoryLineage

MARKS = (Mark(7, "0a1b2c"), Mark(8, "ffee00"))


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
        "epoch 7 nonce 0a1b2c\n"
        "epoch 8 nonce ffee00\n"
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
    with pytest.raises(StoreFailed, match="No such file"):
        FileLineage(path / "nowhere" / "lineage").write(MARKS)
