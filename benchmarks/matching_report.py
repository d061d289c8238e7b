"""Writes the results of the matching benchmark as tables, with the aims."""

from __future__ import annotations

from typing import Any

from benchmarks.engines import COMPILED_BATCH, COMPILED_ONE, NUMPY
from benchmarks.report import figure, table, times

FEW_EVENTS = 100

RATIO_AIM = 5.0
CHANGE_AIM_US = 20.0
BUILD_AIM_S = 15.0
MEMORY_AIM_MB = 400.0


def text(results: dict[str, Any]) -> str:
    return "\n\n".join(
        [
            "# Matching",
            "JSON lines in, ids of the matching subscriptions out; one thread, process CPU time, "
            f"the collector off; medians of {results['repeats']} interleaved repeats.",
            "## Aims",
            aims(results),
            "Absolute aims were set for a reference machine; the answers are this machine's.",
            f"## Events per second, and times {NUMPY}",
            *throughput(results),
            "## The workload",
            selectivity(results["sizes"]),
            "## One change",
            changes(results["changes"]),
            "## Building the compiled index at once",
            building(results["building"]),
            "The process grows by the arrays and by Python's own tables of ids; the subscriptions "
            "themselves were there before.",
            "## Where the time of one event goes, 100,000 subscriptions",
            stages(results["stages"]),
        ]
    )


def throughput(results: dict[str, Any]) -> list[str]:
    sizes = results["sizes"]
    engines = list(next(iter(sizes.values()))["engines"])
    notes: list[str] = []
    rows = []
    for name in engines:
        cells = []
        for size in sizes.values():
            row = size["engines"][name]
            if "skipped" in row:
                cells.append(f"– {_mark(notes, row['skipped'])}")
            else:
                few = row["events"] < FEW_EVENTS
                mark = f" {_mark(notes, f'on fewer than {FEW_EVENTS} events')}" if few else ""
                cells.append(f"{figure(row['events_per_s'])} ({times(row['ratio'])}){mark}")
        rows.append([name, *cells])
    listed = [f"[{nth}] {note}." for nth, note in enumerate(notes, start=1)]
    return [table(["engine", *(f"{size:,} subs" for size in sizes)], rows), "  \n".join(listed)]


def _mark(notes: list[str], note: str) -> str:
    if note not in notes:
        notes.append(note)
    return f"[{notes.index(note) + 1}]"


def selectivity(sizes: dict[int, Any]) -> str:
    return table(
        ["subscriptions", "events", "matches per event", "selectivity", "checked by the oracle"],
        [
            [
                f"{size:,}",
                f"{row['events']:,}",
                figure(row["matches_per_event"]),
                f"{row['selectivity']:.3%}",
                f"{row['checked_by_oracle']:,} events",
            ]
            for size, row in sizes.items()
        ],
    )


def changes(rows: list[dict[str, Any]]) -> str:
    return table(
        ["index", "subscriptions", "insert µs", "delete µs"],
        [
            [r["engine"], f"{r['size']:,}", figure(r["insert_us"]), figure(r["delete_us"])]
            for r in rows
        ],
    )


def building(rows: list[dict[str, Any]]) -> str:
    return table(
        ["subscriptions", "s", "s with the collector on", "arrays MB", "process grows by MB"],
        [
            [
                f"{row['size']:,}",
                figure(row["seconds"]),
                figure(row["seconds_with_collector"]),
                figure(row["array_bytes"] / 1e6),
                "–" if row["resident_bytes"] is None else figure(row["resident_bytes"] / 1e6),
            ]
            for row in rows
        ],
    )


def stages(rows: list[dict[str, Any]]) -> str:
    by_batch: dict[int, dict[str, Any]] = {}
    for row in rows:
        by_batch.setdefault(row["batch"], {})[row["stage"]] = row
    names = list(next(iter(by_batch.values())))
    cells = [[name, *(figure(each[name]["us"]) for each in by_batch.values())] for name in names]
    cells.append(["all", *(figure(each[names[-1]]["until_us"]) for each in by_batch.values())])
    return table(["stage", *(f"µs, batches of {batch}" for batch in by_batch)], cells)


def aims(results: dict[str, Any]) -> str:
    at_100k = results["sizes"].get(100_000, {}).get("engines", {})
    compiled = next(row for row in results["changes"] if row["engine"] == "compiled")
    million = next((row for row in results["building"] if row["size"] == 1_000_000), {})
    rows = [
        _at_least(
            f"{name}, 100,000 subscriptions, times {NUMPY}", at_100k.get(name, {}).get("ratio")
        )
        for name in (COMPILED_BATCH, COMPILED_ONE)
    ]
    resident = million.get("resident_bytes")
    for aim, measured, most, unit in (
        ("insert, 100,000 subscriptions", compiled["insert_us"], CHANGE_AIM_US, "µs"),
        ("delete, 100,000 subscriptions", compiled["delete_us"], CHANGE_AIM_US, "µs"),
        ("build 1,000,000", million.get("seconds"), BUILD_AIM_S, "s"),
        (
            "build 1,000,000, the collector on",
            million.get("seconds_with_collector"),
            BUILD_AIM_S,
            "s",
        ),
        ("index of 1,000,000, arrays", _mega(million.get("array_bytes")), MEMORY_AIM_MB, "MB"),
        ("index of 1,000,000, growth of the process", _mega(resident), MEMORY_AIM_MB, "MB"),
    ):
        rows.append(_less_than(aim, measured, most, unit))
    return table(["what", "aim", "measured", "reached"], rows)


def _at_least(what: str, measured: float | None) -> list[str]:
    if measured is None:
        return [what, f"≥ {times(RATIO_AIM)}", "not measured", "–"]
    reached = "yes" if measured >= RATIO_AIM else "no"
    return [what, f"≥ {times(RATIO_AIM)}", times(measured), reached]


def _less_than(what: str, measured: float | None, most: float, unit: str) -> list[str]:
    if measured is None:
        return [what, f"< {figure(most)} {unit}", "not measured", "–"]
    reached = "yes" if measured < most else "no"
    return [what, f"< {figure(most)} {unit}", f"{figure(measured)} {unit}", reached]


def _mega(count: int | None) -> float | None:
    return None if count is None else count / 1e6
