"""Savings: computes the tasks of a plan, writes the report and returns a summary."""

from __future__ import annotations

from pathlib import Path

from qns.pipeline.report.rendering import render
from qns.pipeline.report.results import Results
from qns.pipeline.run.folder import REPORT
from qns.pipeline.run.plan import Plan
from qns.pipeline.run.resumable_run import Files, OnProgress, run_into_folder
from qns.pipeline.run.summary import Plain, summary
from qns.pipeline.run.work import Work
from qns.pipeline.tables import Tables


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
