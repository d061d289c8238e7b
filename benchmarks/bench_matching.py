"""Measures matching: from JSON lines to ids of the matching subscriptions, on one thread.

Before anything is measured, the answers of all engines are compared with one another on all events
that they get, and with the oracle's on the first ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from benchmarks import bench_index, workload
from benchmarks.engines import NUMPY, Engine, Family, Subscriptions, installed
from benchmarks.timing import OnProgress, cpu_seconds, interleaved, medians, tidy
from qns.cbr import oracle
from qns.d2q.event_json import EventReader


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    sizes: tuple[int, ...]
    events: int
    repeats: int
    repeat_s: float
    """A fast engine repeats the events until it has used this time."""
    most_s: float
    """A slow engine gets as many events as fit into this time, at least `FEWEST`."""
    limit_s: float
    """An engine that needs more time to build, or for a repeat, is left out."""
    oracle_s: float
    """The time that the oracle may use for the expected answers."""


FULL = Plan((1_000, 10_000, 100_000, 1_000_000), 4096, 5, 0.5, 1.5, 20.0, 4.0)
QUICK = Plan((1_000, 10_000, 100_000), 1024, 3, 0.08, 0.15, 1.5, 0.4)
FEWEST = 4


def run(quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    plan = QUICK if quick else FULL
    results: dict[str, Any] = {"repeats": plan.repeats, "limit_s": plan.limit_s, "sizes": {}}
    lines = [orjson.dumps(event) for event in workload.events(plan.events)]
    warm_up()
    build_s: dict[str, float] = {}
    for size in plan.sizes:
        on_progress(f"matching: {size:,} subscriptions")
        tidy()
        subscriptions = workload.subscriptions(size)
        some = lines if size < 1_000_000 else lines[: plan.events // 2]
        results["sizes"][size] = one_size(subscriptions, some, plan, build_s, on_progress)
        if size == 100_000:
            results["changes"] = bench_index.changes(subscriptions, quick, on_progress)
            results["stages"] = bench_index.stages(subscriptions, lines, quick, on_progress)
        del subscriptions
    tidy()
    results["building"] = bench_index.building(quick, on_progress)
    return results


def warm_up() -> None:
    """Imports every library and lets numba compile."""
    few = workload.subscriptions(10)
    for family in installed():
        family.build(few)


def one_size(
    subscriptions: Subscriptions,
    lines: Sequence[bytes],
    plan: Plan,
    build_s: dict[str, float],
    on_progress: OnProgress,
) -> dict[str, Any]:
    """Builds, checks and measures every engine that is fast enough; updates `build_s`."""
    size = len(subscriptions)
    truth = expected_answers(subscriptions, lines, plan.oracle_s)
    reference: list[list[int]] = []
    engines: dict[str, Any] = {}
    works: dict[str, Callable[[], object]] = {}
    for family in installed():
        reason = too_slow_to_build(family, size, build_s, plan)
        if reason:
            engines |= {name: {"skipped": reason} for name in family.names}
            continue
        start = time.process_time()
        built = family.build(subscriptions)
        build_s[family.module] = (time.process_time() - start) / size
        for name, engine in built.items():
            count, passes, reason = how_many(engine, lines, plan)
            if reason:
                engines[name] = {"skipped": reason}
                continue
            on_progress(f"  {name}: {count:,} events × {passes}")
            answers = answers_of(engine, lines[:count])
            check(name, size, answers, truth)
            check(name, size, answers, reference)
            reference = max(reference, answers, key=len)
            engines[name] = {"events": count, "passes": passes}
            works[name] = partial(match_all, engine, engine.prepare(lines[:count]), passes)
    tidy()
    on_progress("  measuring")
    for name, seconds in interleaved(works, plan.repeats).items():
        done = engines[name]["events"] * engines[name]["passes"]
        engines[name]["seconds"] = seconds
        engines[name]["events_per_s"] = done / medians({name: seconds})[name]
    base = engines.get(NUMPY, {}).get("events_per_s")
    for row in engines.values():
        if base and "events_per_s" in row:
            row["ratio"] = row["events_per_s"] / base
    matches = sum(map(len, reference)) / len(reference)
    return {
        "engines": engines,
        "events": len(lines),
        "checked_by_oracle": len(truth),
        "matches_per_event": matches,
        "selectivity": matches / size,
        "build_cpu_s": {module: each * size for module, each in build_s.items()},
    }


def too_slow_to_build(family: Family, size: int, build_s: dict[str, float], plan: Plan) -> str:
    expected = build_s.get(family.module, 0.0) * size
    return f"building would take about {expected:.0f} s" if expected > plan.limit_s else ""


def how_many(engine: Engine, lines: Sequence[bytes], plan: Plan) -> tuple[int, int, str]:
    """Returns the number of events, how often they are repeated, and the reason if it is 0."""
    some = lines[: max(FEWEST, engine.batch)]
    match_all(engine, engine.prepare(some[:1]), 1)  # work that is done on first use only
    event_s = cpu_seconds(partial(match_all, engine, engine.prepare(some), 1)) / len(some)
    if event_s * len(some) > plan.limit_s:
        return 0, 0, f"a repeat would take about {event_s * len(some):.0f} s"
    batches = max(1, int(plan.most_s / event_s / engine.batch))
    count = min(len(lines), max(FEWEST, batches * engine.batch))
    if event_s * len(lines) < 2 * plan.most_s:
        count = len(lines)  # the same events for all engines that are fast enough
    return count, max(1, round(plan.repeat_s / event_s / count)), ""


def match_all(engine: Engine, works: Sequence[Any], passes: int) -> None:
    match = engine.match
    for _ in range(passes):
        for work in works:
            match(work)


def answers_of(engine: Engine, lines: Sequence[bytes]) -> list[list[int]]:
    works = engine.prepare(lines)
    return [sorted(ids) for work in works for ids in engine.ids(work, engine.match(work))]


def expected_answers(
    subscriptions: Subscriptions, lines: Sequence[bytes], oracle_s: float
) -> list[list[int]]:
    """Returns the oracle's answers to the first events, as many as it manages in the time."""
    read, asked = EventReader(workload.SCHEMA).read, dict[Any, Any](subscriptions)
    answers: list[Any] = []
    start = time.process_time()
    for line in lines:
        answers.append(oracle.match(asked, read(line)))
        if time.process_time() - start > oracle_s:
            break
    return answers


def check(name: str, size: int, answers: list[list[int]], expected: list[list[int]]) -> None:
    for nth, (got, right) in enumerate(zip(answers, expected, strict=False)):
        if got != right:
            raise AssertionError(f"{name} answers event {nth} wrongly with {size:,} subscriptions")
