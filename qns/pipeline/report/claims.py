"""Claims: statements of the thesis and aims of ours, judged by the tables of one run.

Each claim states its rule, so that a reader can disagree with it. If the run has no numbers for a
claim, the claim says what to run. Percentages saved are always against the trivial solution: every
change is sent to and stored by all other peers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from qns.pipeline.report.beyond_claims import cost_claims, exact_claims, tree_claims
from qns.pipeline.report.results import Counts, Results, Sizes, column, differences, over_seeds
from qns.pipeline.report.shares import mappings_of, saving, why_missing
from qns.report.claim import Claim
from qns.report.statistics import (
    Estimate,
    chance_of,
    percent_text,
    points_text,
    spearman,
)

TARGET: Final = 75.0
"""The percentage that figures 5.8a and 5.8b reach in the thesis."""
MUCH_LESS: Final = 50.0
"""The largest percentage of delivered that counts as much less (5.10)."""
MOST_CHANCE: Final = 5.0
"""The largest percentage for the probability of a rank correlation by chance (5.9)."""
FEWEST_COMPARED: Final = 4
"""The fewest organisations for a meaningful rank correlation."""


def claims(results: Results) -> list[Claim]:
    return [
        *_growth_claims(results),
        *_reach_claims(results, "5.8a", "Messages saved reach", "messages", "changes"),
        *_reach_claims(results, "5.8b", "Table size saved reaches", "rows", "live"),
        _spread_claim(results),
        *_notification_claims(results),
        *exact_claims(results),
        *tree_claims(results),
        *cost_claims(results),
    ]


def _growth_claims(results: Results) -> Iterator[Claim]:
    claim = "Messages saved grow with the number of subscriptions"
    value = saving("messages_both", "changes")
    for mapping in mappings_of(results):
        sizes = results.sizes("subscriptions", results.base, mapping)
        if len(sizes) < 2:
            why = why_missing(results, "subscriptions", mapping, "give several --subscriptions")
            yield Claim("5.8a", claim, None, "", why, mapping)
            continue
        first, last = min(sizes), max(sizes)
        numbers = (
            f"{percent_text(over_seeds(sizes[first], value))} at {first:,} per organisation, "
            f"{percent_text(over_seeds(sizes[last], value))} at {last:,}"
        )
        fall = _first_fall(sizes, value)
        whole = differences(sizes[first], sizes[last], value)
        yield Claim(
            "5.8a",
            claim,
            not fall and whole is not None and whole.low > 0,
            numbers + fall,
            "yes when more is saved at the largest size than at the smallest, and no step between "
            "sizes falls, each by more than the 95 % interval over seeds",
            mapping,
        )


def _first_fall(sizes: Sizes, value: Callable[[Counts], float]) -> str:
    for here, there in pairwise(sorted(sizes)):
        change = differences(sizes[here], sizes[there], value)
        if change and change.high < 0:
            return f"; from {here:,} to {there:,} it falls by {points_text(change)} points"
    return ""


def _reach_claims(
    results: Results, figure: str, words: str, what: str, trivial: str
) -> Iterator[Claim]:
    claim = f"{words} {TARGET:g} %"
    for mapping in mappings_of(results):
        sizes = results.sizes("subscriptions", results.base, mapping)
        if not sizes:
            why = why_missing(results, "subscriptions", mapping, "--subscriptions")
            yield Claim(figure, claim, None, "", why, mapping)
            continue
        shares = {
            size: over_seeds(seeds, saving(f"{what}_both", trivial))
            for size, seeds in sizes.items()
        }
        reached = [size for size in sorted(shares) if shares[size].mean >= TARGET]
        size = reached[0] if reached else max(shares, key=lambda each: (shares[each].mean, -each))
        alone, contained = (
            over_seeds(sizes[size], saving(f"{what}_{part}", trivial))
            for part in ("mapping", "containment")
        )
        larger = "mapping" if alone.mean > contained.mean else "containment"
        numbers = (
            f"{'from' if reached else 'at best, at'} {size:,} per organisation: "
            f"{percent_text(shares[size])}, more of it by {larger} (mapping alone "
            f"{percent_text(alone)}, containment alone {percent_text(contained)})"
        )
        yield Claim(
            figure,
            claim,
            bool(reached),
            numbers + _at_the_end(shares, size),
            "yes when the mean over seeds reaches it at one of the sizes; the smallest is named",
            mapping,
        )


def _at_the_end(shares: dict[int, Estimate], named: int) -> str:
    """The share at the largest size, or its last change if that size is already named."""
    last = max(shares)
    if named != last:
        return f"; at {last:,} {percent_text(shares[last])}"
    if shares[last].mean >= TARGET or len(shares) < 2:
        return ""
    before = sorted(shares)[-2]
    change = f"{shares[last].mean - shares[before].mean:+.1f}".replace("-", "−")
    return f"; {change} points since {before:,}"


def _spread_claim(results: Results) -> Claim:
    claim = "Table sizes of organisations follow what they host"
    for mapping in results.mappings:
        hosts = results.hosts(results.base, mapping)
        producers = results.producers(results.base, mapping)
        names = [name for name in producers if name in hosts]
        hosted = [float(len(hosts[name])) for name in names]
        common = set.intersection(*({*producers[name]} for name in names)) if names else set()
        if len(names) < FEWEST_COMPARED or len(set(hosted)) < 2 or not common:
            continue
        size = max(common)
        rows, asked = (
            [over_seeds(producers[name][size], column(counted)).mean for name in names]
            for counted in ("rows_both", "rows_mapping")
        )
        extent = (
            f"tables from {min(rows):,.0f} to {max(rows):,.0f} rows at {size:,} subscriptions per "
            "organisation"
        )
        correlation = spearman(hosted, rows)
        if correlation is None:
            return Claim("5.9", claim, False, extent, "all tables have the same size", mapping)
        chance = 100 * chance_of(correlation, len(names))
        by_asked = spearman(asked, rows)
        also = "" if by_asked is None else f", with the rows asked for {by_asked:.2f}"
        return Claim(
            "5.9",
            claim,
            correlation > 0 and chance <= MOST_CHANCE,
            f"Spearman's rank correlation with the number of classes hosted {correlation:.2f}"
            f"{also} ({len(names)} organisations); {extent}",
            "yes when the first is positive and its probability by chance at most "
            f"{MOST_CHANCE:g} % (here {_chance_text(chance)})",
            mapping,
        )
    why = (
        f"this needs at least {FEWEST_COMPARED} organisations that do not all host equally many "
        "classes: --mapping partial or both"
    )
    return Claim("5.9", claim, None, "", why)


def _notification_claims(results: Results) -> Iterator[Claim]:
    claim = "Much less is sent between peers than delivered to users"
    setting = results.setting_of("notifications")
    for mapping in mappings_of(results):
        sizes = results.sizes("notifications", setting, mapping)
        if not sizes:
            why = why_missing(results, "notifications", mapping, "--publications")
            yield Claim("5.10", claim, None, "", why, mapping)
            continue
        last = max(sizes)
        if not all(at["delivered"] for at in sizes[last].values()):
            why = "in some seed nothing was delivered: more --publications"
            yield Claim("5.10", claim, None, "", why, mapping)
            continue
        share = over_seeds(sizes[last], lambda at: 100 * at["sent"] / at["delivered"])
        least = over_seeds(sizes[last], saving("sent", "delivered_remote"))
        yield Claim(
            "5.10",
            claim,
            share.mean <= MUCH_LESS,
            f"sent is {percent_text(share)} of delivered at {last:,} publications; "
            f"{percent_text(least)} of the trivial solution's messages are saved",
            f"yes when sent is at most {MUCH_LESS:g} % of delivered at the most publications",
            mapping,
        )


def _chance_text(chance: float) -> str:
    return "below 0.1 %" if chance < 0.1 else f"{chance:.1f} %"
