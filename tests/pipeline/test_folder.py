"""Folders of runs: complete files, one run each, one writer at a time."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from qns.errors import NotAllowed, StoreFailed, StoreFull
from qns.pipeline.run.folder import open_folder, ordered, parquet
from qns.pipeline.tables import COST

ASKED = {"seeds": 2}


def cost(*numbers: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "scenario": "a",
                "mapping": "full",
                "organisations": 2,
                "churn": 0.0,
                "seed": 0,
                "job": "merge",
                "organisation": f"Met{number:08}",
                "arrived": number,
                "peak_bytes": 0,
                "seconds": 0.0,
            }
            for number in numbers
        ],
        COST,
    )


@contextmanager
def small_files(limit_bytes: int) -> Iterator[None]:
    """Limits the size of files, which has the effect of a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder: Path) -> set[str]:
    return {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}


def test_rows_in_any_order_give_the_same_bytes() -> None:
    shuffled = pa.concat_tables([cost(3), cost(1, 2)])
    assert parquet("cost", shuffled) == parquet("cost", cost(1, 2, 3))
    assert ordered("cost", shuffled).column("arrived").to_pylist() == [1, 2, 3]


def test_finished_scenario_is_found_again(tmp_path: Path) -> None:
    with open_folder(tmp_path, ASKED) as folder:
        assert not folder.is_finished("a")
        folder.keep("a", {"cost": cost(2, 1)})
        folder.keep("b", {"cost": cost(3)})
    with open_folder(tmp_path, ASKED) as folder:
        assert folder.is_finished("a")
        assert folder.kept(("a", "b")) == {"cost": cost(1, 2, 3)}
        assert folder.kept(("b",)) == {"cost": cost(3)}


@pytest.mark.parametrize("damage", ["cut", "gone", "no marker", "marker cut"])
def test_damaged_scenario_does_not_count_as_finished(tmp_path: Path, damage: str) -> None:
    with open_folder(tmp_path, ASKED) as folder:
        folder.keep("a", {"cost": cost(1)})
        place = tmp_path / "scenarios" / "a"
        file = place / ("done" if "marker" in damage else "cost.parquet")
        if "cut" in damage:
            file.write_bytes(file.read_bytes()[:20])
        else:
            file.unlink()
        assert not folder.is_finished("a")
        folder.keep("a", {"cost": cost(1)})
        assert folder.is_finished("a")


def test_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    with open_folder(tmp_path, ASKED):
        pass
    before = names(tmp_path)
    with (
        pytest.raises(NotAllowed, match=r"holds another run \(choose another folder"),
        open_folder(tmp_path, {"seeds": 3}),
    ):
        pass
    assert names(tmp_path) == before


def test_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious", encoding="utf-8")
    with (
        pytest.raises(NotAllowed, match=r"holds other files: thesis.txt \(choose an empty"),
        open_folder(tmp_path, ASKED),
    ):
        pass
    assert "run.json" not in names(tmp_path)


def test_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below"):
        with pytest.raises(StoreFailed, match="cannot be written"), open_folder(place, ASKED):
            pass


def test_second_run_in_the_same_folder_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    with (
        open_folder(tmp_path, ASKED),
        pytest.raises(NotAllowed, match="another run writes into this folder now"),
        open_folder(tmp_path, ASKED),
    ):
        pass
    with open_folder(tmp_path, ASKED):
        pass


def test_incomplete_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    with open_folder(tmp_path, ASKED) as folder:
        folder.keep("a", {"cost": cost(1)})
        folder.save("report.html", b"whole")
    before = names(tmp_path)
    for left in ("report.html.new", "figures/a.svg.new", "scenarios/b.new/x", ".spark-x/y"):
        (tmp_path / left).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / left).write_bytes(b"half")
    with open_folder(tmp_path, ASKED) as folder:
        assert not folder.is_finished("b")
    assert names(tmp_path) == before


def test_full_disk_is_reported_and_leaves_nothing_incomplete(tmp_path: Path) -> None:
    big = cost(*range(20_000))
    with open_folder(tmp_path, ASKED) as folder:
        folder.keep("a", {"cost": cost(1)})
        folder.save("report.html", b"whole")
        before = names(tmp_path)
        with small_files(1_000):
            with pytest.raises(StoreFull) as caught:
                folder.keep("b", {"cost": big})
            with pytest.raises(StoreFull):
                folder.save("report.html", b"x" * 5_000)
        assert caught.value.place == str(tmp_path)
        assert "no room left on the disk" in caught.value.problem
        assert "what is finished is kept" in caught.value.remedy
        assert (tmp_path / "report.html").read_bytes() == b"whole"
        assert not folder.is_finished("b")
    with open_folder(tmp_path, ASKED) as folder:
        assert names(tmp_path) == before
        folder.keep("b", {"cost": big})
        assert folder.is_finished("b")


def test_damaged_table_is_reported_by_name(tmp_path: Path) -> None:
    with open_folder(tmp_path, ASKED) as folder:
        folder.keep("a", {"cost": cost(1)})
        file = tmp_path / "scenarios" / "a" / "cost.parquet"
        file.write_bytes(b"nothing")
        with pytest.raises(StoreFailed, match=r"a/cost\.parquet: cannot be read"):
            folder.kept(("a",))
