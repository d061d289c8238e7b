"""Statistics of a report: means with 95 % confidence intervals over seeds, shares saved, rank
correlation, the exponent with which a cost grows. They are short, so that readers can check them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import atan, ceil, cos, log, pi, sin, sqrt
from statistics import fmean, stdev
from typing import Final

CONFIDENCE: Final = 0.95
_MOST_T: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its confidence interval."""

    mean: float
    half: float | None
    """Half the confidence interval; None with only one seed."""
    seeds: int

    @property
    def low(self) -> float:
        return self.mean - (self.half or 0.0)

    @property
    def high(self) -> float:
        return self.mean + (self.half or 0.0)


@dataclass(frozen=True, slots=True)
class Fit:
    """cost = factor · size ^ exponent, by least squares on the logarithms."""

    exponent: float
    error: float | None
    """The standard error of the exponent; None if there are too few points for one."""
    points: int
    least: float
    most: float


def estimate(values: Sequence[float]) -> Estimate:
    """Returns the mean of one value per seed, with Student's confidence interval."""
    if not values:
        raise ValueError("no seeds")
    if len(values) == 1:
        return Estimate(float(values[0]), None, 1)
    half = t_quantile(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Estimate(fmean(values), half, len(values))


def saved(trivial: float, actual: float) -> float:
    """Returns the percentage of the trivial solution that is saved; 0 if that solution is 0."""
    return 100.0 * (1.0 - actual / trivial) if trivial else 0.0


def t_within(t: float, degrees: int) -> float:
    """Returns the probability that Student's t is within ±t (Abramowitz, Stegun 26.7.3, 26.7.4)."""
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= cos(angle) ** 2 * (power + 1) / (power + 2)
    within = sin(angle) * total
    return 2 / pi * (angle + within) if odd else within


def t_quantile(degrees: int) -> float:
    """Returns t such that Student's t is within ±t with the probability `CONFIDENCE`."""
    low, high = 0.0, _MOST_T
    while high - low > 1e-10:
        middle = (low + high) / 2
        if t_within(middle, degrees) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Returns Spearman's rank correlation with shared ranks; None if one side is constant."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return _correlation(_ranks(first), _ranks(second))


def chance_of(correlation: float, pairs: int) -> float:
    """Returns the probability of a rank correlation at least so high by chance (t, one-sided)."""
    if abs(correlation) >= 1 - 1e-12:
        return 0.0 if correlation > 0 else 1.0
    t = correlation * sqrt((pairs - 2) / (1 - correlation**2))
    beyond = (1 - t_within(abs(t), pairs - 2)) / 2
    return beyond if t > 0 else 1 - beyond


def fit_exponent(groups: Iterable[Sequence[tuple[float, float]]]) -> Fit | None:
    """Fits one exponent to (size, cost) points in groups, each with its own factor.

    Returns None if no group has two sizes.
    """
    xs: list[float] = []
    ys: list[float] = []
    sizes: list[float] = []
    factors = 0
    for group in groups:
        points = [(log(size), log(cost)) for size, cost in group if size > 0 and cost > 0]
        if not points:
            continue
        factors += 1
        x_mean, y_mean = fmean(x for x, _ in points), fmean(y for _, y in points)
        xs.extend(x - x_mean for x, _ in points)
        ys.extend(y - y_mean for _, y in points)
        sizes.extend(size for size, cost in group if size > 0 and cost > 0)
    spread = sum(x * x for x in xs)
    if spread < 1e-12:
        return None
    exponent = sum(x * y for x, y in zip(xs, ys, strict=True)) / spread
    free = len(xs) - factors - 1
    error = None
    if free > 0:
        rest = sum((y - exponent * x) ** 2 for x, y in zip(xs, ys, strict=True))
        error = sqrt(rest / free / spread)
    return Fit(exponent, error, len(xs), min(sizes), max(sizes))


def percent_text(share: Estimate) -> str:
    """Formats a percentage, as in 81.2 % ± 0.4; the interval is rounded up."""
    return f"{_minus(share.mean, 1)} %{_half_text(share, 1)}"


def points_text(difference: Estimate) -> str:
    """Formats a difference of percentages, as in +1.2 ± 0.4."""
    sign = "+" if round(difference.mean, 1) > 0 else ""
    return f"{sign}{_minus(difference.mean, 1)}{_half_text(difference, 1)}"


def count_text(count: Estimate) -> str:
    """Formats a count, as in 1,234 ± 12; small means have one decimal unless they are whole."""
    whole = count.mean == round(count.mean) and not (count.half or 0) % 1
    digits = 0 if whole or abs(count.mean) >= 100 else 1
    return f"{_minus(count.mean, digits)}{_half_text(count, digits)}"


def fit_text(fit: Fit) -> str:
    """Formats an exponent with its standard error, as in 1.042 ± 0.011."""
    error = "" if fit.error is None else f" ± {fit.error:.3f}"
    return f"{fit.exponent:.3f}{error}"


def _half_text(of: Estimate, digits: int) -> str:
    if not of.half:  # equal in all seeds, or only one seed
        return ""
    scale = 10**digits
    return f" ± {ceil(round(of.half * scale, 6)) / scale:,.{digits}f}"


def _minus(value: float, digits: int) -> str:
    rounded = round(value, digits)
    return f"{rounded if rounded else 0.0:,.{digits}f}".replace("-", "−")


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: nth for nth, value in reversed(list(enumerate(ordered, start=1)))}
    last = {value: nth for nth, value in enumerate(ordered, start=1)}
    return [(first[value] + last[value]) / 2 for value in values]


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    a_mean, b_mean = fmean(first), fmean(second)
    both = sum((a - a_mean) * (b - b_mean) for a, b in zip(first, second, strict=True))
    a_spread = sum((a - a_mean) ** 2 for a in first)
    b_spread = sum((b - b_mean) ** 2 for b in second)
    return both / sqrt(a_spread * b_spread)
