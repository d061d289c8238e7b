"""Claims beyond the thesis: exact merging, diffusion trees, and the growth of cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qns.pipeline.report.results import Results, Setting, Sizes, column, over_seeds
from qns.pipeline.report.shares import mappings_of, saving, why_missing
from qns.report.claim import Claim
from qns.report.statistics import Fit, count_text, fit_exponent, fit_text, percent_text

FIT_FROM: Final = 1_000
"""The fewest subscriptions of an organisation for a fit; below, fixed costs dominate."""
FIT_SIZES: Final = 3
"""The fewest sizes for a fit."""
FIXED_COSTS: Final = 0.9
"""Every arrival is processed, so no cost grows less than linearly. A smaller exponent shows that
fixed costs still dominate."""
EXPONENTS: Final = {"default": 1.1, "hard": 1.3}
"""Workload -> the largest exponent that is aimed at."""
MERGING: Final = "merge"
"""Prefix of the name of the job whose cost is judged."""


def exact_claims(results: Results) -> Iterator[Claim]:
    setting = results.setting_of("beyond")
    for what in ("rows", "terms", "bytes"):
        claim = f"Exact merging needs fewer {what} than containment alone"
        for mapping in mappings_of(results):
            sizes = results.sizes("beyond", setting, mapping)
            if not sizes:
                why = why_missing(results, "beyond", mapping, "--exact-merging")
                yield Claim("exact merging", claim, None, "", why, mapping)
                continue
            last = max(sizes)
            less = over_seeds(sizes[last], saving(f"{what}_exact", f"{what}_both"))
            before, after = (
                over_seeds(sizes[last], column(f"{what}_{how}")) for how in ("both", "exact")
            )
            yield Claim(
                "exact merging",
                claim,
                less.low > 0,
                f"{percent_text(less)} fewer at {last:,} per organisation: {count_text(after)} "
                f"instead of {count_text(before)}",
                "yes when the 95 % interval over seeds of the share is above zero at the largest "
                "size",
                mapping,
            )


def tree_claims(results: Results) -> Iterator[Claim]:
    setting = results.setting_of("trees")
    bounded = "With trees no peer sends one event to more others than the fan-out"
    fewer = "With trees the busiest peer has fewer connections, at a bounded depth"
    found: dict[str, list[Claim]] = {bounded: [], fewer: []}
    for mapping in mappings_of(results):
        by_fan_out = results.trees(setting, mapping)
        trees = {fan_out: sizes for fan_out, sizes in by_fan_out.items() if fan_out}
        if not trees or 0 not in by_fan_out:
            why = why_missing(results, "trees", mapping, "--trees")
            for claim, judged in found.items():
                judged.append(Claim("trees", claim, None, "", why, mapping))
            continue
        last = min(max(sizes) for sizes in by_fan_out.values())
        children, links, depths = (
            {each: _most(sizes, last, name) for each, sizes in by_fan_out.items()}
            for name in ("most_children", "most_connections", "most_depth")
        )
        rule = (
            f"largest values in any seed, at {last:,} publications; yes when it holds for every "
            "fan-out"
        )
        found[bounded].append(
            Claim(
                "trees",
                bounded,
                all(children[each] <= each for each in trees),
                f"at most {_listed(children)}",
                rule,
                mapping,
            )
        )
        found[fewer].append(
            Claim(
                "trees",
                fewer,
                all(links[each] < links[0] for each in trees),
                f"most connections of a peer {_listed(links)}; deepest receiver {_listed(depths)}",
                rule,
                mapping,
            )
        )
    for judged in found.values():
        yield from judged


def cost_claims(results: Results) -> Iterator[Claim]:
    for name, most in EXPONENTS.items():
        claim = f"Cost of merging grows with an exponent of at most {most:g} ({name} workload)"
        settings = sorted(
            (each for each in results.settings if _is(name, each)),
            key=lambda each: each != results.base,
        )
        fitted = [
            (fit, cost_fit(results, setting, job, top=True))
            for setting in settings
            for job in _merge_jobs(results, setting)
            if (fit := cost_fit(results, setting, job))
        ]
        if not settings:
            option = "--hard" if name == "hard" else "a run without --workload"
            yield Claim("cost", claim, None, "", f"this workload is not in this run: {option}")
        elif not fitted:
            yield Claim(
                "cost",
                claim,
                None,
                "",
                f"fewer than {FIT_SIZES} sizes from {FIT_FROM:,} on: "
                "--subscriptions 1000,10000,100000",
            )
        else:
            yield _judged_fit(claim, most, *fitted[0])


def cost_fit(results: Results, setting: Setting, job: str, *, top: bool = False) -> Fit | None:
    """Fits the exponent of a job's seconds from 1,000 on; mappings and seeds have own factors.

    `top` uses only the last decade, because fixed costs of small sizes can hide the growth.
    """
    groups = []
    for mapping in results.mappings:
        sizes = results.costs(setting, mapping).get(job, {})
        least = max(FIT_FROM, max(sizes, default=0) / 10 if top else 0)
        groups += [
            [
                (float(size), at[seed]["seconds"])
                for size, at in sizes.items()
                if size >= least and seed in at
            ]
            for seed in sorted({seed for at in sizes.values() for seed in at})
        ]
    if max((len(group) for group in groups), default=0) < FIT_SIZES:
        return None
    return fit_exponent(groups)


def _judged_fit(claim: str, most: float, fit: Fit, top: Fit | None) -> Claim:
    numbers = (
        f"exponent {fit_text(fit)} (standard error) from {fit.least:,.0f} to {fit.most:,.0f} "
        "subscriptions per organisation"
    )
    if top and top.least > fit.least:
        numbers += f", {fit_text(top)} in the last decade"
    last = top or fit
    if last.exponent < FIXED_COSTS:
        why = (
            f"an exponent below {FIXED_COSTS:g} shows that fixed costs dominate at these sizes: "
            "give larger --subscriptions"
        )
        return Claim("cost", claim, None, numbers, why)
    return Claim(
        "cost",
        claim,
        fit.exponent <= most and last.exponent <= most,
        numbers,
        "least squares on the logarithms of seconds and size; yes when neither exponent is larger",
    )


def _is(name: str, setting: Setting) -> bool:
    return setting.is_default if name == "default" else setting.is_hard


def _merge_jobs(results: Results, setting: Setting) -> list[str]:
    jobs = {job for mapping in results.mappings for job in results.costs(setting, mapping)}
    return sorted(job for job in jobs if job.startswith(MERGING))


def _most(sizes: Sizes, size: int, name: str) -> float:
    return max((at[name] for at in sizes.get(size, {}).values()), default=0)


def _listed(by_fan_out: dict[int, float]) -> str:
    return ", ".join(
        f"{value:,.0f} with fan-out {fan_out}" if fan_out else f"{value:,.0f} without trees"
        for fan_out, value in by_fan_out.items()
    )
