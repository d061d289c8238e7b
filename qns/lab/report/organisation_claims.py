"""Claims of thesis 4.5 about SOCBR and pbSOCBR, judged against runs of CBR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from qns.lab.experiments.self_organisation import CBR, RATIOS, SOCBR, Window
from qns.lab.report.proximity_sections import (
    CHOSEN,
    LIGHTEST,
    Starts,
    hops,
    latency,
    longer_percent,
)
from qns.lab.report.runs import (
    Runs,
    between,
    discovery_percent,
    even_text,
    evens_text,
    forwarders,
    organising,
)
from qns.lab.report.verdicts import RULE, above, all_of, at_least, at_most, below
from qns.lab.report.words import number_text, signed_text
from qns.report.claim import Claim
from qns.report.statistics import Estimate, fit_exponent, fit_text, percent_text

REMOVED: Final = 60.0
"""The least percentage of pure forwarders that counts as about the thesis's 70, or more."""
EVEN: Final = 12.0
"""The break-even R of SOCBR in the thesis."""
EVEN_WITH_BOUND: Final = 30.0
"""The break-even R of pbSOCBR in the thesis."""
NEAR: Final = 1.5
"""A break-even up to this many times the thesis's counts as near it."""
FEWER: Final = 25.0
"""The least percentage of messages that counts as about the thesis's 30, or more."""
ALIKE: Final = 2.0
"""Variants within this percentage of messages count as equal."""
DISCOVERY: Final = (80.0, 100.0)
"""The range of percentages that counts as about 90."""
LONGER: Final = 10.0
"""The percentage of latency that pbSOCBR may add."""


def organisation_claims(runs: Runs, reaches: Mapping[str, float]) -> Iterator[Claim]:
    """`reaches` is the percentage of brokers that a limited discovery reaches at first."""
    yield _forwarders_claim(runs)
    yield _associativity_claim(runs)
    yield _break_even_claim(runs, "4.14", SOCBR, EVEN)
    yield _fewer_claim(runs)
    yield _sub_linear_claim(runs)
    yield _discovery_claim(runs)
    yield from _ttl_claims(runs, reaches)


def _forwarders_claim(runs: Runs) -> Claim:
    removed = runs.fewer_percent(SOCBR, forwarders)
    way_in = [runs.mean(each, lambda w: w.way_in) for each in (CBR, SOCBR)]
    holds = at_least(removed, REMOVED)
    rule = f"yes when at least {REMOVED:g} % are removed over all windows{RULE}"
    why = (
        ". SOCBR links brokers with common interests, which saves forwarders between them "
        f"({percent_text(runs.fewer_percent(SOCBR, between))} fewer). It does not shorten the "
        "path of a notification from a publisher anywhere in the tree to those brokers "
        f"({number_text(way_in[0])} forwarders with CBR, {number_text(way_in[1])} with SOCBR); and "
        "AS compares two neighbours at a time, while a broker with several subscriptions has "
        "different interests in common with different brokers. The figure 'shapes' shows how much "
        "depends on the subscriptions, about which the thesis says little"
    )
    return Claim(
        "4.12",
        "SOCBR removes about 70 % of the pure forwarders",
        holds,
        f"{percent_text(removed)} over all windows, "
        f"{percent_text(runs.fewer_percent(SOCBR, forwarders, runs.last))} at {runs.last:,} "
        f"subscriptions ({number_text(runs.there(CBR, runs.last, hops))} hops with CBR, "
        f"{number_text(runs.there(SOCBR, runs.last, hops))} with SOCBR, "
        f"{number_text(runs.there(CBR, runs.last, lambda w: w.ideal))} ideal)",
        rule if holds else rule + why,
    )


def _associativity_claim(runs: Runs) -> Claim:
    higher = all_of(*(above(runs.more_than_cbr(SOCBR, _as, size), 0) for size in runs.sizes))
    last = {each: runs.there(each, runs.last, _as) for each in (CBR, SOCBR)}
    halves = {
        each: next(size for size in runs.sizes if runs.there(each, size, _as).mean >= half)
        for each, half in ((each, last[each].mean / 2) for each in last)
    }
    return Claim(
        "4.13",
        "Associativity climbs faster and higher with SOCBR",
        all_of(higher, halves[SOCBR] <= halves[CBR]),
        f"AS {number_text(last[SOCBR])} against {number_text(last[CBR])} at {runs.last:,} "
        f"subscriptions; half of that at {halves[SOCBR]:,} and {halves[CBR]:,}",
        "yes when AS is above CBR's at every size and reaches half of its last value no later"
        f"{RULE}",
    )


def _as(window: Window) -> float:
    return window.associativity


def _break_even_claim(runs: Runs, figure: str, variant: str, target: float) -> Claim:
    even = runs.break_even(variant)
    mean_hops = [runs.mean(each, hops).mean for each in (CBR, variant)]
    cost = runs.there(variant, runs.last, organising).mean
    limit = round(NEAR * target)
    holds = at_least(runs.fewer_messages_percent(variant, limit), 0)
    rule = (
        f"yes when the break-even is at R = {limit} or below, {NEAR:g} times the thesis's: when "
        f"there are no more messages than with CBR at that R{RULE}"
    )
    saved = f"{mean_hops[0] - mean_hops[1]:.2f}".replace("-", "−")
    why = (
        f". Self-organisation costs {cost:.1f} messages per subscription and saves {saved} hops "
        "per notification; the break-even is their quotient"
    )
    return Claim(
        figure,
        f"Break-even near R = {target:g}",
        holds,
        f"{even_text(even)} on the mean of seeds ({evens_text(runs.break_evens(variant))})",
        rule if holds else rule + why,
    )


def _fewer_claim(runs: Runs) -> Claim:
    ratio = RATIOS[-1]
    fewer = runs.fewer_messages_percent(SOCBR, ratio)
    bound = runs.fewer_percent(SOCBR, hops)
    holds = at_least(fewer, FEWER)
    rule = f"yes when at least {FEWER:g} % fewer are sent at R = {ratio}{RULE}"
    return Claim(
        "4.14",
        "About 30 % fewer messages for large R",
        holds,
        f"{percent_text(fewer)} fewer at R = {ratio}",
        rule
        if holds
        else f"{rule}. For any R, the messages saved cannot exceed the hops saved, which are "
        f"{percent_text(bound)} by figure 4.12",
    )


def _sub_linear_claim(runs: Runs) -> Claim:
    groups = [
        [(float(w.subscriptions), organising(w)) for w in runs.windows(SOCBR, seed)]
        for seed in runs.seeds()
    ]
    fit = fit_exponent(groups)
    claim = "Messages of self-organisation per subscription grow less than linearly"
    if fit is None:
        return Claim("4.15", claim, None, "", "this needs at least two sizes with such messages")
    first, last = (runs.there(SOCBR, size, organising) for size in (runs.sizes[0], runs.last))
    return Claim(
        "4.15",
        claim,
        below(Estimate(fit.exponent, 2 * (fit.error or 0.0), len(groups)), 1),
        f"as subscriptions to the power of {fit_text(fit)}: {number_text(first, 1)} at "
        f"{runs.sizes[0]:,}, {number_text(last, 1)} at {runs.last:,}",
        "yes when the fitted exponent is below 1 by two standard errors, open within those",
    )


def _discovery_claim(runs: Runs) -> Claim:
    share = runs.there(SOCBR, runs.last, discovery_percent)
    first = runs.there(SOCBR, runs.sizes[0], discovery_percent)
    low, high = DISCOVERY
    inside = [
        size
        for size in runs.sizes
        if low <= runs.there(SOCBR, size, discovery_percent).mean <= high
    ]
    half = runs.sizes[(len(runs.sizes) - 1) // 2]
    early = runs.there(SOCBR, half, lambda w: float(w.swaps)).mean
    swaps = early, runs.there(SOCBR, runs.last, lambda w: float(w.swaps)).mean - early
    since = f"{low:g} % from {inside[0]:,} on" if inside else f"nowhere {low:g} %"
    return Claim(
        "4.15",
        "About 90 % of these messages are discovery",
        all_of(at_least(share, low), share.mean <= high),
        f"{percent_text(share)} of all up to {runs.last:,} subscriptions, "
        f"{percent_text(first)} up to {runs.sizes[0]:,}; {since}",
        f"yes when it is from {low:g} to {high:g} % over the whole run{RULE}. The rest is the "
        f"cost of swaps: {swaps[0]:.0f} of them in the first {half:,} subscriptions, "
        f"{swaps[1]:.0f} in the later ones",
    )


def _ttl_claims(runs: Runs, reaches: Mapping[str, float]) -> Iterator[Claim]:
    low, high = RATIOS[0], RATIOS[-1]
    for limit, reach in reaches.items():
        cheap = runs.fewer_messages_percent(limit, low, SOCBR)
        worse = runs.fewer_messages_percent(limit, high, SOCBR)
        is_worse = below(worse, 0)
        if is_worse is None and worse.low > -ALIKE and worse.high < ALIKE:
            is_worse = False
        yield Claim(
            "4.16",
            "A limited TTL is cheaper at small R and worse at large R",
            all_of(above(cheap, 0), is_worse),
            f"{percent_text(cheap)} fewer messages than without a limit at R = {low}, "
            f"{percent_text(worse)} at R = {high}",
            f"yes when both hold; not worse when the interval is within ±{ALIKE:g} %{RULE}. A "
            f"discovery reaches {reach:.0f} % of the other brokers in the first tree; at large R "
            "the limit can only lose the hops that brokers beyond it would save",
            limit,
        )


def proximity_claims(starts: Starts) -> Iterator[Claim]:
    """Judges each claim from both first trees, because the thesis describes its own as both."""
    for claim in (_longer_claim, _gain_claim, _bounded_break_even_claim, _little_longer_claim):
        for start, runs in starts.items():
            yield replace(claim(runs), mapping=start)


def _longer_claim(runs: Runs) -> Claim:
    longer = longer_percent(runs, SOCBR)
    worst = max(
        100 * (runs.at(SOCBR, seed, size).latency_ms / runs.at(CBR, seed, size).latency_ms - 1)
        for seed in runs.seeds()
        for size in runs.sizes
        if runs.at(CBR, seed, size).latency_ms
    )
    return Claim(
        "4.17",
        "SOCBR alone lengthens the latency",
        above(longer, 0),
        f"{signed_text(longer)} over all windows, at worst {worst:+.0f} % (the thesis's worst case "
        "is +50 %)".replace("-", "−"),
        f"yes when it is longer over all windows{RULE}. {number_text(runs.mean(CBR, latency), 0)} "
        f"ms become {number_text(runs.mean(SOCBR, latency), 0)}. The loss depends on how near "
        "neighbours of the first tree are to each other, because SOCBR ignores latency",
    )


def _gain_claim(runs: Runs) -> Claim:
    saved = {each: _hops_saved(runs, each) for each in (CHOSEN, LIGHTEST, SOCBR)}
    most = runs.over_seeds(lambda seed: _gain(runs, CHOSEN, seed) - _gain(runs, SOCBR, seed) / 2)
    holds = all_of(above(saved[SOCBR], 0), above(most, 0))
    rule = f"yes when SOCBR saves hops and this more than half as many{RULE}"
    return Claim(
        "4.18",
        "d_b = 100 ms keeps most of SOCBR's gain in hops",
        holds,
        f"it saves {number_text(saved[CHOSEN])} hops per notification, SOCBR "
        f"{number_text(saved[SOCBR])}: {_share_text(saved[CHOSEN], saved[SOCBR])} of it",
        rule
        if holds
        else f"{rule}. There are two differences from SOCBR: fewer neighbours to choose from, and "
        "the removed link is the farthest of those lighter than the new one, not the lightest. "
        "With the same bound and the lightest link cut it saves "
        f"{number_text(saved[LIGHTEST])} hops, {_share_text(saved[LIGHTEST], saved[SOCBR])} of "
        "SOCBR's; the rest is the effect of the bound",
    )


def _hops_saved(runs: Runs, variant: str) -> Estimate:
    return runs.over_seeds(lambda seed: _gain(runs, variant, seed))


def _gain(runs: Runs, variant: str, seed: int) -> float:
    return runs.mean_of(CBR, seed, hops) - runs.mean_of(variant, seed, hops)


def _share_text(part: Estimate, whole: Estimate) -> str:
    return (
        f"{100 * part.mean / whole.mean:.0f} %".replace("-", "−") if whole.mean > 0 else "nothing"
    )


def _bounded_break_even_claim(runs: Runs) -> Claim:
    return _break_even_claim(runs, "4.19", CHOSEN, EVEN_WITH_BOUND)


def _little_longer_claim(runs: Runs) -> Claim:
    longer = longer_percent(runs, CHOSEN)
    holds = at_most(longer, LONGER)
    rule = f"yes when it is at most {LONGER:g} % above CBR's over all windows{RULE}"
    return Claim(
        "4.20",
        f"d_b = 100 ms adds at most {LONGER:g} % of latency",
        holds,
        f"{signed_text(longer)} over all windows "
        f"({number_text(runs.mean(CBR, latency), 0)} ms with CBR; SOCBR "
        f"{signed_text(longer_percent(runs, SOCBR))})",
        rule
        if holds
        else f"{rule}. Where neighbours are much nearer than the bound, the bound excludes hardly "
        "any new neighbour",
    )
