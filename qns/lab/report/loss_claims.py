"""Claims of chapter 3 and of paper 002 about loss, judged by the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from qns.lab.experiments.loss_experiment import PAPER, Results
from qns.lab.experiments.loss_model import RAPIDITY, d_by_rapidity, d_by_rates
from qns.lab.report.loss_sections import why_g
from qns.lab.report.model_sections import (
    BROKERS,
    RATES,
    SIZES,
    T_ON_S,
    T_ONS,
    largest_gap_of_eq_3_6,
)
from qns.lab.report.words import signed
from qns.report.claim import Claim

NEAR_LOGISTIC: Final = 0.1
"""The largest distance of a measured share from the logistic."""
NEAR_EQ_3_6: Final = 0.01
"""The largest distance of eq. 3.6 from eq. 3.1."""
WITHIN_PERCENT: Final = 6.0
"""The largest error of the model (fig. 3.12)."""
WITHIN_002_PERCENT: Final = 5.0
"""The largest error of the model of paper 002."""
FAST: Final = 1.5
"""The update rate from which the thesis calls a system fast (fig. 3.9)."""


def model_claims() -> Iterator[Claim]:
    """Claims about formulas, which the thesis reads off its own curves."""
    for figure, words, rises in (
        ("3.7", "d against α follows eq. 3.6, and rises", _rises_with_rate()),
        ("3.8", "d against T_ON follows eq. 3.6, and rises", _rises_with_t_on()),
        ("3.9", "d against N follows eq. 3.6, and falls", _falls_with_brokers()),
    ):
        gap = largest_gap_of_eq_3_6(figure)
        yield Claim(
            figure,
            words,
            rises and gap <= NEAR_EQ_3_6,
            f"eq. 3.6 is within {gap:.4f} of eq. 3.1 with exact integrals and "
            "T = (2/α) ln(N − 1), at all points of the figure",
            f"yes when d is monotonic and within {NEAR_EQ_3_6:g} of eq. 3.1 wherever "
            "T_ON ≥ T_sub + T_diff. Eq. 3.6 has ln N in place of ln(N − 1); the difference grows "
            "with fewer brokers and a shorter T_ON, up to 0.024 with 10 brokers",
        )
    least = min(d_by_rates(T_ON_S, brokers, FAST, FAST) for brokers in SIZES)
    yield Claim(
        "3.9",
        f"From α = {FAST:g} on d stays above 0.9 however many brokers there are",
        least > 0.9,
        f"at T_ON = {T_ON_S:g} s the least is {least:.3f}, with {max(SIZES):,} brokers",
        f"yes when it is above 0.9 for every N up to {max(SIZES):,}; by eq. 3.6 it falls below "
        "that beyond e^11.25, about 77,000 brokers",
    )


def _rises_with_rate() -> bool:
    return all(
        d_by_rates(t_on_s, BROKERS, less, less) <= d_by_rates(t_on_s, BROKERS, more, more)
        for t_on_s in T_ONS
        for less, more in pairwise(RATES)
    )


def _rises_with_t_on() -> bool:
    return all(
        d_by_rates(less, BROKERS, rate, rate) <= d_by_rates(more, BROKERS, rate, rate)
        for rate in RATES
        for less, more in pairwise(T_ONS)
    )


def _falls_with_brokers() -> bool:
    return all(
        d_by_rates(T_ON_S, less, rate, rate) >= d_by_rates(T_ON_S, more, rate, rate)
        for rate in RATES
        for less, more in pairwise(SIZES)
    )


def loss_claims(loss: Results) -> Iterator[Claim]:
    yield _shape_claim(loss)
    yield _order_claim(loss)
    yield _values_claim(loss)
    if loss.losses:
        yield _growth_claim(loss)
        yield from _error_claims(loss)
        yield _rapidity_claim(loss)
        yield _printed_rapidity_claim(loss)


def _shape_claim(loss: Results) -> Claim:
    worst = max(loss.curves, key=lambda curve: curve.gap)
    gaps = ", ".join(f"{each.name} on {each.hosts} hosts {each.gap:.3f}" for each in loss.curves)
    return Claim(
        "3.10",
        "F and G have the shape of the logistic f and g with s, r by equal integrals",
        worst.gap <= NEAR_LOGISTIC,
        f"largest distance between measured and fitted share: {gaps}",
        f"yes when no curve is farther than {NEAR_LOGISTIC:g} from its logistic anywhere; their "
        "areas, which alone determine d, are equal",
    )


def _order_claim(loss: Results) -> Claim:
    by_topology = [each.r > each.s for of_hosts in loss.rates_by_topology for each in of_hosts]
    rates = "; ".join(f"{row.hosts} hosts s {row.s:.2f}, r {row.r:.2f}" for row in loss.rates)
    return Claim(
        "table-3.1",
        "r > s, and both fall as the network grows",
        loss.is_in_order,
        f"{rates}; r > s in {sum(by_topology)} of {len(by_topology)} single topologies",
        "yes when it holds for the curves over all topologies",
    )


def _values_claim(loss: Results) -> Claim:
    """Compares ratios, which do not depend on the unknown handling times of the thesis."""
    rows = {row.hosts: row for row in loss.rates if row.hosts in PAPER}
    claim = "The rates fall by about as much as the thesis's from the smallest to the largest"
    if len(rows) < 2:
        return Claim("table-3.1", claim, None, "", "this needs networks of the thesis's sizes")
    small, large = min(rows), max(rows)
    ours = [rows[large].s / rows[small].s, rows[large].r / rows[small].r]
    theirs = [PAPER[large][which] / PAPER[small][which] for which in (0, 1)]
    far = max(abs(one / other - 1) for one, other in zip(ours, theirs, strict=True))
    return Claim(
        "table-3.1",
        claim,
        far <= 0.25,
        f"from {small} to {large} hosts s falls to {100 * ours[0]:.0f} % and r to "
        f"{100 * ours[1]:.0f} % (thesis: {100 * theirs[0]:.0f} % and {100 * theirs[1]:.0f} %)",
        "yes when both are within a quarter of the thesis's shares; the values themselves depend "
        "on the handling time of a message, which the thesis does not give",
    )


def _growth_claim(loss: Results) -> Claim:
    hosts = dict.fromkeys(each.hosts for each in loss.losses)
    rows = [[each for each in loss.losses if each.hosts == size] for size in hosts]
    ends = "; ".join(
        f"{of[0].hosts} hosts from {of[0].d:.3f} at T_ON = {of[0].t_on_s:.1f} s to {of[-1].d:.3f} "
        f"at {of[-1].t_on_s:.0f} s"
        for of in rows
    )
    return Claim(
        "3.11",
        "Measured d grows with T_ON and is still below 1 at the longest",
        all(
            less.d <= more.d + less.margin + more.margin
            for of in rows
            for less, more in pairwise(of)
        )
        and all(of[0].d < of[-1].d < 1 for of in rows),
        ends,
        "yes when no step falls by more than its intervals and some notifications are lost even "
        "at the longest T_ON",
    )


def _error_claims(loss: Results) -> Iterator[Claim]:
    for words, of, why in (
        ("eq. 3.1 as the errata read it", "error_percent", why_g(loss)),
        ("d = 1 − (E[S] + E[D]) / T_ON", "error_means_percent", ""),
    ):
        worst = max(loss.errors_percent(of=of), key=abs)
        everywhere = max(loss.errors_percent(of=of, but=0), key=abs)
        holds = abs(worst) <= WITHIN_PERCENT
        rule = f"yes when no T_ON but the smallest of each network is beyond {WITHIN_PERCENT:g} %"
        yield Claim(
            "3.12",
            f"The model is within {WITHIN_PERCENT:g} % but for the smallest T_ON",
            holds,
            f"its largest error is {signed(worst)} %, and {signed(everywhere)} % over all T_ON",
            rule if holds or not why else f"{rule}. {why}",
            words,
        )


def _rapidity_claim(loss: Results) -> Claim:
    worst = max((each.error_002_percent for each in loss.losses), key=abs)
    found = ", ".join(f"{row.rapidity:.2f} on {row.hosts} hosts" for row in loss.rates)
    return Claim(
        "002-9",
        f"The model of paper 002 is within {WITHIN_002_PERCENT:g} %",
        abs(worst) <= WITHIN_002_PERCENT,
        f"its largest error is {signed(worst)} % with r from our curves ({found})",
        "yes when the error is not larger at any T_ON from T_sub + T_diff on. Paper 002 reads g "
        "from the end, so its integral is T_diff − E[D], which is correct",
    )


def _printed_rapidity_claim(loss: Results) -> Claim:
    rows = {row.hosts: row for row in loss.rates}
    errors = []
    for each in loss.losses:
        row = rows[each.hosts]
        model = d_by_rapidity(each.t_on_s, row.t_sub_s, row.t_diff_s)
        errors.append(100 * (each.d - model) / each.d if each.d else -100.0)
    worst = max(errors, key=abs)
    return Claim(
        "002-9",
        f"The same with r = {RAPIDITY:g} as printed",
        abs(worst) <= WITHIN_002_PERCENT,
        f"its largest error is {signed(worst)} %",
        f"yes when no T_ON is beyond {WITHIN_002_PERCENT:g} %. r is a property of the measured "
        "system: it follows from the area under its curves and is not a constant",
    )
