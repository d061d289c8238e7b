"""Savings: computes the tasks of a plan, writes the report and returns a summary."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from qns.d2q.schema import Schema
from qns.errors import NameNotKnown
from qns.pipeline.datasets.stored_workload import StoredWorkload, examined, merged_from
from qns.pipeline.merging.merge_frame import split
from qns.pipeline.report.rendering import render
from qns.pipeline.report.results import Results
from qns.pipeline.run.folder import REPORT
from qns.pipeline.run.plan import Plan
from qns.pipeline.run.resumable_run import Files, OnProgress, run_into_folder
from qns.pipeline.run.summary import Plain, summary
from qns.pipeline.run.work import Work
from qns.pipeline.spark.queries import Query
from qns.pipeline.spark.session import session
from qns.pipeline.tables import Tables


class Stored(NamedTuple):
    """The datasets of a workload (docs/datasets.md)."""

    path: str
    format: str
    schema: Schema
    mapping: str | None
    """None for all mappings of the dataset."""


def work_of(plan: Plan) -> Work:
    """The work of a plan for generated workloads."""
    scenarios = [{"id": each.id, **each.described()} for each in plan.scenarios]
    return Work(plan.described(), scenarios, plan.groups)


def compute_savings(work: Work, out: Path, master: str | None, on_progress: OnProgress) -> Plain:
    """Computes the work into the folder and returns the summary of the run in plain values."""
    done = run_into_folder(work, out, report_files, master, on_progress)
    return {
        "out": str(out),
        "report": str(out / REPORT),
        "scenarios": done.computed + done.resumed,
        "computed": done.computed,
        "resumed": done.resumed,
        "mappings": summary(Results(done.tables, work.scenarios)),
    }


def report_files(work: Work, tables: Tables) -> Files:
    return render(work.asked, tables, work.scenarios)


def compute_stored(stored: Stored, out: Path, master: str | None, on_progress: OnProgress) -> Plain:
    """Merges the datasets with the chosen mappings, like `compute_savings`."""
    on_progress("starting Spark", 0.0)
    with (
        TemporaryDirectory(prefix="qns-") as scratch,
        session(master, "qns savings", Path(scratch)) as spark,
    ):
        on_progress("reading", 0.0)
        found = examined(spark, stored.path, stored.schema, stored.format)
        if stored.mapping is not None:
            names = [each.mapping for each in found]
            found = [each for each in found if each.mapping == stored.mapping]
            if not found:
                raise NameNotKnown("mapping", stored.mapping, names, place=stored.path)
        return compute_savings(_work_of_stored(found), out, master, on_progress)


def _work_of_stored(workloads: list[StoredWorkload]) -> Work:
    asked = {
        "workload": workloads[0].digest,
        "mappings": [each.mapping for each in workloads],
        "scenarios": [each.id for each in workloads],
    }
    groups = {
        each.id: [
            Query(
                f"merging, {each.path} with mapping {each.mapping}",
                partial(merged_from, each),
                split,
                float(each.subscriptions),
            )
        ]
        for each in workloads
    }
    return Work(asked, [each.described() for each in workloads], groups)
