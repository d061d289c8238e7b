"""Sections for figures 4.17 to 4.20: latency on transit-stub networks, and pbSOCBR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import Final

from qns.lab.experiments.self_organisation import CBR, RATIOS, SOCBR, Window
from qns.lab.report.organisation_sections import (
    ACROSS,
    MESSAGES,
    PLAIN,
    messages_panel,
    messages_table,
    reached_text,
    shown_sizes,
)
from qns.lab.report.runs import Runs, evens_text
from qns.lab.report.words import INTERVALS, MEAN, capital, number_text, signed_text
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, percent_text

CHOSEN: Final = "pb 100 ms"
"""The bound that the thesis recommends."""
LIGHTEST: Final = f"{CHOSEN}, lightest"
RATIO: Final = 50
"""R of fig. 4.18."""
_LOOKS: Final = {CBR: 1, "pb 50 ms": 2, CHOSEN: 3, "pb 150 ms": 4, LIGHTEST: 5, SOCBR: 0}

_ABOUT_STARTS: Final = (
    "Independent: the first tree is independent of the network, as thesis 4.5.2 says of its own. "
    "Near: each broker joins at the nearest available one. The thesis also says that in its first "
    "tree neighbours were probably near each other, a sort of worst case, so its trees lie between "
    "these two."
)

Starts = Mapping[str, Runs]
"""Kind of first tree -> the runs that start from it."""
INDEPENDENT_TREE: Final = "independent tree"
NEAR_TREE: Final = "near tree"


def starts_of(independent: Iterable[Window], near: Iterable[Window]) -> Starts:
    return {INDEPENDENT_TREE: Runs(independent), NEAR_TREE: Runs(near)}


def latency(window: Window) -> float:
    return window.latency_ms


def hops(window: Window) -> float:
    return window.hops


def longer_percent(runs: Runs, variant: str) -> Estimate:
    """By how many per cent the latency to the last subscriber exceeds CBR's, over all windows."""
    fewer = runs.fewer_percent(variant, latency)
    return Estimate(-fewer.mean, fewer.half, fewer.seeds)


def proximity_sections(starts: Starts, diameters_ms: tuple[float, ...]) -> list[Section]:
    return [
        _latency_section(starts, "4.17", (CBR, SOCBR), diameters_ms),
        _bounds_section(starts),
        _messages_section(starts),
        _latency_section(starts, "4.20", (CBR, CHOSEN, LIGHTEST, SOCBR), diameters_ms),
    ]


def _latency_section(
    starts: Starts, name: str, variants: tuple[str, ...], diameters_ms: tuple[float, ...]
) -> Section:
    title = f"Figure {name}: latency to the last subscriber" + (
        " with pbSOCBR" if CHOSEN in variants else ""
    )
    panels, tables, sentences = [], [], []
    for start, runs in starts.items():
        lines = tuple(Line(each, runs.points(each, latency), _LOOKS[each]) for each in variants)
        panels.append(Panel(capital(start), ACROSS, "milliseconds", lines, logarithmic=PLAIN))
        rows = tuple(
            (f"{size:,}", *(number_text(runs.there(each, size, latency), 0) for each in variants))
            for size in shown_sizes(runs)
        )
        tables.append(Table(f"Milliseconds, {start}, {MEAN}", (ACROSS, *variants), rows))
        compared = [f"{each} {signed_text(longer_percent(runs, each))}" for each in variants[1:]]
        sentences.append(
            f"{start}: {number_text(runs.mean(CBR, latency), 0)} ms with CBR over all windows; "
            f"compared with that {', '.join(compared)}"
        )
    picture = Picture(
        name,
        title,
        f"Milliseconds from the publisher to the last interested broker. {INTERVALS}",
        tuple(panels),
    )
    notes = [
        "The latency depends on the tree and is the same for every R. Therefore it is drawn "
        "against subscriptions, where the thesis has R."
        if name == "4.20"
        else "This is the network's latency only. The thesis has seconds (1.5 to 2 more are 50 %), "
        "which include the TCP stack and the brokers of its simulator.",
        _ABOUT_STARTS,
    ]
    if diameters_ms:
        notes.append(
            f"The networks' diameters are {min(diameters_ms):.0f} to {max(diameters_ms):.0f} ms, "
            f"{fmean(diameters_ms):.0f} on average; the thesis has about 200."
        )
    return Section(
        name, title, f"{'. '.join(map(capital, sentences))}.", picture, tuple(tables), tuple(notes)
    )


def _bounds_section(starts: Starts) -> Section:
    name, title = "4.18", "Figure 4.18: CBR, pbSOCBR and SOCBR"
    panels, tables, sentences = [], [], []
    for start, runs in starts.items():
        panels += _bars(start, runs)
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
        head = "hops", "fewer than CBR", f"messages, R = {RATIO}", "latency, ms", "longer", "swaps"
        tables.append(Table(f"Over all windows, {start}, {MEAN}", ("", *head), rows))
        sentences.append(
            f"{start}: d_b = 100 ms needs {percent_text(runs.fewer_percent(CHOSEN, hops))} fewer "
            f"hops than CBR, {percent_text(runs.fewer_percent(LIGHTEST, hops))} fewer if the "
            "lightest link is cut instead of the farthest, "
            f"and SOCBR {percent_text(runs.fewer_percent(SOCBR, hops))} fewer"
        )
    picture = Picture(name, title, f"Means over all windows. {INTERVALS}", tuple(panels))
    notes = (
        "Of the links on the path that are lighter than the new one, pbSOCBR cuts the farthest "
        "(thesis 4.4.2) and SOCBR the lightest. 'Lightest' has the bound and cuts like SOCBR, "
        "which separates the effect of the bound from that of the choice of the link.",
        _ABOUT_STARTS,
    )
    sentence = f"{'. '.join(map(capital, sentences))}."
    return Section(name, title, sentence, picture, tuple(tables), notes)


def _bars(start: str, runs: Runs) -> list[Panel]:
    measures: tuple[tuple[str, str, str, Callable[[str], Estimate]], ...] = (
        ("Hops", "hops per notification", "", lambda each: runs.mean(each, hops)),
        (
            "Messages",
            f"messages per operation, R = {RATIO}",
            "",
            lambda each: runs.per_operation(each, RATIO),
        ),
        ("Latency", "to the last subscriber", " ms", lambda each: runs.mean(each, latency)),
    )
    return [
        Panel(
            f"{words} ({start})",
            across,
            "",
            tuple(
                Line(each, ((float(at), of(each)),), _LOOKS[each])
                for at, each in enumerate(runs.variants)
            ),
            bars=True,
            unit=unit,
        )
        for words, across, unit, of in measures
    ]


def _messages_section(starts: Starts) -> Section:
    name, title = "4.19", "Figure 4.19: messages per operation with pbSOCBR"
    variants = (CBR, CHOSEN, SOCBR)
    looks = [_LOOKS[each] for each in variants]
    sentences = []
    for start, runs in starts.items():
        reached = reached_text(runs.break_even(CHOSEN))
        sentences.append(
            f"{start}: the break-even of d_b = 100 ms with CBR is {reached} "
            f"({evens_text(runs.break_evens(CHOSEN))}); at R = {RATIOS[-1]} it needs "
            f"{percent_text(runs.fewer_messages_percent(CHOSEN, RATIOS[-1]))} fewer messages, "
            "pings included"
        )
    panels = tuple(
        messages_panel(capital(start), runs, variants, looks) for start, runs in starts.items()
    )
    tables = tuple(messages_table(runs, variants[1:], start) for start, runs in starts.items())
    return Section(
        name,
        title,
        f"{'. '.join(map(capital, sentences))}.",
        Picture(name, title, MESSAGES, panels),
        tables,
        (_ABOUT_STARTS,),
    )
