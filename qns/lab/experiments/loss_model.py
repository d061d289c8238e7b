"""Loss model: the probability d that a notification is delivered (thesis 3.2, paper 002).

A notification is published while a matching subscription lasts, which is for T_ON seconds. It can
be lost at the start, while some brokers do not have the subscription yet (T_sub), and at the end,
if it is still under way when the subscriber leaves (T_diff). The errata of semantics §11 are
applied: the integrals, persistence, f(0) = 1/N.

There are two readings of g. In eq. 3.1 its time starts T_diff before the end, so g is the measured
share of brokers that have the notification, in reverse. The thesis uses the share of brokers that
do *not* have it, forwards (eq. 3.4). Both have the same area only if half of T_diff is the mean, as
it is with T_diff = (2/r) ln(N − 1). `d_by_integrals` follows the thesis; `d_by_means` is correct
for any curve, and paper 002 reads g in this way, too.

If T_ON < T_sub + T_diff, both losses may affect the same notification. They are then counted twice,
so d is at least `d_by_means`. Every d is clipped to [0, 1] for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, isfinite, log, log1p
from typing import Final

from qns.errors import ValueRefused

RAPIDITY: Final = 1.14
"""r of paper 002, from the area under its measured curves."""
FEWEST_BROKERS: Final = 3

# --- the epidemic curves of thesis 3.2.2 ----------------------------------------------------------


def f(t_s: float, brokers: int, s: float) -> float:
    """Eq. 3.3: the share of brokers that have a subscription t seconds after it was issued."""
    _check_curve(t_s, brokers, s)
    return 1 / (1 + (brokers - 1) * exp(-s * t_s))


def g(t_s: float, brokers: int, r: float) -> float:
    """Eq. 3.4: the share of brokers that lack a notification t seconds after its publication."""
    return 1 - f(t_s, brokers, r)


def integral_of_f(t_sub_s: float, brokers: int, s: float) -> float:
    """The integral over [0, T_sub]: T_sub + (1/s) ln((1 + (N−1) e^(−s T_sub)) / N)."""
    return t_sub_s - integral_of_g(t_sub_s, brokers, s)


def integral_of_g(t_diff_s: float, brokers: int, r: float) -> float:
    """The integral over [0, T_diff]: (1/r) ln(N / (1 + (N−1) e^(−r T_diff)))."""
    _check_curve(t_diff_s, brokers, r)
    # This form of the quotient keeps a small r·T_diff from being rounded away. Rounding may put the
    # integral outside of [0, T_diff].
    area = -log1p((brokers - 1) / brokers * expm1(-r * t_diff_s)) / r
    return min(t_diff_s, max(0.0, area))


def time_by_rate(brokers: int, rate: float) -> float:
    """T ≈ (2/rate) ln(N − 1): the time until all brokers but one in N are reached."""
    _check_curve(0.0, brokers, rate)
    return 2 / rate * log(brokers - 1)


# --- d --------------------------------------------------------------------------------------------


def d_by_areas(
    t_on_s: float, t_sub_s: float, t_diff_s: float, area_f_s: float, area_g_s: float
) -> float:
    """Eq. 3.1 for any f and g with these integrals."""
    _check_t_on(t_on_s)
    return _d(t_on_s, t_sub_s, t_diff_s, area_f_s, area_g_s)


def d_by_integrals(
    t_on_s: float, t_sub_s: float, t_diff_s: float, brokers: int, s: float, r: float
) -> float:
    """Eq. 3.1 with f and g of eq. 3.3 and 3.4 and measured T: eq. 3.5, corrected and exact.

    1 − (T_diff + (1/s − 1/r) ln N) / T_ON is an approximation that takes f(T_sub) as 1.
    """
    return d_by_areas(
        t_on_s,
        t_sub_s,
        t_diff_s,
        integral_of_f(t_sub_s, brokers, s),
        integral_of_g(t_diff_s, brokers, r),
    )


def d_by_rates(t_on_s: float, brokers: int, s: float, r: float) -> float:
    """Eq. 3.6: 1 − (1/s + 1/r) ln(N) / T_ON."""
    return Delays.by_rates(brokers, s, r).d(t_on_s)


def d_by_means(t_on_s: float, mean_sub_s: float, mean_diff_s: float) -> float:
    """1 − (mean delay of subscriptions + mean delay of notifications) / T_ON, for any curves.

    A publisher that receives a subscription after S seconds loses the events of S seconds; one
    whose notification takes D seconds loses those of the last D seconds.
    """
    _check_t_on(t_on_s)
    _check_times(mean_sub_s, mean_diff_s)
    return _probability(1 - (mean_sub_s + mean_diff_s) / t_on_s)


def d_by_rapidity(
    t_on_s: float, t_sub_s: float, t_diff_s: float, rapidity: float = RAPIDITY
) -> float:
    """Paper 002: 1 − (T_sub + T_diff) / ((r + 1) T_ON)."""
    return Delays.by_rapidity(t_sub_s, t_diff_s, rapidity).d(t_on_s)


def d_with_persistence(
    t_on_s: float, t_x_s: float, t_sub_s: float, t_diff_s: float, area_f_s: float, area_g_s: float
) -> float:
    """Eq. 3.2, corrected: notifications stay available for T_x, which is at least T_sub.

    It counts every event from T_x before the subscription until its end. f rises at the start of
    that time, so f counts once and not twice.
    """
    _check_t_on(t_on_s)
    _check_times(t_x_s)
    if t_x_s < t_sub_s:
        raise ValueRefused(
            f"T_x {t_x_s:g} s is less than T_sub {t_sub_s:g} s",
            remedy="eq. 3.2 needs at least T_sub; use eq. 3.1 without persistence",
        )
    return _d(t_on_s + t_x_s, t_sub_s, t_diff_s, area_f_s, area_g_s)


def _d(during_s: float, t_sub_s: float, t_diff_s: float, area_f_s: float, area_g_s: float) -> float:
    _check_times(t_sub_s, t_diff_s)
    for name, area_s, whole_s in (("f", area_f_s, t_sub_s), ("g", area_g_s, t_diff_s)):
        if not 0 <= area_s <= whole_s:
            raise ValueRefused(
                f"{name} cannot have the integral {area_s:g} over {whole_s:g} s",
                remedy=f"it is the integral of a probability: give 0 to {whole_s:g}",
            )
    return _probability(1 - (t_sub_s - area_f_s + t_diff_s - area_g_s) / during_s)


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of a system for subscriptions and for notifications."""

    t_sub_s: float
    t_diff_s: float
    """The longest delays."""
    mean_sub_s: float
    mean_diff_s: float
    """The mean delays over brokers."""

    @classmethod
    def by_rates(cls, brokers: int, s: float, r: float) -> Delays:
        """Takes the means from the areas of eq. 3.6."""
        times = time_by_rate(brokers, s), time_by_rate(brokers, r)
        return cls(*times, log(brokers) / s, log(brokers) / r)

    @classmethod
    def by_rapidity(cls, t_sub_s: float, t_diff_s: float, rapidity: float = RAPIDITY) -> Delays:
        """Takes the means from f and g of paper 002: T is r + 1 times the mean."""
        _check_times(t_sub_s, t_diff_s)
        _check_rate(rapidity, "r")
        return cls(t_sub_s, t_diff_s, t_sub_s / (rapidity + 1), t_diff_s / (rapidity + 1))

    @property
    def rapidity(self) -> float | None:
        """r of paper 002 that gives the same area; None if there is no delay."""
        mean_s = self.mean_sub_s + self.mean_diff_s
        return (self.t_sub_s + self.t_diff_s) / mean_s - 1 if mean_s > 0 else None

    def d(self, t_on_s: float) -> float:
        return d_by_means(t_on_s, self.mean_sub_s, self.mean_diff_s)

    def is_exact(self, t_on_s: float) -> bool:
        """True if T_ON ≥ T_sub + T_diff, as the models assume; otherwise d is a lower bound."""
        return t_on_s >= self.t_sub_s + self.t_diff_s

    def faster(self, times: float) -> Delays:
        return Delays(
            self.t_sub_s / times,
            self.t_diff_s / times,
            self.mean_sub_s / times,
            self.mean_diff_s / times,
        )

    def d_available(self, t_on_s: float) -> float:
        """d if events stay available for T_sub, so that none is lost at the start.

        P3a guarantees this for subscriptions that become stable in that time. It holds only where
        `is_exact` is true.
        """
        return d_by_means(t_on_s, 0.0, self.mean_diff_s)

    def d_available_before(self, t_on_s: float, t_x_s: float) -> float:
        """Eq. 3.2, corrected: d that includes events from up to T_x before the subscription."""
        return d_with_persistence(
            t_on_s,
            t_x_s,
            self.t_sub_s,
            self.t_diff_s,
            self.t_sub_s - self.mean_sub_s,
            self.t_diff_s - self.mean_diff_s,
        )


# --- checks of the parameters ---------------------------------------------------------------------


def _probability(value: float) -> float:
    return min(1.0, max(0.0, value))


def _check_curve(t_s: float, brokers: int, rate: float) -> None:
    _check_times(t_s)
    _check_rate(rate, "an update rate")
    if brokers < FEWEST_BROKERS:
        raise ValueRefused(
            f"N = {brokers}",
            remedy=f"give at least {FEWEST_BROKERS}: with fewer, T = (2/rate) ln(N − 1) is 0 "
            "or undefined",
        )


def _check_rate(rate: float, name: str) -> None:
    if not (isfinite(rate) and rate > 0):
        raise ValueRefused(f"{name} of {rate:g}", remedy="give a rate above 0")


def _check_times(*times_s: float) -> None:
    for time_s in times_s:
        if not (isfinite(time_s) and time_s >= 0):
            raise ValueRefused(f"a time of {time_s:g} s", remedy="give 0 or more")


def _check_t_on(t_on_s: float) -> None:
    if not (isfinite(t_on_s) and t_on_s > 0):
        raise ValueRefused(
            f"a subscription that lasts {t_on_s:g} s", remedy="give a finite T_ON above 0"
        )
