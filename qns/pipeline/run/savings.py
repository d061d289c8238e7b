"""Savings: a plan from its tasks to its report, and the numbers to tell at the end."""

from __future__ import annotations

from pathlib import Path

from qns.pipeline.report.rendering import render
from qns.pipeline.report.results import Results
from qns.pipeline.run.folder import REPORT
from qns.pipeline.run.plan import Plan
from qns.pipeline.run.run import Files, Tables, Told, Work, run
from qns.pipeline.run.summary import Plain, summary


def work_of(plan: Plan) -> Work:
    """What a plan for generated workloads asks for."""
    scenarios = [{"id": each.id, **each.described()} for each in plan.scenarios]
    return Work(plan.described(), scenarios, plan.groups)


def computed(work: Work, out: Path, master: str | None, told: Told) -> Plain:
    """Computes it into the folder; what is told of it, in plain values."""
    done = run(work, out, report_files, master, told)
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
