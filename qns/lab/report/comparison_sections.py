"""Sections for figure 4.2, table 2.1, other shapes of subscriptions and the associativity cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from qns.lab.experiments.associativity_cost import Cost
from qns.lab.experiments.comparison import LocalityRow, StrategyRow
from qns.lab.experiments.findings import Findings, SeededLocality, SeededStrategy, ShapedWindow
from qns.lab.experiments.self_organisation import CBR, SOCBR
from qns.lab.experiments.setups import LocalityCase
from qns.lab.report.runs import Runs, between, forwarders
from qns.lab.report.words import INTERVALS, MEAN, capital, number_text
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, estimate, fit_exponent, fit_text, percent_text

_PLAIN: Final = (False, False)


def comparison_sections(findings: Findings) -> dict[str, Section]:
    """Name -> section, for the experiments that were run."""
    sections = {}
    if findings.locality:
        sections["4.2"] = _locality_section(findings.locality)
    if findings.shapes:
        sections["shapes"] = _shapes_section(findings.shapes)
    if findings.strategies:
        sections["table-2.1"] = _strategies_section(findings)
    if findings.costs:
        sections["associativity"] = _cost_section(findings.costs)
    return sections


# --- figure 4.2 -----------------------------------------------------------------------------------


def by_locality(
    rows: Iterable[SeededLocality], case: LocalityCase
) -> dict[float, dict[int, LocalityRow]]:
    """Locality -> seed -> row."""
    found: dict[float, dict[int, LocalityRow]] = {}
    for each, row in rows:
        if each == case:
            found.setdefault(row.locality, {})[row.seed] = row
    return dict(sorted(found.items()))


def mean_hops(seeds: dict[int, LocalityRow], of: Callable[[LocalityRow], float]) -> Estimate:
    return estimate([of(seeds[seed]) for seed in sorted(seeds)])


def _locality_section(rows: tuple[SeededLocality, ...]) -> Section:
    name, title = "4.2", "Figure 4.2: CBR against locality"
    panels, cells, sentences = [], [], []
    for case in dict.fromkeys(each.case for each in rows):
        found = by_locality(rows, case)
        lines = tuple(
            Line(words, tuple((at, mean_hops(seeds, of)) for at, seeds in found.items()), look)
            for words, look, of in (
                ("flooding", 5, lambda row: row.flooding),
                ("CBR", 1, hops_of_cbr),
                ("ideal", 2, lambda row: row.ideal),
            )
        )
        panels.append(Panel(case.name, "locality", "hops", lines, logarithmic=_PLAIN))
        for nth, at in enumerate(found):
            cells.append(
                (case.name, f"{at:g}", *(number_text(line.points[nth][1], 1) for line in lines))
            )
        first, last = (found[at] for at in (min(found), max(found)))
        sentences.append(
            f"with {case.name} CBR takes {mean_hops(first, hops_of_cbr).mean:.1f} hops without "
            f"locality and {mean_hops(last, hops_of_cbr).mean:.1f} with full locality, while "
            f"flooding takes {mean_hops(first, lambda row: row.flooding).mean:.0f}"
        )
    picture = Picture(
        name,
        title,
        "Mean TCP hops per notification. Four groups of near brokers, a quarter of the space each; "
        f"locality is the share of subscriptions issued in the group of their quarter. {INTERVALS}",
        tuple(panels),
    )
    head = ("", "locality", "flooding", "CBR", "ideal")
    table = Table(f"Hops per notification, {MEAN}", head, tuple(cells))
    return Section(name, title, f"{capital('; '.join(sentences))}.", picture, (table,))


def hops_of_cbr(row: LocalityRow) -> float:
    return row.cbr


# --- shapes ---------------------------------------------------------------------------------------


def runs_by_shape(shaped: Iterable[ShapedWindow]) -> dict[str, Runs]:
    windows: dict[str, list[ShapedWindow]] = {}
    for each in shaped:
        windows.setdefault(each.shape, []).append(each)
    return {shape: Runs(each.window for each in some) for shape, some in windows.items()}


def _shapes_section(shaped: tuple[ShapedWindow, ...]) -> Section:
    name, title = "shapes", "Beyond: what figure 4.12 depends on"
    by_shape = runs_by_shape(shaped)
    removed = {shape: runs.fewer_percent(SOCBR, forwarders) for shape, runs in by_shape.items()}
    lines = tuple(
        Line(shape, ((float(nth), share),), 0) for nth, (shape, share) in enumerate(removed.items())
    )
    picture = Picture(
        name,
        title,
        "Per cent of CBR's pure forwarders that SOCBR removes, after "
        f"{shaped[0].window.subscriptions:,} subscriptions; below zero: it adds some. {INTERVALS}",
        (Panel("Removed", "", "removed", lines, bars=True),),
    )
    table = Table(
        f"Hops and pure forwarders by how subscriptions are drawn, {MEAN}",
        (
            "", "ideal", "hops, CBR", "hops, SOCBR", "removed", "of those between",
            "way in, CBR", "way in, SOCBR",
        ),
        _shape_rows(by_shape),
    )  # fmt: skip
    least, most = (pick(removed, key=lambda s: removed[s].mean) for pick in (min, max))
    sentence = (
        f"SOCBR removes from {percent_text(removed[least])} of the pure forwarders ({least}) to "
        f"{percent_text(removed[most])} ({most}): it links brokers with common interests, so it "
        "helps where brokers have much in common."
    )
    notes = (
        "Sides: the longest side of a rectangle, in a space of 1,000. Quarters: the users of a "
        "broker subscribe only in one quarter of the space, and brokers with the same quarter are "
        "spread over the first tree. Other parameters are as everywhere else: sides ≤ 200, 10 × 10 "
        "cells, Zipf 1.",
    )
    return Section(name, title, sentence, picture, (table,), notes)


def _shape_rows(by_shape: Mapping[str, Runs]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            shape,
            number_text(runs.mean(CBR, lambda w: w.ideal)),
            *(number_text(runs.mean(each, lambda w: w.hops)) for each in (CBR, SOCBR)),
            percent_text(runs.fewer_percent(SOCBR, forwarders)),
            percent_text(runs.fewer_percent(SOCBR, between)),
            *(number_text(runs.mean(each, lambda w: w.way_in)) for each in (CBR, SOCBR)),
        )
        for shape, runs in by_shape.items()
    )


# --- table 2.1 ------------------------------------------------------------------------------------

_COLUMNS: Final[tuple[tuple[str, Callable[[StrategyRow], float], int], ...]] = (
    ("messages per subscription", lambda row: row.messages_per_subscription, 1),
    ("messages per notification", lambda row: row.messages_per_notification, 2),
    ("hops per notification", lambda row: row.hops_per_notification, 2),
    ("pure forwarders", lambda row: row.pure_forwarders, 2),
    ("table size, mean", lambda row: row.mean_table, 1),
    ("table size, largest", lambda row: float(row.max_table), 0),
    ("last subscriber, ms", lambda row: row.last_subscriber_ms, 0),
)


def by_strategy(rows: Iterable[SeededStrategy]) -> dict[str, list[StrategyRow]]:
    found: dict[str, list[StrategyRow]] = {}
    for _, row in rows:
        found.setdefault(row.strategy, []).append(row)
    return found


def _strategies_section(findings: Findings) -> Section:
    name, title = "table-2.1", "Table 2.1: one run of each strategy"
    found = by_strategy(findings.strategies)
    means = {
        strategy: [estimate([of(row) for row in rows]) for _, of, _ in _COLUMNS]
        for strategy, rows in found.items()
    }
    setups = findings.setups
    table = Table(
        f"{setups.brokers} brokers, {setups.strategy_subscriptions:,} subscriptions, then "
        f"{setups.strategy_publications:,} publications; {MEAN}",
        ("strategy", *(words for words, _, _ in _COLUMNS)),
        _strategy_rows(means),
    )
    panels = tuple(_strategy_panel(means, column) for column in (0, 1, 4))
    ideal = estimate([row.ideal_hops for row in next(iter(found.values()))])
    least = min(means, key=lambda each: means[each][1].mean)
    others = ", ".join(
        f"{each} {number_text(means[each][1])}"
        for each in ("CBR", "SOCBR", "rendezvous", "notification flooding")
        if each in means and each != least
    )
    sentence = (
        f"A notification has {number_text(ideal)} brokers to reach; {least} needs the fewest "
        f"messages for that ({number_text(means[least][1])}), {others}."
    )
    notes = (
        "QNS is the code of the production peers; its messages include acknowledgements. All "
        "others are brokers of the lab. pbSOCBR has the bound of 100 ms on these flat networks, "
        "too.",
    )
    description = f"Means over seeds on the same workload. {INTERVALS}"
    picture = Picture(name, title, description, panels)
    return Section(name, title, sentence, picture, (table,), notes)


def _strategy_rows(means: Mapping[str, list[Estimate]]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            strategy,
            *(
                number_text(value, digits)
                for value, (_, _, digits) in zip(values, _COLUMNS, strict=True)
            ),
        )
        for strategy, values in means.items()
    )


def _strategy_panel(means: Mapping[str, list[Estimate]], column: int) -> Panel:
    lines = tuple(
        Line(strategy, ((float(nth), values[column]),), 0)
        for nth, (strategy, values) in enumerate(means.items())
    )
    return Panel(_COLUMNS[column][0].capitalize(), "", "", lines, bars=True, unit="")


# --- the cost of associativity --------------------------------------------------------------------


_TIMES: Final[tuple[tuple[str, int, Callable[[Cost], float]], ...]] = (
    ("exact sweep", 0, lambda cost: cost.sweep_s),
    ("grid", 1, lambda cost: cost.grid_s),
)


def _cost_section(costs: tuple[Cost, ...]) -> Section:
    name, title = "associativity", "Beyond: what exact associativity costs"
    rows = tuple(
        (
            f"{each.rectangles:,}",
            f"{each.associativity:.6f}",
            f"{each.difference:.1e}",
            f"{1_000 * each.sweep_s:,.2f}",
            f"{1_000 * each.grid_s:,.1f}",
        )
        for each in costs
    )
    table = Table(
        "Two zones with this number of rectangles each; measured on one computer",
        ("rectangles", "associativity", "difference from the grid", "sweep, ms", "grid, ms"),
        rows,
        foot="The grid visits every unit cell of the square, so it is exact for whole coordinates.",
    )
    picture = Picture(
        name,
        title,
        "One associativity by plane sweep, and by brute force on a grid of a million cells.",
        (
            Panel(
                "Seconds",
                "rectangles of each zone",
                "seconds",
                tuple(
                    Line(
                        words,
                        tuple((float(e.rectangles), Estimate(of(e), None, 1)) for e in costs),
                        look,
                    )
                    for words, look, of in _TIMES
                ),
                logarithmic=(True, True),
            ),
        ),
    )
    last = costs[-1]
    fit = fit_exponent([[(float(each.rectangles), each.sweep_s) for each in costs]])
    grows = f"; it grows as n to the power of {fit_text(fit)}" if fit else ""
    compiled = "compiled" if last.is_compiled else "not compiled: numba is not installed"
    sentence = (
        f"The exact sweep takes {1_000 * last.sweep_s:,.1f} ms for two zones of "
        f"{last.rectangles:,} rectangles ({compiled}){grows}."
    )
    return Section(name, title, sentence, picture, (table,))
