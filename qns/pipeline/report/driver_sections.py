"""Sections for the drivers of the result: sensitivity, cost against size, the parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final, NamedTuple

from qns.pipeline.report.beyond_claims import EXPONENTS, FIT_FROM, MERGING, cost_fit
from qns.pipeline.report.reasons import PARAMETERS
from qns.pipeline.report.results import Results, Setting, column, differences, over_seeds
from qns.pipeline.report.shares import saving
from qns.pipeline.report.words import (
    ACROSS,
    INTERVALS,
    SAVINGS,
    THIN_INTERVALS,
    absent,
    capital,
    joined_up,
    named,
    points,
)
from qns.pipeline.workload.scenario import Workload
from qns.report.figures import COLOURS, Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, Fit, count_text, fit_text, percent_text, points_text

_MEBIBYTE: Final = 2**20


# --- sensitivity ----------------------------------------------------------------------------------


class _Varied(NamedTuple):
    """The savings when one parameter differs from the base, on the same seeds."""

    different: str
    mapping: str
    size: int
    shares: list[Estimate]
    """One for each of SAVINGS."""
    changes: list[Estimate | None]
    """In points against the base; None if no seed is in common."""

    @property
    def largest(self) -> float:
        return max((abs(each.mean) for each in self.changes if each), default=0.0)

    @property
    def row(self) -> tuple[str, ...]:
        cells: list[str] = []
        for share, change in zip(self.shares, self.changes, strict=True):
            cells += [percent_text(share), points_text(change) if change else "no seed in common"]
        return (self.different, f"{self.mapping}, {self.size:,}", *cells)


def sensitivity_section(results: Results) -> Section:
    """The change of the savings when one parameter after the other differs from the base."""
    name, title = "sensitivity", "Which parameters drive the result"
    found = sorted(_varied(results), key=lambda each: (-each.largest, each.row))
    if not found:
        return absent(name, title, "run with --sensitivity")
    table = Table(
        "Each row differs from the base in what it names; largest change first",
        ("different", "mapping, size", "messages saved", "change", "table rows saved", "change"),
        tuple(each.row for each in found),
        texts=2,
        foot="Change: points against the base with the same seeds, ± half the 95 % interval.",
        folded=False,
    )
    first = found[0]
    sentence = (
        f"The largest change is that {first.different} moves messages saved by {first.row[3]} "
        f"points and table size saved by {first.row[5]} points ({first.mapping} mapping, "
        f"{first.size:,} subscriptions per organisation)."
    )
    picture = Picture(
        name,
        title,
        f"Change of the savings in points, if one parameter is different. {THIN_INTERVALS}",
        _varied_panels(results, found),
    )
    return Section(name, title, sentence, picture if picture.panels else None, (table,))


def _varied(results: Results) -> Iterator[_Varied]:
    base = results.base
    for setting in results.settings:
        if base is None or setting == base:
            continue
        changed = {*base.differences(setting)}
        if len(changed) > 1 and (not setting.is_hard or changed & {"churn", "organisations"}):
            continue
        for mapping in results.mappings:
            before = results.sizes("subscriptions", base, mapping)
            after = results.sizes("subscriptions", setting, mapping)
            common = {*before} & {*after}
            if not common:
                continue
            size = max(common)
            values = [saving(f"{what}_both", trivial) for what, trivial, _ in SAVINGS]
            yield _Varied(
                changes_text(base, setting),
                mapping,
                size,
                [over_seeds(after[size], value) for value in values],
                [differences(before[size], after[size], value) for value in values],
            )


def _varied_panels(results: Results, found: list[_Varied]) -> tuple[Panel, ...]:
    """A panel for each mapping and each of SAVINGS, the largest changes first."""
    panels = []
    for mapping in results.mappings:
        drawn = [
            (each.different, changes)
            for each in found
            if each.mapping == mapping
            and len(changes := [change for change in each.changes if change]) == len(SAVINGS)
        ]
        for nth, (_, _, words) in enumerate(SAVINGS):
            bars = [(label, changes[nth]) for label, changes in drawn]
            bars.sort(key=lambda bar: (-abs(bar[1].mean), bar[0]))
            lines = tuple(Line(label, ((0.0, change),), nth) for label, change in bars)
            head = f"{capital(words)}, {mapping}"
            if lines:
                panels.append(Panel(head, "points", "", lines, bars=True, unit=""))
    return tuple(panels)


# --- cost -----------------------------------------------------------------------------------------


class _Fitted(NamedTuple):
    """The exponent of one job on one workload."""

    job: str
    label: str
    fit: Fit
    top: Fit | None
    """The fit of the last decade only."""
    aim: float
    """The largest exponent that is aimed at; 0 if there is no aim."""


def cost_section(results: Results) -> Section:
    """Seconds of the merge job against size, and every job's time and memory."""
    name, title = "cost", "Cost against size"
    shown = _shown_settings(results)
    rows = tuple(_cost_rows(results, shown))
    if not rows:
        return absent(name, title, "it has no cost table")
    fits = list(_fits(results, shown))
    tables = [_fits_table(fits)] if fits else []
    tables.append(
        Table(
            "Time and memory",
            ("job", "workload", "mapping", "size", "CPU seconds", "peak MiB of a task"),
            rows,
            texts=3,
            foot="Size: subscriptions per organisation; for notifications, publications. "
            "CPU seconds: the sum over the tasks of all organisations, mean over seeds.",
            folded=True,
        )
    )
    sentences = [
        f"on the {each.label} the time for merging grows as size to the power of "
        f"{each.fit.exponent:.2f} from {each.fit.least:,.0f} to {each.fit.most:,.0f} subscriptions "
        "per organisation"
        for each in fits
        if each.job.startswith(MERGING)
    ] or [f"fewer than three sizes from {FIT_FROM:,} on: no exponent was fitted"]
    panels = tuple(_cost_panels(results, shown))
    picture = Picture(
        name,
        title,
        f"CPU seconds for merging, the sum over all organisations. {INTERVALS}",
        panels,
    )
    notes = (
        "Time and memory depend on the machine and differ between runs; all other tables do not. "
        "n·log n has an exponent of about 1.1 between a thousand and a million.",
    )
    return Section(
        name, title, joined_up(sentences), picture if panels else None, tuple(tables), notes
    )


def _shown_settings(results: Results) -> list[Setting]:
    """The base, and the default and hard workloads that differ from it in nothing else."""
    base = results.base
    return [
        each
        for each in results.settings
        if each == base
        or (
            base
            and _kind(each)
            and (each.churn, each.organisations) == (base.churn, base.organisations)
        )
    ]


def _cost_rows(results: Results, shown: list[Setting]) -> Iterator[tuple[str, ...]]:
    for mapping in results.mappings:
        for setting in shown:
            for job, sizes in results.costs(setting, mapping).items():
                for size, seeds in sizes.items():
                    peak = max(counts["peak_bytes"] for counts in seeds.values()) / _MEBIBYTE
                    seconds = _seconds(over_seeds(seeds, column("seconds")))
                    yield job, _label(setting), mapping, f"{size:,}", seconds, f"{peak:,.0f}"


def _cost_panels(results: Results, shown: list[Setting]) -> Iterator[Panel]:
    for mapping in results.mappings:
        merging = [
            (_label(setting), points(sizes, column("seconds")))
            for setting in shown
            for job, sizes in results.costs(setting, mapping).items()
            if job.startswith(MERGING)
        ]
        lines = tuple(
            Line(label, of, look) for look, (label, of) in enumerate(merging[: len(COLOURS)])
        )
        if lines:
            yield Panel(named(mapping), ACROSS, "seconds", lines, logarithmic=(True, True))


def _fits(results: Results, shown: list[Setting]) -> Iterator[_Fitted]:
    for setting in shown:
        jobs = {job for mapping in results.mappings for job in results.costs(setting, mapping)}
        for job in sorted(jobs):
            fit = cost_fit(results, setting, job)
            if fit is not None:
                aim = EXPONENTS.get(_kind(setting), 0.0) if job.startswith(MERGING) else 0.0
                top = cost_fit(results, setting, job, top=True)
                yield _Fitted(job, _label(setting), fit, top, aim)


def _fits_table(fits: list[_Fitted]) -> Table:
    return Table(
        f"Fitted exponents, from {FIT_FROM:,} on",
        ("job", "workload", "exponent", "last decade only", "aim: at most", "points"),
        tuple(
            (
                each.job,
                each.label,
                fit_text(each.fit),
                fit_text(each.top) if each.top else "",
                f"{each.aim:g}" if each.aim else "",
                str(each.fit.points),
            )
            for each in fits
        ),
        texts=2,
        foot="± is the standard error. The points of one seed are not independent, so it is more "
        "likely too small than too large.",
    )


# --- parameters -----------------------------------------------------------------------------------


def parameters_table(base: Setting | None) -> Table | None:
    """Every parameter of the workload with its value, its default and the reason for that."""
    if base is None or not base.workload:
        return None
    here = dict(base.workload)
    defaults = asdict(Workload())
    rows = tuple(
        (name, meaning, reason, value_text(here.get(name)), value_text(defaults.get(name)))
        for name, (meaning, reason) in PARAMETERS.items()
    )
    return Table(
        "The workload: how subscriptions are drawn",
        ("parameter", "meaning", "reason for the default", "here", "default"),
        rows,
        texts=3,
        folded=False,
    )


def changes_text(base: Setting, setting: Setting) -> str:
    if setting.is_hard:
        return "the hard workload"
    return ", ".join(
        f"{name} {value_text(here)} → {value_text(there)}"
        for name, (here, there) in base.differences(setting).items()
    )


def value_text(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def _kind(setting: Setting) -> str:
    return "default" if setting.is_default else "hard" if setting.is_hard else ""


def _label(setting: Setting) -> str:
    return f"{_kind(setting) or 'given'} workload"


def _seconds(seconds: Estimate) -> str:
    if seconds.mean >= 100:
        return count_text(seconds)
    half = "" if seconds.half is None else f" ± {seconds.half:.2f}"
    return f"{seconds.mean:.2f}{half}"
