"""What drives the result, and what it takes: sensitivity, cost against size, the parameters."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from qns.pipeline.report.beyond_claims import EXPONENTS, FIT_FROM, MERGING, cost_fit
from qns.pipeline.report.beyond_sections import SAVINGS
from qns.pipeline.report.paper_sections import ACROSS, INTERVALS, absent, joined_up, named, points
from qns.pipeline.report.reasons import PARAMETERS
from qns.pipeline.report.results import Results, Setting, differences, over_seeds
from qns.pipeline.report.shares import saving
from qns.pipeline.workload.scenario import Workload
from qns.report.figures import COLOURS, Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, count_text, fit_text, percent_text, points_text

_MEBIBYTE: Final = 2**20


def sensitivity_section(results: Results) -> Section:
    """One parameter after the other, all else as in the base, seed by seed."""
    name, title = "sensitivity", "Which parameters drive the result"
    found: list[tuple[float, tuple[str, ...], str]] = []
    drawn: dict[str, list[tuple[str, list[Estimate]]]] = {}
    base = results.base
    for setting in results.settings:
        if base is None or setting == base:
            continue
        changed = {*base.differences(setting)}
        if len(changed) > 1 and (not setting.is_hard or changed & {"churn", "organisations"}):
            continue
        words = changes_text(base, setting)
        for mapping in results.mappings:
            before = results.sizes("subscriptions", base, mapping)
            after = results.sizes("subscriptions", setting, mapping)
            common = {*before} & {*after}
            if not common:
                continue
            size = max(common)
            cells: list[str] = []
            changes = []
            for what, trivial, _ in SAVINGS:
                share = saving(f"{what}_both", trivial)
                change = differences(before[size], after[size], share)
                cells += [
                    percent_text(over_seeds(after[size], share)),
                    points_text(change) if change else "no seed in common",
                ]
                if change:
                    changes.append(change)
            most = max((abs(each.mean) for each in changes), default=0.0)
            story = (
                f"{words} moves messages saved by {cells[1]} points and table size saved by "
                f"{cells[3]} points ({mapping} mapping, {size:,} subscriptions per organisation)"
            )
            found.append((most, (words, f"{mapping}, {size:,}", *cells), story))
            if len(changes) == len(SAVINGS):
                drawn.setdefault(mapping, []).append((words, changes))
    if not found:
        return absent(name, title, "run with --sensitivity")
    found.sort(key=lambda each: (-each[0], each[1]))
    table = Table(
        "Each row differs from the base in what it names; largest change first",
        ("different", "mapping, size", "messages saved", "change", "table rows saved", "change"),
        tuple(row for _, row, _ in found),
        texts=2,
        foot="Change: points against the base with the same seeds, ± half the 95 % interval.",
        folded=False,
    )
    picture = Picture(
        name,
        title,
        "Change of what is saved, in points, when one parameter is different. Thin lines: 95 % "
        "confidence interval over seeds.",
        tuple(
            Panel(
                f"{words[:1].upper()}{words[1:]}, {mapping}",
                "points",
                "",
                tuple(
                    Line(label, ((0.0, changes[nth]),), nth)
                    for label, changes in sorted(
                        drawn[mapping], key=lambda each: (-abs(each[1][nth].mean), each[0])
                    )
                ),
                bars=True,
                unit="",
            )
            for mapping in drawn
            for nth, (_, _, words) in enumerate(SAVINGS)
        ),
    )
    sentence = f"Of all that was varied, {found[0][2]}: nothing moves either of them more."
    return Section(name, title, sentence, picture if picture.panels else None, (table,))


def cost_section(results: Results) -> Section:
    """Seconds of the merge job against size, and every job's time and memory."""
    name, title = "cost", "Cost against size"
    shown = [
        each
        for each in results.settings
        if each == results.base
        or (
            results.base
            and _kind(each)
            and (each.churn, each.organisations) == (results.base.churn, results.base.organisations)
        )
    ]
    panels, rows, fits, sentences = [], [], [], []
    for mapping in results.mappings:
        lines: list[Line] = []
        for setting in shown:
            for job, sizes in results.costs(setting, mapping).items():
                label = _label(setting)
                if job.startswith(MERGING) and len(lines) < len(COLOURS):
                    lines.append(Line(label, points(sizes, lambda at: at["seconds"]), len(lines)))
                for size, seeds in sizes.items():
                    peak = max(counts["peak_bytes"] for counts in seeds.values()) / _MEBIBYTE
                    seconds = over_seeds(seeds, lambda at: at["seconds"])
                    rows.append(
                        (job, label, mapping, f"{size:,}", _seconds(seconds), f"{peak:,.0f}")
                    )
        if lines:
            panels.append(
                Panel(named(mapping), ACROSS, "seconds", tuple(lines), logarithmic=(True, True))
            )
    for setting in shown:
        jobs = {job for mapping in results.mappings for job in results.costs(setting, mapping)}
        for job in sorted(jobs):
            fit = cost_fit(results, setting, job)
            if fit is None:
                continue
            aim = EXPONENTS.get(_kind(setting), 0) if job.startswith(MERGING) else 0
            label = _label(setting)
            top = cost_fit(results, setting, job, top=True)
            fits.append(
                (
                    job,
                    label,
                    fit_text(fit),
                    fit_text(top) if top else "",
                    f"{aim:g}" if aim else "",
                    str(fit.points),
                )
            )
            if job.startswith(MERGING):
                sentences.append(
                    f"on the {label} the time for merging grows as size to the power of "
                    f"{fit.exponent:.2f} from {fit.least:,.0f} to {fit.most:,.0f} subscriptions "
                    "per organisation"
                )
    if not rows:
        return absent(name, title, "it has no cost table")
    tables = []
    if fits:
        tables.append(
            Table(
                f"Fitted exponents, from {FIT_FROM:,} on",
                ("job", "workload", "exponent", "last decade only", "aim: at most", "points"),
                tuple(fits),
                texts=2,
                foot="± is the standard error. The points of one seed begin alike, so it is rather "
                "too small than too large.",
            )
        )
    tables.append(
        Table(
            "Time and memory",
            ("job", "workload", "mapping", "size", "seconds", "peak MiB of a process"),
            tuple(rows),
            texts=3,
            foot="Size: subscriptions per organisation; for notifications, publications. Seconds: "
            "of one core, the tasks of all organisations added, mean over seeds.",
            folded=True,
        )
    )
    if not sentences:
        sentences = [f"fewer than three sizes from {FIT_FROM:,} on: no exponent was fitted"]
    picture = Picture(
        name,
        title,
        f"Seconds of one core for merging, all organisations added. {INTERVALS}",
        tuple(panels),
    )
    notes = (
        "Time and memory depend on the machine and are not the same in every run; all other "
        "tables are. n·log n itself has an exponent of about 1.1 between a thousand and a million.",
    )
    return Section(
        name, title, joined_up(sentences), picture if panels else None, tuple(tables), notes
    )


def parameters_table(base: Setting | None) -> Table | None:
    """Every parameter of the workload, its value here, its default and the reason for that."""
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
        ("parameter", "what it is", "why its default", "here", "default"),
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
        return "not told"
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
