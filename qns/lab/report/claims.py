"""Claims: the statements of the papers about loss and routing, judged by the numbers of one run.

Each claim states its rule, so that a reader can disagree with it. Where the thesis says 'about' or
'near', the rule gives a number. These numbers were chosen after a pilot on one seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from qns.lab.experiments.associativity_cost import Cost
from qns.lab.experiments.comparison import LocalityRow
from qns.lab.experiments.findings import Findings, SeededLocality, SeededStrategy
from qns.lab.experiments.self_organisation import reaches
from qns.lab.report.comparison_sections import by_locality, by_strategy, hops_of_cbr, mean_hops
from qns.lab.report.loss_claims import loss_claims, model_claims
from qns.lab.report.organisation_claims import organisation_claims, proximity_claims
from qns.lab.report.proximity_sections import starts_of
from qns.lab.report.runs import Runs
from qns.lab.report.verdicts import RULE, above, all_of, at_least
from qns.report.claim import Claim
from qns.report.statistics import Estimate, estimate, percent_text

NEAR_FLOODING: Final = 90.0
"""Percentage of flooding's hops."""
EXACT: Final = 1e-9
"""The largest difference from the grid."""
SOON_S: Final = 1.0
"""The longest time for the comparison of thousands of rectangles."""


def claims(findings: Findings) -> list[Claim]:
    """The claims that the findings can judge, in the order of figures."""
    judged = list(model_claims())
    if findings.loss is not None:
        judged += loss_claims(findings.loss)
    if findings.locality:
        judged += _locality_claims(findings.locality)
    if findings.flat:
        reach = reaches(findings.setups.organisation)
        judged += organisation_claims(Runs(findings.flat), reach)
    if findings.transit_stub:
        judged += proximity_claims(starts_of(findings.transit_stub, findings.near))
    if findings.strategies:
        judged += _strategy_claims(findings.strategies)
    if findings.costs:
        judged.append(_cost_claim(findings.costs))
    return judged


# --- figure 4.2 -----------------------------------------------------------------------------------


def _locality_claims(rows: tuple[SeededLocality, ...]) -> Iterator[Claim]:
    for case in dict.fromkeys(each.case for each in rows):
        found = by_locality(rows, case)
        rises = [
            above(_change(found[here], found[there]), 0) is True for here, there in pairwise(found)
        ]
        first, last = found[min(found)], found[max(found)]
        spared = _fewer(first, last)
        yield Claim(
            "4.2",
            "CBR's hops fall as locality grows",
            all_of(not any(rises), above(spared, 0)),
            f"{mean_hops(first, hops_of_cbr).mean:.1f} hops without, "
            f"{mean_hops(last, hops_of_cbr).mean:.1f} "
            f"with full locality: {percent_text(spared)} fewer",
            "yes when the hops at full locality are fewer and no step rises by more than its "
            f"interval{RULE}",
            case.name,
        )
        share = mean_hops(first, lambda row: 100 * row.cbr / row.flooding)
        wanting = mean_hops(first, lambda row: row.ideal)
        holds = at_least(share, NEAR_FLOODING)
        rule = f"yes when it takes at least {NEAR_FLOODING:g} % of flooding's hops{RULE}"
        yield Claim(
            "4.2",
            "Without locality CBR is near flooding",
            holds,
            f"{percent_text(share)} of flooding's hops",
            rule
            if holds
            else f"{rule}. Without locality the hops depend on how many brokers want an event: "
            f"{wanting.mean:.1f} of {mean_hops(first, lambda row: row.flooding).mean + 1:.0f} with "
            f"{case.name}",
            case.name,
        )


def _change(here: dict[int, LocalityRow], there: dict[int, LocalityRow]) -> Estimate:
    return estimate([there[seed].cbr - here[seed].cbr for seed in sorted(here)])


def _fewer(here: dict[int, LocalityRow], there: dict[int, LocalityRow]) -> Estimate:
    return estimate([100 * (1 - there[seed].cbr / here[seed].cbr) for seed in sorted(here)])


# --- table 2.1 ------------------------------------------------------------------------------------


def _strategy_claims(rows: tuple[SeededStrategy, ...]) -> Iterator[Claim]:
    found = by_strategy(rows)
    by_seed: dict[int, set[float]] = {}
    for seed, row in rows:
        by_seed.setdefault(seed, set()).add(row.ideal_hops)
    ideals = sorted(ideal for some in by_seed.values() for ideal in some)
    yield Claim(
        "table-2.1",
        "Every strategy brings every notification to the same brokers",
        all(len(some) == 1 for some in by_seed.values()),
        f"{len(found)} strategies, {len(by_seed)} seeds: from {ideals[0]:.2f} to {ideals[-1]:.2f} "
        "interested brokers per notification, the same for all strategies of a seed",
        "yes when the mean number of interested brokers reached is equal for all strategies of "
        "each seed. The history checker tests that each strategy delivers exactly what it should",
    )
    qns = [name for name in found if name.startswith("QNS")]
    if qns and "CBR" in found:
        hops = {
            name: estimate([row.hops_per_notification for row in found[name]]) for name in found
        }
        ideal = estimate([row.ideal_hops for row in found["CBR"]])
        yield Claim(
            "table-2.1",
            "QNS has no pure forwarders and CBR has",
            all(row.pure_forwarders == 0 for name in qns for row in found[name])
            and hops["CBR"].low > ideal.mean,
            f"{', '.join(f'{name} {hops[name].mean:.2f}' for name in (*qns, 'CBR'))} hops per "
            f"notification, {ideal.mean:.2f} ideal",
            "yes when no notification of QNS reaches a broker that does not want it",
        )


# --- associativity --------------------------------------------------------------------------------


def _cost_claim(costs: tuple[Cost, ...]) -> Claim:
    last = costs[-1]
    worst = max(each.difference for each in costs)
    return Claim(
        "associativity",
        "Associativity of thousands of rectangles is exact and fast",
        worst <= EXACT and last.sweep_s <= SOON_S and last.rectangles >= 1_000,
        f"{1_000 * last.sweep_s:,.1f} ms for two zones of {last.rectangles:,} rectangles; at most "
        f"{worst:.1e} from the grid at every size",
        f"yes when it is within {EXACT:g} of a grid of unit cells (which is exact, as all corners "
        f"are whole numbers) and the largest takes at most {SOON_S:g} s",
    )
