"""Resumable run: computes work on Spark into a folder, and writes the tables and a report.

A scenario that an earlier run finished is not computed again. The report is written last: if it
is there, everything that it describes is beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qns.pipeline.run.folder import REPORT, Folder, open_folder, parquet, run_errors
from qns.pipeline.run.work import Work
from qns.pipeline.spark.queries import Query, run_groups
from qns.pipeline.spark.session import checked_master, session
from qns.pipeline.tables import Tables

Files = Mapping[str, bytes]
"""Name in the folder -> content."""
OnProgress = Callable[[str, float], None]
"""Progress callback: receives the stage and the completed fraction of it."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    tables: Tables
    computed: int
    """Scenarios that this run computed."""
    resumed: int
    """Scenarios that an earlier run had finished."""


def run_into_folder(
    work: Work,
    out: Path,
    report: Callable[[Work, Tables], Files],
    master: str | None = None,
    on_progress: OnProgress = lambda _stage, _fraction: None,
) -> FinishedRun:
    """Computes the scenarios that the folder lacks, then writes the tables and the report."""
    if master is not None:
        checked_master(master)
    with open_folder(out, work.asked) as folder:
        missing = {
            name: queries for name, queries in work.groups.items() if not folder.is_finished(name)
        }
        if missing:
            folder.drop_report()
            on_progress("starting Spark", 0.0)
            _compute(missing, folder, master, on_progress, len(work.groups) - len(missing))
        on_progress("writing the tables", 0.0)
        tables = folder.kept(tuple(work.groups))
        for name, table in tables.items():
            folder.save(f"{name}.parquet", parquet(name, table))
        on_progress("drawing the report", 0.0)
        files = dict(report(work, tables))
        page = files.pop(REPORT)
        for name, data in files.items():
            folder.save(name, data)
        folder.save(REPORT, page)
    return FinishedRun(tables, len(missing), len(work.groups) - len(missing))


def _compute(
    missing: Mapping[str, Sequence[Query]],
    folder: Folder,
    master: str | None,
    on_progress: OnProgress,
    resumed: int,
) -> None:
    total = resumed + len(missing)

    def on_group(fraction: float, done: int) -> None:
        on_progress(f"computing, {resumed + done} of {total} scenarios", fraction)

    with run_errors(folder.path), session(master, "qns savings", folder.path) as spark:
        for name, tables in run_groups(spark, missing, on_group):
            folder.keep(name, tables)
        on_progress("stopping Spark", 1.0)
