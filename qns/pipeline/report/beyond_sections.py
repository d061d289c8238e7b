"""Sections beyond the thesis: exact merging, diffusion trees, churn, many organisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qns.pipeline.report.paper_sections import (
    ACROSS,
    INTERVALS,
    QNS,
    absent,
    joined_up,
    named,
    points,
)
from qns.pipeline.report.results import Counts, Results, Seeds, Setting, column, over_seeds
from qns.pipeline.report.shares import saving
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import count_text, percent_text

SAVINGS: Final = (("messages", "changes", "messages saved"), ("rows", "live", "table rows saved"))
_UNITS: Final = ("rows", "terms", "bytes", "messages")


def exact_section(results: Results) -> Section:
    """Rows, constraint terms, bytes and messages of exact merging against containment."""
    name, title = "exact merging", "Beyond: exact merging"
    setting = results.setting_of("beyond")
    panels, rows, sentences = [], [], []
    for mapping in results.mappings:
        sizes = results.sizes("beyond", setting, mapping)
        if not sizes:
            continue
        lines = tuple(
            Line(what, points(sizes, saving(f"{what}_exact", f"{what}_both")), look)
            for look, what in enumerate(_UNITS)
        )
        panels.append(
            Panel(
                named(mapping), ACROSS, "fewer than containment", lines, percent=True, whole=False
            )
        )
        for nth, (size, seeds) in enumerate(sizes.items()):
            for line in lines:
                before, after = (
                    count_text(over_seeds(seeds, column(f"{line.label}_{how}")))
                    for how in ("both", "exact")
                )
                less = percent_text(line.points[nth][1])
                rows.append((mapping, line.label, f"{size:,}", before, after, less))
        last = [percent_text(line.points[-1][1]) for line in lines]
        sentences.append(
            f"with {mapping} mapping at {max(sizes):,} subscriptions per organisation exact "
            f"merging needs {last[0]} fewer rows, {last[1]} fewer constraint terms, {last[2]} "
            f"fewer bytes and {last[3]} fewer messages than containment"
        )
    if not panels:
        return absent(name, title, "run with --exact-merging")
    picture = Picture(
        "exact-merging",
        title,
        "Per cent fewer than with containment and mapping, on the same subscriptions; below zero: "
        f"more. {INTERVALS}",
        tuple(panels),
    )
    table = Table(
        "Containment and exact merging, mean ± half the 95 % interval over seeds",
        ("mapping", "counted in", "per organisation", "containment", "exact merging", "fewer"),
        tuple(rows),
        texts=2,
    )
    notes = (
        "A union of many intervals is one row but not one row's worth: terms count each interval "
        "or value, bytes the D2Q XML of the view.",
    )
    return Section(name, title, joined_up(sentences), picture, (table,), notes)


def tree_section(results: Results) -> Section:
    name, title = "trees", "Beyond: diffusion trees"
    setting = results.setting_of("trees")
    organisations = setting.organisations if setting else 1
    panels, rows, sentences = [], [], []
    for mapping in results.mappings:
        by_fan_out = results.trees(setting, mapping)
        common = [{*sizes} for sizes in by_fan_out.values()]
        last = max(set.intersection(*common), default=0) if common else 0
        if not last:
            continue
        at_last = {fan_out: sizes[last] for fan_out, sizes in by_fan_out.items()}
        measures: tuple[tuple[str, Callable[[Counts], float]], ...] = (
            ("most sends of one event", column("most_children")),
            ("most connections", column("most_connections")),
            ("deepest receiver", column("most_depth")),
            ("mean depth", lambda at: at["depth_sum"] / at["sent"] if at["sent"] else 0.0),
        )
        panels.append(
            Panel(
                named(mapping),
                "fan-out (0: without trees)",
                "peers, or hops",
                tuple(
                    Line(
                        words,
                        tuple((float(each), over_seeds(at_last[each], of)) for each in at_last),
                        look,
                    )
                    for look, (words, of) in enumerate(measures)
                ),
                logarithmic=(False, False),
                joined=False,
            )
        )
        for fan_out, seeds in at_last.items():
            connections = over_seeds(seeds, lambda at: at["connections_sum"] / organisations)
            rows.append(
                (
                    mapping,
                    str(fan_out) if fan_out else "no trees",
                    count_text(over_seeds(seeds, column("sent"))),
                    count_text(over_seeds(seeds, lambda at: at["bytes"] / 1e6)),
                    *(count_text(over_seeds(seeds, of)) for _, of in measures),
                    count_text(connections),
                )
            )
        trees = [each for each in at_last if each]
        if trees and 0 in at_last:
            sentences.append(_tree_sentence(mapping, at_last, trees[0], last))
    if not panels:
        return absent(name, title, "run with --trees")
    chosen = results.subscriptions_of("trees")
    picture = Picture(
        "trees",
        title,
        f"The load of peers and the way of events, by fan-out; {chosen:,} subscriptions per "
        "organisation. Thin lines: 95 % confidence interval over seeds.",
        tuple(panels),
    )
    table = Table(
        "Diffusion trees at the most publications, mean ± half the 95 % interval over seeds",
        (
            "mapping", "fan-out", "messages", "SOAP megabytes", "most sends of one event",
            "most connections", "deepest", "mean depth", "mean connections",
        ),
        tuple(rows),
        texts=2,
    )  # fmt: skip
    return Section(name, title, joined_up(sentences), picture, (table,))


def _tree_sentence(mapping: str, at_last: dict[int, Seeds], fan_out: int, last: int) -> str:
    without, with_trees = at_last[0], at_last[fan_out]
    return (
        f"with {mapping} mapping and fan-out {fan_out} one peer sends one of {last:,} events to at "
        f"most {_most(with_trees, 'most_children')} others instead of "
        f"{_most(without, 'most_children')}, has at most {_most(with_trees, 'most_connections')} "
        f"connections instead of {_most(without, 'most_connections')}, and an event goes "
        f"at most {_most(with_trees, 'most_depth')} hops deep"
    )


def churn_section(results: Results) -> Section:
    """The same workload with unsubscriptions."""
    return _axis_section(
        results,
        "churn",
        "Beyond: unsubscriptions",
        lambda setting: setting.churn,
        "churn (the chance that an arrival is followed by an unsubscription)",
        "run with --churn 0.2",
        logarithmic=False,
    )


def organisations_section(results: Results) -> Section:
    return _axis_section(
        results,
        "organisations",
        "Beyond: more organisations",
        lambda setting: float(setting.organisations),
        "the number of organisations",
        "run with --organisations 10,50,100",
        logarithmic=True,
    )


def _axis_section(
    results: Results,
    name: str,
    title: str,
    value: Callable[[Setting], float],
    meaning: str,
    remedy: str,
    *,
    logarithmic: bool,
) -> Section:
    """Both savings against something in which otherwise equal settings differ."""
    base = results.base
    along = {
        value(each): each
        for each in results.settings
        if base and not {*each.differences(base)} - {name}
    }
    panels, rows, sentences = [], [], []
    for mapping in results.mappings:
        sizes = {
            at: results.sizes("subscriptions", setting, mapping)
            for at, setting in sorted(along.items())
        }
        sizes = {at: found for at, found in sizes.items() if found}
        common = set.intersection(*({*found} for found in sizes.values())) if sizes else set()
        if len(sizes) < 2 or not common:
            continue
        size = max(common)
        lines = [
            Line(
                words,
                tuple(
                    (at, over_seeds(found[size], saving(f"{what}_both", trivial)))
                    for at, found in sizes.items()
                ),
                look,
            )
            for look, (what, trivial, words) in enumerate(SAVINGS)
        ]
        head = f"{named(mapping)}, {size:,} each"
        scales = (logarithmic, False)
        panels.append(Panel(head, name, "saved", tuple(lines), logarithmic=scales, percent=True))
        for nth, (at, found) in enumerate(sizes.items()):
            per_table = over_seeds(
                found[size],
                lambda counts, at=at: counts["rows_both"] / along[at].organisations,  # type: ignore[misc]
            )
            shares = [percent_text(line.points[nth][1]) for line in lines]
            rows.append((mapping, f"{at:,g}", f"{size:,}", *shares, count_text(per_table)))
        first, last = min(sizes), max(sizes)
        sentences.append(
            f"from {name} {first:,g} to {last:,g} the share saved goes "
            + " and ".join(
                f"from {percent_text(line.points[0][1])} to {percent_text(line.points[-1][1])} of "
                f"the {line.label.removesuffix(' saved')}"
                for line in lines
            )
            + f" with {mapping} mapping and {size:,} subscriptions per organisation"
        )
    if not panels:
        return absent(name, title, remedy)
    picture = Picture(
        name,
        title,
        f"Per cent of the trivial solution that is not needed, against {meaning}. {INTERVALS}",
        tuple(panels),
    )
    table = Table(
        f"Saved by {QNS[1]}, mean ± half the 95 % interval over seeds",
        (
            "mapping",
            name,
            "per organisation",
            *(words for _, _, words in SAVINGS),
            "rows per table",
        ),
        tuple(rows),
    )
    return Section(name, title, joined_up(sentences), picture, (table,))


def _most(seeds: Seeds, column: str) -> str:
    return f"{max(counts[column] for counts in seeds.values()):,.0f}"
