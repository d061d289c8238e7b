"""Run: a plan computed on Spark into a folder, with a report at the end; or only what is missing.

A scenario that was finished before is not computed again. The report comes last and replaces
nothing by half: whoever finds one finds all that it tells of beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from qns.pipeline.run.folder import REPORT, Folder, open_folder, parquet, told_with
from qns.pipeline.spark.session import checked_master, session
from qns.pipeline.spark.tasks import Task, run_groups

Tables = Mapping[str, pa.Table]
Files = Mapping[str, bytes]
"""Name in the folder -> content."""
Told = Callable[[str, float], None]
"""Is told the stage, and which share of it is done."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a run is about, however it came about: generated, or replayed from files."""

    asked: Mapping[str, object]
    """In plain values. Equal ones are the same run."""
    scenarios: Sequence[Mapping[str, object]]
    """`Scenario.described()` of each, with its `id`."""
    groups: Mapping[str, Sequence[Task]]
    """Scenario id -> its tasks."""


@dataclass(frozen=True, slots=True)
class Done:
    tables: Tables
    computed: int
    resumed: int
    """Scenarios that a run before had finished."""


def run(
    work: Work,
    out: Path,
    report: Callable[[Work, Tables], Files],
    master: str | None = None,
    told: Told = lambda _stage, _share: None,
) -> Done:
    """Computes what the folder does not have yet, then writes tables and report."""
    if master is not None:
        checked_master(master)
    with open_folder(out, work.asked) as folder:
        missing = {
            name: tasks for name, tasks in work.groups.items() if not folder.is_finished(name)
        }
        if missing:
            folder.drop_report()
            told("starting Spark", 0.0)
            _compute(missing, folder, master, told, resumed=len(work.groups) - len(missing))
        told("writing the tables", 0.0)
        tables = folder.kept(tuple(work.groups))
        for name, table in tables.items():
            folder.save(f"{name}.parquet", parquet(name, table))
        told("drawing the report", 0.0)
        files = dict(report(work, tables))
        page = files.pop(REPORT)
        for name, data in files.items():
            folder.save(name, data)
        folder.save(REPORT, page)
    return Done(tables, len(missing), len(work.groups) - len(missing))


def _compute(
    missing: Mapping[str, Sequence[Task]],
    folder: Folder,
    master: str | None,
    told: Told,
    resumed: int,
) -> None:
    total = resumed + len(missing)

    def tell(share: float, done: int) -> None:
        told(f"computing, {resumed + done} of {total} scenarios", share)

    with told_with(folder.path), session(master, "qns savings", folder.path) as spark:
        for name, tables in run_groups(spark, missing, tell):
            folder.keep(name, tables)
        told("stopping Spark", 1.0)
