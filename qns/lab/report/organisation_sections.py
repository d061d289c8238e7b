"""Sections for figures 4.12 to 4.16: gain and cost of self-organisation on flat networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from qns.lab.experiments.self_organisation import CBR, RATIOS, SOCBR, Window
from qns.lab.report.runs import (
    Runs,
    between,
    discovery_percent,
    even_text,
    evens_text,
    forwarders,
    organising,
)
from qns.lab.report.words import INTERVALS, MEAN, number_text
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import percent_text

ACROSS: Final = "subscriptions"
PLAIN: Final = (False, False)
LOOKS: Final = {CBR: 1, SOCBR: 0}
MESSAGES: Final = (
    "All messages of subscriptions, self-organisation and notifications, divided by the number of "
    f"subscriptions and publications, over all windows. {INTERVALS}"
)
_SHOWN: Final = 8
"""The approximate number of rows of a table along the subscriptions."""


def organisation_sections(runs: Runs) -> list[Section]:
    return [
        _hops_section(runs),
        _associativity_section(runs),
        _messages_section(runs),
        _overhead_section(runs),
        _ttl_section(runs),
    ]


def shown_sizes(runs: Runs) -> list[int]:
    """Some of the sizes, including the last one."""
    step = -(-len(runs.sizes) // _SHOWN)
    return runs.sizes[::-1][::step][::-1]


def _hops_section(runs: Runs) -> Section:
    name, title = "4.12", "Figure 4.12: hops per notification"
    ideal = Line("ideal", runs.points(CBR, lambda each: each.ideal), 2)
    hops = [Line(each, runs.points(each, lambda w: w.hops), LOOKS[each]) for each in (CBR, SOCBR)]
    parts = [
        Line(f"{each}, {words}", runs.points(each, value), look)
        for words, value, looks in (
            ("on the way in", lambda w: w.way_in, (1, 0)),
            ("between", between, (4, 3)),
        )
        for each, look in zip((CBR, SOCBR), looks, strict=True)
    ]
    picture = Picture(
        name,
        title,
        "Mean TCP hops, and the pure forwarders among them: on the path from the publisher to the "
        f"first interested part of the tree (way in), and between such parts. {INTERVALS}",
        (
            Panel("Hops", ACROSS, "hops per notification", (*hops, ideal), logarithmic=PLAIN),
            Panel("Pure forwarders", ACROSS, "per notification", tuple(parts), logarithmic=PLAIN),
        ),
    )
    rows = tuple(
        (
            f"{size:,}",
            *(number_text(runs.there(each, size, lambda w: w.hops)) for each in (CBR, SOCBR)),
            number_text(runs.there(CBR, size, lambda w: w.ideal)),
            percent_text(runs.fewer_percent(SOCBR, forwarders, size)),
            percent_text(runs.fewer_percent(SOCBR, between, size)),
        )
        for size in shown_sizes(runs)
    )
    table = Table(
        f"Hops per notification, {MEAN}",
        (ACROSS, CBR, SOCBR, "ideal", "pure forwarders removed", "of those between"),
        rows,
    )
    removed = runs.fewer_percent(SOCBR, forwarders)
    sentence = (
        f"Over all windows SOCBR removes {percent_text(removed)} of CBR's pure forwarders: "
        f"{percent_text(runs.fewer_percent(SOCBR, between))} of those between brokers that want a "
        "notification, "
        f"{percent_text(runs.fewer_percent(SOCBR, lambda w: w.way_in))} of those on the way in."
    )
    return Section(name, title, sentence, picture, (table,))


def _associativity_section(runs: Runs) -> Section:
    name, title = "4.13", "Figure 4.13: associativity"
    lines = tuple(
        Line(each, runs.points(each, lambda w: w.associativity), LOOKS[each])
        for each in (CBR, SOCBR)
    )
    picture = Picture(
        name,
        title,
        f"AS of the system, the mean over brokers. {INTERVALS}",
        (Panel("Associativity", ACROSS, "AS", lines, logarithmic=PLAIN),),
    )
    rows = tuple(
        (
            f"{size:,}",
            *(number_text(runs.there(v, size, lambda w: w.associativity), 3) for v in (CBR, SOCBR)),
            number_text(runs.there(SOCBR, size, lambda w: float(w.swaps)), 0),
        )
        for size in shown_sizes(runs)
    )
    first, last = runs.sizes[0], runs.last
    at = {
        (v, size): runs.there(v, size, lambda w: w.associativity).mean
        for v in (CBR, SOCBR)
        for size in (first, last)
    }
    sentence = (
        f"From {first:,} to {last:,} subscriptions AS grows from {at[CBR, first]:.2f} to "
        f"{at[CBR, last]:.2f} with CBR and from {at[SOCBR, first]:.2f} to {at[SOCBR, last]:.2f} "
        "with SOCBR."
    )
    table = Table(f"AS, {MEAN}", (ACROSS, CBR, SOCBR, "swaps so far"), rows)
    return Section(name, title, sentence, picture, (table,))


def messages_panel(title: str, runs: Runs, variants: Sequence[str], looks: Sequence[int]) -> Panel:
    lines = tuple(
        Line(each, tuple((float(r), runs.per_operation(each, r)) for r in RATIOS), look)
        for each, look in zip(variants, looks, strict=True)
    )
    return Panel(title, "R: publications per subscription", "messages", lines)


def messages_table(runs: Runs, variants: Sequence[str], case: str = "") -> Table:
    """CBR and the variants, with the messages that each of these saves."""
    rows = []
    for ratio in RATIOS:
        cells = [number_text(runs.per_operation(CBR, ratio), 1)]
        for each in variants:
            cells.append(number_text(runs.per_operation(each, ratio), 1))
            cells.append(percent_text(runs.fewer_messages_percent(each, ratio)))
        rows.append((f"{ratio}", *cells))
    head = [word for each in variants for word in (each, f"{each} fewer")]
    where = f", {case}" if case else ""
    return Table(f"Messages per operation{where}, {MEAN}", ("R", CBR, *head), tuple(rows))


def _messages_section(runs: Runs) -> Section:
    name, title = "4.14", "Figure 4.14: messages per operation"
    even = runs.break_even(SOCBR)
    fewer = runs.fewer_messages_percent(SOCBR, RATIOS[-1])
    sentence = (
        f"SOCBR's break-even with CBR is {reached_text(even)} "
        f"({evens_text(runs.break_evens(SOCBR))}); at R = {RATIOS[-1]} it needs "
        f"{percent_text(fewer)} fewer messages."
    )
    return Section(
        name,
        title,
        sentence,
        _messages_picture(runs, name, title, (CBR, SOCBR), (LOOKS[CBR], LOOKS[SOCBR])),
        (messages_table(runs, (SOCBR,)),),
    )


def _messages_picture(
    runs: Runs, name: str, title: str, variants: Sequence[str], looks: Sequence[int]
) -> Picture:
    panel = messages_panel("Messages per operation", runs, variants, looks)
    return Picture(name, title, MESSAGES, (panel,))


def reached_text(even: float | None) -> str:
    return f"at {even_text(even)}" if even is not None else "never reached"


def _overhead_section(runs: Runs) -> Section:
    name, title = "4.15", "Figure 4.15: messages of self-organisation for each subscription"
    lines = (
        Line("on average so far", runs.points(SOCBR, organising), 0),
        Line("of them discovery", runs.points(SOCBR, _discovering), 2),
    )
    picture = Picture(
        name,
        title,
        f"Discovery, locks and reconfiguration, divided by the subscriptions so far. {INTERVALS}",
        (Panel("Self-organisation", ACROSS, "messages", lines, logarithmic=PLAIN),),
    )
    rows, before = [], 0
    for size in shown_sizes(runs):
        since = before

        def lately(seed: int, size: int = size, since: int = since) -> float:
            here = runs.at(SOCBR, seed, size).organisation_messages
            there = runs.at(SOCBR, seed, since).organisation_messages if since else 0
            return (here - there) / (size - since)

        rows.append(
            (
                f"{size:,}",
                number_text(runs.there(SOCBR, size, organising), 1),
                number_text(runs.over_seeds(lately), 1),
                percent_text(runs.there(SOCBR, size, discovery_percent)),
            )
        )
        before = size
    table = Table(
        f"Messages of self-organisation per subscription, {MEAN}",
        (ACROSS, "on average so far", "since the row above", "of all so far discovery"),
        tuple(rows),
    )
    peak = max(runs.sizes, key=lambda size: runs.there(SOCBR, size, organising).mean)
    sentence = (
        f"It costs {number_text(runs.there(SOCBR, runs.last, organising), 1)} messages per "
        f"subscription at {runs.last:,} (the most, "
        f"{runs.there(SOCBR, peak, organising).mean:.1f}, at {peak:,}), "
        f"{percent_text(runs.there(SOCBR, runs.last, discovery_percent))} of them discovery."
    )
    return Section(name, title, sentence, picture, (table,))


def _discovering(window: Window) -> float:
    return window.discovery_messages / window.subscriptions


def _ttl_section(runs: Runs) -> Section:
    name, title = "4.16", "Figure 4.16: a limited time to live"
    limits = [each for each in runs.variants if each.startswith("TTL")]
    variants = [CBR, *limits, SOCBR]
    low, high = RATIOS[0], RATIOS[-1]
    compared = "; ".join(
        f"{each} {percent_text(runs.fewer_messages_percent(each, low, SOCBR))} fewer at R = {low} "
        f"and {percent_text(runs.fewer_messages_percent(each, high, SOCBR))} at R = {high}"
        for each in limits
    )
    return Section(
        name,
        title,
        f"Messages compared with SOCBR without a limit: {compared}.",
        _messages_picture(runs, name, title, variants, (1, 2, 3, 4, 0)[: len(variants)]),
        (messages_table(runs, [*limits, SOCBR]),),
        ("CBR has TTL 0 and SOCBR has none; these two lines are those of figure 4.14.",),
    )
