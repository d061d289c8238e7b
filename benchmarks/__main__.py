"""The benchmarks as a command: `python -m benchmarks`, or `make bench`."""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import (
    bench_matching,
    bench_merging,
    bench_peer,
    bench_soap,
    bench_zones,
    machine,
    matching_report,
    report,
)
from benchmarks.timing import tidy

Tell = Callable[[str], None]


def zones(quick: bool, tell: Tell) -> list[dict[str, Any]]:  # noqa: ARG001
    tell("zones")
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


SUBJECTS: dict[str, tuple[Callable[[bool, Tell], Any], Callable[[Any], str]]] = {
    "matching": (bench_matching.run, matching_report.text),
    "merging": (bench_merging.run, bench_merging.text),
    "zones": (zones, zones_text),
    "peer": (bench_peer.run, bench_peer.text),
    "soap": (bench_soap.run, bench_soap.text),
}


def main(arguments: Sequence[str] | None = None) -> None:
    given = parsed(arguments)
    facts = machine.describe()
    start = time.perf_counter()

    def tell(what: str) -> None:
        minutes, seconds = divmod(int(time.perf_counter() - start), 60)
        print(f"{minutes:2}:{seconds:02} {what}", flush=True)

    gc.disable()  # for all alike, and for the whole run
    try:
        for subject in given.only:
            measure, text = SUBJECTS[subject]
            results = measure(given.quick, tell)
            page = text(results)
            path = report.write(given.out, subject, page, results, facts, given.quick)
            print(f"\n{page}\n")
            tell(f"written to {path}")
            tidy()
    finally:
        gc.unfreeze()
        gc.enable()


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures QNS beside what people would use instead, as ratios in one run.",
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
