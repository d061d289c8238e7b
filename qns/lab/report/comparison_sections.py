"""Figure 4.2, table 2.1, other shapes of subscriptions, the cost of associativity as sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from qns.lab.associativity_cost import Cost
from qns.lab.comparison import LocalityRow, StrategyRow
from qns.lab.findings import Findings, SeededLocality, SeededStrategy, ShapedWindow
from qns.lab.report.runs import Runs, between, forwarders
from qns.lab.report.words import INTERVALS, MEAN, number_text
from qns.lab.self_organisation import CBR, SOCBR
from qns.lab.setups import LocalityCase
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, estimate, fit_exponent, fit_text, percent_text

_PLAIN: Final = (False, False)


def comparison_sections(findings: Findings) -> dict[str, Section]:
    """Only of what was measured."""
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
    panels, cells, told = [], [], []
    for case in dict.fromkeys(each.case for each in rows):
        found = by_locality(rows, case)
        lines = tuple(
            Line(words, tuple((at, mean_hops(seeds, of)) for at, seeds in found.items()), look)
            for words, look, of in (
                ("flooding", 5, lambda row: row.flooding),
                ("CBR", 1, lambda row: row.cbr),
                ("ideal", 2, lambda row: row.ideal),
            )
        )
        panels.append(Panel(case.name, "locality", "hops", lines, logarithmic=_PLAIN))
        for nth, at in enumerate(found):
            cells.append(
                (case.name, f"{at:g}", *(number_text(line.points[nth][1], 1) for line in lines))
            )
        first, last = (found[at] for at in (min(found), max(found)))
        told.append(
            f"with {case.name} CBR takes {mean_hops(first, _cbr).mean:.1f} hops without locality "
            f"and {mean_hops(last, _cbr).mean:.1f} with full locality, of "
            f"{mean_hops(first, lambda row: row.flooding).mean:.0f} of flooding"
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
    return Section(name, title, _sentence(told), picture, (table,))


def _cbr(row: LocalityRow) -> float:
    return row.cbr


def _sentence(told: list[str]) -> str:
    text = "; ".join(told)
    return f"{text[:1].upper()}{text[1:]}."


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
    picture = Picture(
        name,
        title,
        "Per cent of CBR's pure forwarders that SOCBR removes, after "
        f"{shaped[0].window.subscriptions:,} subscriptions; below zero: it adds some. {INTERVALS}",
        (
            Panel(
                "Removed",
                "",
                "removed",
                tuple(
                    Line(shape, ((float(nth), share),), 0)
                    for nth, (shape, share) in enumerate(removed.items())
                ),
                bars=True,
            ),
        ),
    )
    rows = tuple(
        (
            shape,
            number_text(runs.mean(CBR, lambda w: w.ideal)),
            *(number_text(runs.mean(each, lambda w: w.hops)) for each in (CBR, SOCBR)),
            percent_text(removed[shape]),
            percent_text(runs.fewer_percent(SOCBR, between)),
            *(number_text(runs.mean(each, lambda w: w.way_in)) for each in (CBR, SOCBR)),
        )
        for shape, runs in by_shape.items()
    )
    table = Table(
        f"Hops and pure forwarders by how subscriptions are drawn, {MEAN}",
        (
            "", "ideal", "hops, CBR", "hops, SOCBR", "removed", "of those between",
            "way in, CBR", "way in, SOCBR",
        ),
        rows,
    )  # fmt: skip
    least, most = (pick(removed, key=lambda s: removed[s].mean) for pick in (min, max))
    sentence = (
        f"SOCBR removes from {percent_text(removed[least])} of the pure forwarders ({least}) to "
        f"{percent_text(removed[most])} ({most}): it gathers brokers, and helps where brokers have "
        "much in common."
    )
    notes = (
        "Sides: the longest of a rectangle, in a space of 1,000. Quarters: a broker's users ask "
        "only for things in one quarter of the space, and who shares one is spread over the tree "
        "at first. What is not told is as everywhere else: sides ≤ 200, 10 × 10 cells, Zipf 1.",
    )
    return Section(name, title, sentence, picture, (table,), notes)


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
    rows = tuple(
        (
            strategy,
            *(
                number_text(value, digits)
                for value, (_, _, digits) in zip(values, _COLUMNS, strict=True)
            ),
        )
        for strategy, values in means.items()
    )
    setups = findings.setups
    table = Table(
        f"{setups.brokers} brokers, {setups.strategy_subscriptions:,} subscriptions, then "
        f"{setups.strategy_publications:,} publications; {MEAN}",
        ("strategy", *(words for words, _, _ in _COLUMNS)),
        rows,
    )
    panels = tuple(
        Panel(
            _COLUMNS[column][0].capitalize(),
            "",
            "",
            tuple(
                Line(strategy, ((float(nth), values[column]),), 0)
                for nth, (strategy, values) in enumerate(means.items())
            ),
            bars=True,
            unit="",
        )
        for column in (0, 1, 4)
    )
    ideal = estimate([row.ideal_hops for row in next(iter(found.values()))])
    least = min(means, key=lambda each: means[each][1].mean)
    sentence = (
        f"A notification has {number_text(ideal)} brokers to reach; {least} needs the fewest "
        f"messages for that ({number_text(means[least][1])}), "
        + ", ".join(
            f"{each} {number_text(means[each][1])}"
            for each in ("CBR", "SOCBR", "rendezvous", "notification flooding")
            if each in means and each != least
        )
        + "."
    )
    notes = (
        "QNS is the production peers' own code; its messages count acknowledgements. All others "
        "are brokers of the lab. pbSOCBR has the bound of 100 ms on these flat networks too.",
    )
    told = f"Means over seeds on the same workload. {INTERVALS}"
    return Section(name, title, sentence, Picture(name, title, told, panels), (table,), notes)


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
        "Two zones of so many rectangles each; by the clock of one computer",
        ("rectangles", "associativity", "difference from the grid", "sweep, ms", "grid, ms"),
        rows,
        foot="The grid looks at every unit cell of the square: exact for whole coordinates.",
    )
    picture = Picture(
        name,
        title,
        "One associativity by the plane sweep, and by brute force on a grid of a million cells.",
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
