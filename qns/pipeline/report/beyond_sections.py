"""Sections beyond the thesis: exact merging, diffusion trees, churn, many organisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from qns.pipeline.report.results import Counts, Results, Seeds, Setting, Sizes, column, over_seeds
from qns.pipeline.report.shares import saving
from qns.pipeline.report.words import (
    ACROSS,
    INTERVALS,
    MEAN,
    QNS,
    SAVINGS,
    THIN_INTERVALS,
    absent,
    joined_up,
    named,
    points,
)
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import count_text, percent_text

_UNITS: Final = ("rows", "terms", "bytes", "messages")


# --- exact merging --------------------------------------------------------------------------------


def exact_section(results: Results) -> Section:
    """Rows, constraint terms, bytes and messages of exact merging against containment."""
    name, title = "exact merging", "Beyond: exact merging"
    found = results.by_mapping("beyond", results.setting_of("beyond"))
    if not found:
        return absent(name, title, "run with --exact-merging")
    lines = {mapping: _exact_lines(sizes) for mapping, sizes in found.items()}
    picture = Picture(
        "exact-merging",
        title,
        "Per cent fewer than with containment and mapping, on the same subscriptions; below zero: "
        f"more. {INTERVALS}",
        tuple(
            Panel(
                named(mapping),
                ACROSS,
                "fewer than containment",
                of_mapping,
                percent=True,
                whole=False,
            )
            for mapping, of_mapping in lines.items()
        ),
    )
    table = Table(
        f"Containment and exact merging, {MEAN}",
        ("mapping", "counted in", "per organisation", "containment", "exact merging", "fewer"),
        tuple(
            row
            for mapping, sizes in found.items()
            for row in _exact_rows(mapping, sizes, lines[mapping])
        ),
        texts=2,
    )
    notes = (
        "A union of many intervals is one row, but larger than other rows. Therefore terms count "
        "each interval or value, and bytes count the D2Q XML of the view.",
    )
    sentences = []
    for mapping, sizes in found.items():
        last = [percent_text(line.points[-1][1]) for line in lines[mapping]]
        sentences.append(
            f"with {mapping} mapping at {max(sizes):,} subscriptions per organisation exact "
            f"merging needs {last[0]} fewer rows, {last[1]} fewer constraint terms, {last[2]} "
            f"fewer bytes and {last[3]} fewer messages than containment"
        )
    return Section(name, title, joined_up(sentences), picture, (table,), notes)


def _exact_lines(sizes: Sizes) -> tuple[Line, ...]:
    return tuple(
        Line(unit, points(sizes, saving(f"{unit}_exact", f"{unit}_both")), look)
        for look, unit in enumerate(_UNITS)
    )


def _exact_rows(mapping: str, sizes: Sizes, lines: tuple[Line, ...]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for nth, (size, seeds) in enumerate(sizes.items()):
        for line in lines:
            before, after = (
                count_text(over_seeds(seeds, column(f"{line.label}_{how}")))
                for how in ("both", "exact")
            )
            less = percent_text(line.points[nth][1])
            rows.append((mapping, line.label, f"{size:,}", before, after, less))
    return rows


# --- trees ----------------------------------------------------------------------------------------

_MEASURES: Final[tuple[tuple[str, Callable[[Counts], float]], ...]] = (
    ("most sends of one event", column("most_children")),
    ("most connections", column("most_connections")),
    ("deepest receiver", column("most_depth")),
    ("mean depth", lambda at: at["depth_sum"] / at["sent"] if at["sent"] else 0.0),
)


class _Trees(NamedTuple):
    """The counts of one mapping at the most publications that all fan-outs have."""

    mapping: str
    publications: int
    by_fan_out: dict[int, Seeds]


def tree_section(results: Results) -> Section:
    """The load of peers and the depth of events, with and without diffusion trees."""
    name, title = "trees", "Beyond: diffusion trees"
    setting = results.setting_of("trees")
    found = [of for each in results.mappings if (of := _trees(results, setting, each))]
    if not found:
        return absent(name, title, "run with --trees")
    picture = Picture(
        "trees",
        title,
        "The load of peers and the depth of events, by fan-out, with "
        f"{results.subscriptions_of('trees'):,} subscriptions per organisation. {THIN_INTERVALS}",
        tuple(map(_tree_panel, found)),
    )
    organisations = setting.organisations if setting else 1
    table = Table(
        f"Diffusion trees at the most publications, {MEAN}",
        (
            "mapping", "fan-out", "messages", "SOAP megabytes", "most sends of one event",
            "most connections", "deepest", "mean depth", "mean connections",
        ),
        tuple(row for trees in found for row in _tree_rows(trees, organisations)),
        texts=2,
    )  # fmt: skip
    sentences = [
        _tree_sentence(trees, min(filter(None, trees.by_fan_out)))
        for trees in found
        if 0 in trees.by_fan_out and any(trees.by_fan_out)
    ]
    return Section(name, title, joined_up(sentences), picture, (table,))


def _trees(results: Results, setting: Setting | None, mapping: str) -> _Trees | None:
    by_fan_out = results.trees(setting, mapping)
    common = [{*sizes} for sizes in by_fan_out.values()]
    last = max(set.intersection(*common), default=0) if common else 0
    if not last:
        return None
    return _Trees(mapping, last, {fan_out: sizes[last] for fan_out, sizes in by_fan_out.items()})


def _tree_panel(trees: _Trees) -> Panel:
    lines = tuple(
        Line(
            words,
            tuple((float(each), over_seeds(seeds, of)) for each, seeds in trees.by_fan_out.items()),
            look,
        )
        for look, (words, of) in enumerate(_MEASURES)
    )
    return Panel(
        named(trees.mapping),
        "fan-out (0: without trees)",
        "peers, or hops",
        lines,
        logarithmic=(False, False),
        joined=False,
    )


def _tree_rows(trees: _Trees, organisations: int) -> list[tuple[str, ...]]:
    return [
        (
            trees.mapping,
            str(fan_out) if fan_out else "no trees",
            count_text(over_seeds(seeds, column("sent"))),
            count_text(over_seeds(seeds, lambda at: at["bytes"] / 1e6)),
            *(count_text(over_seeds(seeds, of)) for _, of in _MEASURES),
            count_text(over_seeds(seeds, lambda at: at["connections_sum"] / organisations)),
        )
        for fan_out, seeds in trees.by_fan_out.items()
    ]


def _tree_sentence(trees: _Trees, fan_out: int) -> str:
    without, with_trees = trees.by_fan_out[0], trees.by_fan_out[fan_out]
    return (
        f"with {trees.mapping} mapping and fan-out {fan_out} one peer sends one of "
        f"{trees.publications:,} events to at most {_most(with_trees, 'most_children')} others "
        f"instead of {_most(without, 'most_children')}, has at most "
        f"{_most(with_trees, 'most_connections')} connections instead of "
        f"{_most(without, 'most_connections')}, and an event goes "
        f"at most {_most(with_trees, 'most_depth')} hops deep"
    )


def _most(seeds: Seeds, column: str) -> str:
    return f"{max(counts[column] for counts in seeds.values()):,.0f}"


# --- savings along one parameter ------------------------------------------------------------------


class _Axis(NamedTuple):
    """A parameter in which otherwise equal settings differ."""

    name: str
    title: str
    value: Callable[[Setting], float]
    meaning: str
    remedy: str
    logarithmic: bool


class _Along(NamedTuple):
    """The counts of one mapping along an axis, at the largest size that all settings have."""

    mapping: str
    size: int
    seeds: dict[float, Seeds]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The curves: the shares of messages and rows saved against the trivial solution."""
        return tuple(
            Line(
                words,
                tuple(
                    (at, over_seeds(seeds, saving(f"{what}_both", trivial)))
                    for at, seeds in self.seeds.items()
                ),
                look,
            )
            for look, (what, trivial, words) in enumerate(SAVINGS)
        )


_CHURN: Final = _Axis(
    "churn",
    "Beyond: unsubscriptions",
    lambda setting: setting.churn,
    "churn (the chance that an arrival is followed by an unsubscription)",
    "run with --churn 0.2",
    logarithmic=False,
)
_ORGANISATIONS: Final = _Axis(
    "organisations",
    "Beyond: more organisations",
    lambda setting: float(setting.organisations),
    "the number of organisations",
    "run with --organisations 10,50,100",
    logarithmic=True,
)


def churn_section(results: Results) -> Section:
    """The savings with unsubscriptions."""
    return _axis_section(results, _CHURN)


def organisations_section(results: Results) -> Section:
    """The savings with other numbers of organisations."""
    return _axis_section(results, _ORGANISATIONS)


def _axis_section(results: Results, axis: _Axis) -> Section:
    base = results.base
    settings = {
        axis.value(each): each
        for each in results.settings
        if base and not {*each.differences(base)} - {axis.name}
    }
    found = [of for each in results.mappings if (of := _along(results, settings, each))]
    if not found:
        return absent(axis.name, axis.title, axis.remedy)
    picture = Picture(
        axis.name,
        axis.title,
        f"Per cent of the trivial solution that is not needed, against {axis.meaning}. {INTERVALS}",
        tuple(
            Panel(
                f"{named(along.mapping)}, {along.size:,} each",
                axis.name,
                "saved",
                along.lines,
                logarithmic=(axis.logarithmic, False),
                percent=True,
            )
            for along in found
        ),
    )
    table = Table(
        f"Saved by {QNS[1]}, {MEAN}",
        (
            "mapping",
            axis.name,
            "per organisation",
            *(words for _, _, words in SAVINGS),
            "rows per table",
        ),
        tuple(row for along in found for row in _axis_rows(along, settings)),
    )
    sentences = [_axis_sentence(along, axis.name) for along in found]
    return Section(axis.name, axis.title, joined_up(sentences), picture, (table,))


def _along(results: Results, settings: Mapping[float, Setting], mapping: str) -> _Along | None:
    """None if fewer than two settings have a size in common."""
    sizes = {
        at: found
        for at, setting in sorted(settings.items())
        if (found := results.sizes("subscriptions", setting, mapping))
    }
    common = set.intersection(*({*found} for found in sizes.values())) if sizes else set()
    if len(sizes) < 2 or not common:
        return None
    size = max(common)
    return _Along(mapping, size, {at: found[size] for at, found in sizes.items()})


def _axis_rows(along: _Along, settings: Mapping[float, Setting]) -> list[tuple[str, ...]]:
    rows = []
    for nth, (at, seeds) in enumerate(along.seeds.items()):
        rows_held = over_seeds(seeds, _rows_per_table(settings[at].organisations))
        shares = [percent_text(line.points[nth][1]) for line in along.lines]
        rows.append((along.mapping, f"{at:,g}", f"{along.size:,}", *shares, count_text(rows_held)))
    return rows


def _rows_per_table(organisations: int) -> Callable[[Counts], float]:
    return lambda counts: counts["rows_both"] / organisations


def _axis_sentence(along: _Along, name: str) -> str:
    shares = " and ".join(
        f"from {percent_text(line.points[0][1])} to {percent_text(line.points[-1][1])} of "
        f"the {line.label.removesuffix(' saved')}"
        for line in along.lines
    )
    return (
        f"from {name} {min(along.seeds):,g} to {max(along.seeds):,g} the share saved goes {shares} "
        f"with {along.mapping} mapping and {along.size:,} subscriptions per organisation"
    )
