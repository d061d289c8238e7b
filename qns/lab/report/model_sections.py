"""Sections for figures 3.6 to 3.9 and figure 10 of paper 002, which are formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from qns.lab.experiments.loss_model import (
    RAPIDITY,
    d_by_integrals,
    d_by_rapidity,
    d_by_rates,
    f,
    g,
    time_by_rate,
)
from qns.lab.report.words import exactly
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section

BROKERS: Final = 100
"""N of figures 3.6 to 3.8."""
RATES: Final = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
T_ONS: Final = (10.0, 20.0, 40.0, 60.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1_000.0)
SIZES: Final = (10, 30, 100, 300, 1_000, 3_000, 10_000)
T_ON_S: Final = 150.0
"""T_ON of fig. 3.9."""


def model_sections() -> list[Section]:
    return [_curves_section(), *map(_d_section, ("3.7", "3.8", "3.9"))]


def _curves_section() -> Section:
    title = "Figure 3.6: f(t) and g(t) of the epidemic model"
    rates = (0.5, 1.0, 1.5)
    times = [each / 2 for each in range(41)]
    panels = tuple(
        Panel(
            name,
            "seconds",
            up,
            tuple(
                Line(f"rate {rate:g}", exactly((t, of(t, BROKERS, rate)) for t in times), look)
                for look, rate in enumerate(rates)
            ),
            logarithmic=(False, False),
        )
        for name, up, of in (
            ("f(t), eq. 3.3", "share of brokers with it", f),
            ("g(t), eq. 3.4", "share of brokers without it", g),
        )
    )
    rows = tuple(
        (
            f"{rate:g}",
            f"{time_by_rate(BROKERS, rate):.2f}",
            f"{f(0, BROKERS, rate):.4f}",
            f"{1 - f(time_by_rate(BROKERS, rate), BROKERS, rate):.4f}",
        )
        for rate in rates
    )
    sentence = (
        f"With {BROKERS} brokers f rises from {f(0, BROKERS, 1):.2f} (one broker in N, not 1 as "
        f"printed), and at rate 1 all brokers but one in N have the subscription after "
        f"{time_by_rate(BROKERS, 1):.1f} s; g is 1 − f."
    )
    table = Table(f"N = {BROKERS}", ("rate", "T = (2/rate) ln(N − 1), s", "f(0)", "1 − f(T)"), rows)
    picture = Picture("3.6", title, "Logistic curves of eq. 3.3 and 3.4.", panels)
    return Section("3.6", title, sentence, picture, (table,))


def _d_section(name: str) -> Section:
    """The section of eq. 3.6 along one of its parameters."""
    across, xs, of, lines_of, parameter = _ALONG[name]
    lines = tuple(
        Line(words, exactly((x, of(x, value)) for x in xs), look)
        for look, (words, value) in enumerate(lines_of)
    )
    title = f"Figure {name}: notification probability against {parameter}"
    picture = Picture(
        name,
        title,
        "d by eq. 3.6, clipped to 0 and 1.",
        (Panel(title.partition(": ")[2], across, "d", lines),),
    )
    rows = tuple(
        (f"{x:,g}", *(f"{line.points[nth][1].mean:.3f}" for line in lines))
        for nth, x in enumerate(xs)
    )
    table = Table("d by eq. 3.6", (across, *(words for words, _ in lines_of)), rows)
    return Section(name, title, _D_WORDS[name](), picture, (table,))


_ALONG: Final[
    dict[
        str,
        tuple[
            str,
            Sequence[float],
            Callable[[float, float], float],
            Sequence[tuple[str, float]],
            str,
        ],
    ]
] = {
    "3.7": (
        "update rate α",
        RATES,
        lambda rate, t_on_s: d_by_rates(t_on_s, BROKERS, rate, rate),
        [(f"T_ON {each:,} s", float(each)) for each in (25, 50, 100, 200, 500)],
        "the update rate",
    ),
    "3.8": (
        "T_ON, seconds",
        T_ONS,
        lambda t_on_s, rate: d_by_rates(t_on_s, BROKERS, rate, rate),
        [(f"α = {each:g}", each) for each in (0.2, 0.5, 1.0, 1.5, 2.0)],
        "the length of the subscription",
    ),
    "3.9": (
        "brokers N",
        SIZES,
        lambda brokers, rate: d_by_rates(T_ON_S, int(brokers), rate, rate),
        [(f"α = {each:g}", each) for each in (0.2, 0.5, 1.0, 1.5, 2.0)],
        "the number of brokers",
    ),
}
_D_WORDS: Final[dict[str, Callable[[], str]]] = {
    "3.7": lambda: (
        f"At T_ON = 500 s a slow system (α = 0.2) still has "
        f"d = {d_by_rates(500, BROKERS, 0.2, 0.2):.3f}; at 50 s it needs α = 2 for "
        f"{d_by_rates(50, BROKERS, 2, 2):.3f}."
    ),
    "3.8": lambda: (
        f"From 20 to 60 s d grows by "
        f"{d_by_rates(60, BROKERS, 1, 1) - d_by_rates(20, BROKERS, 1, 1):.2f} at α = 1, from 60 to "
        f"1,000 s only by {d_by_rates(1_000, BROKERS, 1, 1) - d_by_rates(60, BROKERS, 1, 1):.2f}."
    ),
    "3.9": lambda: (
        f"At T_ON = {T_ON_S:g} s and α = 1.5, d falls from {d_by_rates(T_ON_S, 10, 1.5, 1.5):.3f} "
        f"with 10 brokers to {d_by_rates(T_ON_S, 10_000, 1.5, 1.5):.3f} with 10,000."
    ),
}


def largest_gap_of_eq_3_6(name: str) -> float:
    """The largest distance of the figure's points from eq. 3.1 with exact integrals.

    Eq. 3.1 has T = (2/α) ln(N − 1) here. Only points with T_ON ≥ T_sub + T_diff count.
    """
    _, xs, _, lines, _ = _ALONG[name]
    gaps = []
    for x in xs:
        for _, value in lines:
            t_on_s, brokers, rate = {
                "3.7": (value, BROKERS, x),
                "3.8": (x, BROKERS, value),
                "3.9": (T_ON_S, int(x), value),
            }[name]
            t_s = time_by_rate(brokers, rate)
            if t_on_s >= 2 * t_s:
                exact = d_by_integrals(t_on_s, t_s, t_s, brokers, rate, rate)
                gaps.append(abs(exact - d_by_rates(t_on_s, brokers, rate, rate)))
    return max(gaps)


def rapidity_section() -> Section:
    name, title = "002-10", "Paper 002, figure 10: its model for other delays"
    sums = (5.0, 10.0, 20.0, 40.0, 80.0)
    lines = tuple(
        Line(
            f"T_sub + T_diff = {both:g} s",
            exactly(
                (t_on_s, d_by_rapidity(t_on_s, both, 0.0)) for t_on_s in T_ONS if t_on_s >= both
            ),
            look,
        )
        for look, both in enumerate(sums)
    )
    picture = Picture(
        "002-10",
        title,
        f"d = 1 − (T_sub + T_diff) / ((r + 1) T_ON) with r = {RAPIDITY:g}; it depends on the sum.",
        (Panel("Notification probability", "T_ON, seconds", "d", lines),),
    )
    rows = tuple(
        (
            f"{t_on_s:,g}",
            *(f"{d_by_rapidity(t_on_s, b, 0.0):.3f}" if t_on_s >= b else "–" for b in sums),
        )
        for t_on_s in T_ONS
    )
    head = ("T_ON, s", *(f"sum {both:g} s" for both in sums))
    sentence = (
        f"With delays of 20 s in all, d is {d_by_rapidity(60, 20, 0):.3f} at T_ON = 60 s and "
        f"{d_by_rapidity(1_000, 20, 0):.3f} at 1,000 s."
    )
    return Section(name, title, sentence, picture, (Table(f"d, r = {RAPIDITY:g}", head, rows),))
