"""The command that runs the benchmarks: `python -m benchmarks`, or `make bench`."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import (
    bench_away,
    bench_evidence,
    bench_matching,
    bench_merging,
    bench_peer,
    bench_seals,
    bench_soap,
    bench_zones,
    machine,
    matching_report,
    report,
)
from benchmarks.timing import OnProgress, tidy


def zones(quick: bool, on_progress: OnProgress) -> list[dict[str, Any]]:  # noqa: ARG001
    on_progress("zones")
    return bench_zones.run()


def zones_text(rows: list[dict[str, Any]]) -> str:
    cells = [
        [
            row["what"],
            f"{row['size']:,}",
            report.micro(row["seconds"]),
            row["baseline"],
            report.micro(row["baseline_seconds"]),
            report.times(row["ratio"]),
        ]
        for row in rows
    ]
    headers = ["what", "rectangles", "ours", "baseline", "theirs", "ratio"]
    return f"# Zones\n\nBest of several repeats.\n\n{report.table(headers, cells)}"


SUBJECTS: dict[str, tuple[Callable[[bool, OnProgress], Any], Callable[[Any], str]]] = {
    "matching": (bench_matching.run, matching_report.text),
    "merging": (bench_merging.run, bench_merging.text),
    "zones": (zones, zones_text),
    "peer": (bench_peer.run, bench_peer.text),
    "soap": (bench_soap.run, bench_soap.text),
    "seals": (bench_seals.run, bench_seals.text),
    "evidence": (bench_evidence.run, bench_evidence.text),
    "away": (bench_away.run, bench_away.text),
}


def main(arguments: Sequence[str] | None = None) -> None:
    given = parsed(arguments)
    facts = machine.describe()
    start = time.perf_counter()

    def on_progress(what: str) -> None:
        minutes, seconds = divmod(int(time.perf_counter() - start), 60)
        print(f"{minutes:2}:{seconds:02} {what}", flush=True)

    gc.disable()  # for all engines and for the whole run
    try:
        for subject in given.only:
            measure, text = SUBJECTS[subject]
            if subject == "away":
                measure = partial(bench_away.run, events=given.events)
            results = measure(given.quick, on_progress)
            page = text(results)
            path = report.write(given.out, subject, page, results, facts, given.quick)
            print(f"\n{page}\n")
            on_progress(f"written to {path}")
            tidy()
    finally:
        gc.unfreeze()
        gc.enable()


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures ratios between QNS and named baselines in one run.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, about a minute")
    parser.add_argument(
        "--only",
        type=subjects,
        default=list(SUBJECTS),
        metavar="SUBJECT,…",
        help=f"some of {','.join(SUBJECTS)}",
    )
    parser.add_argument(
        "--events",
        type=int,
        metavar="N",
        help=f"events that are published while a consumer is away ({bench_away.EVENTS:,})",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results"),
        metavar="FOLDER",
        help="where tables and raw numbers go (benchmarks/results)",
    )
    return parser.parse_args(arguments)


def subjects(listed: str) -> list[str]:
    chosen = [name.strip() for name in listed.split(",")]
    for name in chosen:
        if name not in SUBJECTS:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(SUBJECTS)}")
    return chosen


if __name__ == "__main__":
    main()
