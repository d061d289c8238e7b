"""Sections for the measured figures of thesis chapter 3 and of paper 002."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from qns.lab.experiments.loss_experiment import PAPER, Curve, Loss, Rates, Results
from qns.lab.experiments.loss_model import RAPIDITY
from qns.lab.report.words import INTERVALS, capital, exactly, number_text, signed
from qns.report.figures import Line, Panel, Picture
from qns.report.page import Table
from qns.report.section import Section
from qns.report.statistics import Estimate, estimate

_PLAIN: Final = (False, False)
_CURVE_POINTS: Final = 21


def measured_sections(loss: Results) -> list[Section]:
    return [
        _measured_curves(loss),
        _rates_section(loss),
        _loss_section(loss),
        _error_section(loss),
        _rapidity_section(loss),
    ]


_TITLES: Final = {
    "3.10": "Figure 3.10: how subscriptions and notifications spread",
    "table-3.1": "Table 3.1: update rates",
    "3.11": "Figure 3.11: notification probability measured",
    "3.12": "Figure 3.12: error of the model",
    "002-9": "Paper 002, figure 9: its model compared with measurements",
}


def _measured_curves(loss: Results) -> Section:
    name = "3.10"
    panels = []
    for which, up in (("F", "share of brokers with it"), ("G", "share of brokers without it")):
        lines = []
        for look, curve in enumerate(each for each in loss.curves if each.name == which):
            step = max(1, (len(curve.times_s) - 1) // (_CURVE_POINTS - 1))
            hosts = f"{curve.hosts} hosts"
            thin = list(zip(curve.times_s, curve.measured, strict=True))[::step]
            fitted = list(zip(curve.times_s, curve.fitted, strict=True))
            lines.append(Line(hosts, exactly(thin), look))
            lines.append(Line(f"{hosts}, logistic", exactly(fitted), look, faint=True))
        panels.append(Panel(f"{which}(t)", "seconds", up, tuple(lines), logarithmic=_PLAIN))
    gaps = tuple(
        (curve.name, f"{curve.hosts:,}", f"{curve.gap:.3f}", f"{_half_time(curve):.2f}")
        for curve in loss.curves
    )
    worst = max(loss.curves, key=lambda curve: curve.gap)
    title = _TITLES[name]
    picture = Picture(
        name,
        title,
        "Measured over all sources and topologies. Thin lines: the logistic of equal integral.",
        tuple(panels),
    )
    table = Table(
        "The largest distance between the curves",
        ("curve", "hosts", "gap", "half of the brokers after, s"),
        gaps,
    )
    sentence = (
        f"The measured curves are S-shaped; the logistic of equal integral is at most "
        f"{worst.gap:.2f} away ({worst.name}, {worst.hosts} hosts)."
    )
    return Section(name, title, sentence, picture, (table,))


def _half_time(curve: Curve) -> float:
    reached = [value if curve.name == "F" else 1 - value for value in curve.measured]
    return next(t_s for t_s, at in zip(curve.times_s, reached, strict=True) if at >= 0.5)


def _rates_section(loss: Results) -> Section:
    name, title = "table-3.1", _TITLES["table-3.1"]
    columns: tuple[tuple[str, Callable[[Rates], float]], ...] = (
        ("s", lambda row: row.s),
        ("r", lambda row: row.r),
        ("T_sub, s", lambda row: row.t_sub_s),
        ("T_diff, s", lambda row: row.t_diff_s),
    )
    rows = []
    for pooled, single in zip(loss.rates, loss.rates_by_topology, strict=True):
        rows.append(
            ("ours, all topologies", f"{pooled.hosts}", *(f"{of(pooled):.2f}" for _, of in columns))
        )
        rows.append(
            (
                "ours, by topology",
                f"{pooled.hosts}",
                *(number_text(estimate([of(each) for each in single])) for _, of in columns),
            )
        )
        if pooled.hosts in PAPER:
            rows.append(
                ("thesis", f"{pooled.hosts}", *(f"{value:.2f}" for value in PAPER[pooled.hosts]))
            )
    first, last = loss.rates[0], loss.rates[-1]
    sentence = (
        f"Notifications spread faster than subscriptions (r = {first.r:.2f}, s = {first.s:.2f} on "
        f"{first.hosts} hosts), and both slow down as the network grows (r = {last.r:.2f}, "
        f"s = {last.s:.2f} on {last.hosts})."
    )
    table = Table(
        "Update rates by equal integrals, and the longest delays; ± over topologies",
        ("", "hosts", *(words for words, _ in columns)),
        tuple(rows),
        foot="T over all topologies is the longest of any, so it is above their mean. The values "
        "depend on the duration of a hop; latencies and handling times are our choice, because the "
        "thesis does not give its own.",
    )
    return Section(name, title, sentence, None, (table,))


def _of_topologies(loss: Loss) -> Estimate:
    pairs = loss.published / len(loss.delivered)
    return estimate([number / pairs for number in loss.delivered])


def _loss_section(loss: Results) -> Section:
    name, title = "3.11", _TITLES["3.11"]
    lines, rows = [], []
    for look, hosts in enumerate(dict.fromkeys(each.hosts for each in loss.losses)):
        of_hosts = [each for each in loss.losses if each.hosts == hosts]
        points = tuple((each.t_on_s, _of_topologies(each)) for each in of_hosts)
        lines.append(Line(f"{hosts} hosts", points, look))
        rows += [
            (f"{hosts}", f"{each.t_on_s:.1f}", f"{each.published:,}", number_text(at, 3))
            for each, (_, at) in zip(of_hosts, points, strict=True)
        ]
    ends = [each for each in loss.losses if each.hosts == loss.losses[0].hosts]
    sentence = (
        f"On {ends[0].hosts} hosts d grows from {ends[0].d:.3f} at T_ON = {ends[0].t_on_s:.1f} s "
        f"to {ends[-1].d:.3f} at {ends[-1].t_on_s:.0f} s."
    )
    picture = Picture(
        name,
        title,
        f"The share of notifications that were delivered. {INTERVALS}",
        (Panel("Measured d", "T_ON, seconds", "d", tuple(lines)),),
    )
    table = Table(
        "d, mean ± half the 95 % interval over topologies",
        ("hosts", "T_ON, s", "published", "d"),
        tuple(rows),
    )
    return Section(name, title, sentence, picture, (table,))


_MODELS: Final[tuple[tuple[str, Callable[[Loss], float]], ...]] = (
    ("eq. 3.1 as the errata read it", lambda each: each.error_percent),
    ("mean delays", lambda each: each.error_means_percent),
    ("paper 002", lambda each: each.error_002_percent),
)


def _error_section(loss: Results) -> Section:
    name, title = "3.12", _TITLES["3.12"]
    picture = _error_picture(loss, name, title, _MODELS[:2])
    worst = [
        max(map(abs, loss.errors_percent(of=of))) for of in ("error_percent", "error_means_percent")
    ]
    smallest = [max(abs(of(each)) for each in _smallest(loss.losses)) for _, of in _MODELS[:2]]
    sentence = (
        f"Except at the smallest T_ON, the error of eq. 3.1 is at most {worst[0]:.1f} % and that "
        f"of d = 1 − (E[S] + E[D]) / T_ON at most {worst[1]:.1f} %; at the smallest T_ON they are "
        f"{smallest[0]:.1f} % and {smallest[1]:.1f} %."
    )
    return Section(name, title, sentence, picture, (_error_table(loss),), (f"{why_g(loss)}.",))


def why_g(loss: Results) -> str:
    """Explains why eq. 3.1 with g of eq. 3.4 differs from the measurements."""
    shares = ", ".join(
        f"{100 * row.mean_diff_s / row.t_diff_s:.0f} % on {row.hosts} hosts" for row in loss.rates
    )
    return (
        "Eq. 3.1 counts the time of g from T_diff before the subscriber leaves. A notification "
        "that takes D is in time if it is published more than D before that, so the integral of g "
        "is T_diff − E[D]. The thesis uses the share of brokers that do not have the notification "
        "yet (eq. 3.4), whose integral is E[D]. Both are equal only if E[D] is half of "
        f"T_diff, the longest delay; here it is {shares}. The start of a subscription has no such "
        "error, and d = 1 − (E[S] + E[D]) / T_ON has none at all, for curves of any shape"
    )


def _smallest(losses: Sequence[Loss]) -> list[Loss]:
    hosts = dict.fromkeys(each.hosts for each in losses)
    return [min((e for e in losses if e.hosts == h), key=lambda e: e.t_on_s) for h in hosts]


def _rapidity_section(loss: Results) -> Section:
    name, title = "002-9", _TITLES["002-9"]
    picture = _error_picture(loss, name, title, _MODELS[2:])
    worst = max(abs(each.error_002_percent) for each in loss.losses)
    found = ", ".join(f"{row.rapidity:.2f} on {row.hosts} hosts" for row in loss.rates)
    sentence = (
        f"With r from our own curves ({found}; the paper's is {RAPIDITY:g}) the model is within "
        f"{worst:.1f} % of the measured d at every T_ON."
    )
    return Section(name, title, sentence, picture, (_error_table(loss),))


def _error_picture(
    loss: Results, name: str, title: str, models: Sequence[tuple[str, Callable[[Loss], float]]]
) -> Picture:
    panels = []
    for words, of in models:
        lines = tuple(
            Line(
                f"{hosts} hosts",
                exactly((each.t_on_s, of(each)) for each in loss.losses if each.hosts == hosts),
                look,
            )
            for look, hosts in enumerate(dict.fromkeys(each.hosts for each in loss.losses))
        )
        panels.append(
            Panel(
                capital(words),
                "T_ON, seconds",
                "error",
                lines,
                (0.0, ""),
                percent=True,
                whole=False,
            )
        )
    description = "Measured d against the model's; below 0 the model predicts more than measured."
    return Picture(name, title, description, tuple(panels))


def _error_table(loss: Results) -> Table:
    rows = tuple(
        (
            f"{each.hosts}",
            f"{each.t_on_s:.1f}",
            f"{each.d:.3f} ± {each.margin:.3f}",
            *(f"{d:.3f}" for d in (each.d_model, each.d_means, each.d_002)),
            *(f"{signed(of(each))} %" for _, of in _MODELS),
        )
        for each in loss.losses
    )
    head = ("hosts", "T_ON, s", "measured d", "eq. 3.1", "means", "002")
    return Table(
        "Measured d, d of the models and their errors; ± is half the 95 % interval of a share",
        (*head, *(f"error: {words}" for words in ("eq. 3.1", "means", "002"))),
        rows,
    )
