"""Figures 4.17 to 4.20 as sections: latency on transit-stub networks, and pbSOCBR."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Final

from qns.lab.report.organisation_sections import (
    ACROSS,
    PLAIN,
    messages_picture,
    messages_table,
    shown_sizes,
)
from qns.lab.report.runs import Runs, even_text, evens_text
from qns.lab.report.words import INTERVALS, MEAN, number_text, signed_text
from qns.lab.self_organisation import CBR, RATIOS, SOCBR, Window
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, percent_text

CHOSEN: Final = "pb 100 ms"
"""The bound that the thesis recommends."""
RATIO: Final = 50
"""R of fig. 4.18."""
_LOOKS: Final = {CBR: 1, "pb 50 ms": 2, CHOSEN: 3, "pb 150 ms": 4, SOCBR: 0}


def latency(window: Window) -> float:
    return window.latency_ms


def hops(window: Window) -> float:
    return window.hops


def longer_percent(runs: Runs, variant: str) -> Estimate:
    """How much longer than with CBR it takes to the last subscriber, over all windows."""
    fewer = runs.fewer_percent(variant, latency)
    return Estimate(-fewer.mean, fewer.half, fewer.seeds)


def proximity_sections(runs: Runs, diameters_ms: tuple[float, ...]) -> list[Section]:
    return [
        _latency_section(runs, "4.17", (CBR, SOCBR), diameters_ms),
        _bounds_section(runs),
        _messages_section(runs),
        _latency_section(runs, "4.20", (CBR, CHOSEN, SOCBR), diameters_ms),
    ]


def _latency_section(
    runs: Runs, name: str, variants: tuple[str, ...], diameters_ms: tuple[float, ...]
) -> Section:
    title = f"Figure {name}: latency to the last subscriber" + (
        " with pbSOCBR" if CHOSEN in variants else ""
    )
    lines = tuple(Line(each, runs.points(each, latency), _LOOKS[each]) for each in variants)
    picture = Picture(
        name,
        title,
        f"Milliseconds from the publisher to the last broker that wants it. {INTERVALS}",
        (Panel("Latency", ACROSS, "milliseconds", lines, logarithmic=PLAIN),),
    )
    rows = tuple(
        (f"{size:,}", *(number_text(runs.there(each, size, latency), 0) for each in variants))
        for size in shown_sizes(runs)
    )
    table = Table(f"Latency in milliseconds, {MEAN}", (ACROSS, *variants), rows)
    told = [f"{each} {signed_text(longer_percent(runs, each))}" for each in variants[1:]]
    sentence = (
        f"Over all windows it takes {number_text(runs.mean(CBR, latency), 0)} ms with CBR; "
        f"against that {', '.join(told)}."
    )
    notes = [
        "How often something is published changes nothing here: the latency is the tree's, the "
        "same for every R. Therefore it is drawn against subscriptions, where the thesis has R."
        if name == "4.20"
        else "The network's latency only. The thesis has seconds (1.5 to 2 more are 50 %), with "
        "the TCP stack and the brokers of its simulator in them."
    ]
    if diameters_ms:
        notes.append(
            f"The networks' diameters are {min(diameters_ms):.0f} to {max(diameters_ms):.0f} ms, "
            f"{fmean(diameters_ms):.0f} on average; the thesis has about 200."
        )
    return Section(name, title, sentence, picture, (table,), tuple(notes))


def _bounds_section(runs: Runs) -> Section:
    name, title = "4.18", "Figure 4.18: CBR, pbSOCBR and SOCBR"
    measures: tuple[tuple[str, str, str, Callable[[str], Estimate]], ...] = (
        ("Hops per notification", "hops", "", lambda each: runs.mean(each, hops)),
        (
            f"Messages per operation, R = {RATIO}",
            "messages",
            "",
            lambda each: runs.per_operation(each, RATIO),
        ),
        ("Latency", "ms", " ms", lambda each: runs.mean(each, latency)),
    )
    bounds = [float(nth) for nth, _ in enumerate(runs.variants)]
    panels = tuple(
        Panel(
            words,
            "",
            up,
            tuple(
                Line(each, ((at, of(each)),), _LOOKS[each])
                for at, each in zip(bounds, runs.variants, strict=True)
            ),
            bars=True,
            unit=unit,
        )
        for words, up, unit, of in measures
    )
    rows = tuple(
        (
            each,
            number_text(runs.mean(each, hops)),
            percent_text(runs.fewer_percent(each, hops)),
            number_text(runs.per_operation(each, RATIO), 1),
            number_text(runs.mean(each, latency), 0),
            signed_text(longer_percent(runs, each)),
            number_text(runs.there(each, runs.last, lambda w: float(w.swaps)), 0),
        )
        for each in runs.variants
    )
    table = Table(
        f"Over all windows, {MEAN}",
        ("", "hops", "fewer than CBR", f"messages, R = {RATIO}", "latency, ms", "longer", "swaps"),
        rows,
    )
    sentence = (
        f"With d_b = 100 ms there are {percent_text(runs.fewer_percent(CHOSEN, hops))} fewer hops "
        f"than with CBR (SOCBR {percent_text(runs.fewer_percent(SOCBR, hops))}) and the latency "
        f"changes by {signed_text(longer_percent(runs, CHOSEN))} "
        f"(SOCBR {signed_text(longer_percent(runs, SOCBR))})."
    )
    told = f"Means over all windows. {INTERVALS}"
    return Section(name, title, sentence, Picture(name, title, told, panels), (table,))


def _messages_section(runs: Runs) -> Section:
    name, title = "4.19", "Figure 4.19: messages per operation with pbSOCBR"
    variants = (CBR, CHOSEN, SOCBR)
    even = runs.break_even(CHOSEN)
    reached = f"at {even_text(even)}" if even is not None else "never reached"
    sentence = (
        f"The break-even of d_b = 100 ms with CBR is {reached} "
        f"({evens_text(runs.break_evens(CHOSEN))}); at R = {RATIOS[-1]} it needs "
        f"{percent_text(runs.fewer_messages_percent(CHOSEN, RATIOS[-1]))} fewer messages, pings "
        "included."
    )
    picture = messages_picture(runs, name, title, variants, [_LOOKS[each] for each in variants])
    return Section(name, title, sentence, picture, (messages_table(runs, variants[1:]),))
