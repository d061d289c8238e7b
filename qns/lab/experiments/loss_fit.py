"""Fitting: finds the update rates and the rapidity whose curves have the measured integrals.

The thesis fits "the values of s (resp. r) that, substituted in equation 3.3 (resp. 3.4), lead to a
curve that has the same integral as the one obtained experimentally" (3.3.2). d depends only on
these integrals.
"""

from __future__ import annotations

from typing import Final

from qns.errors import ValueRefused
from qns.lab.experiments.loss_model import integral_of_g, time_by_rate

_HALVINGS: Final = 200


def subscription_rate(t_sub_s: float, area_s: float, brokers: int) -> float:
    """s, from the integral of the measured F over [0, T_sub]."""
    return notification_rate(t_sub_s, t_sub_s - area_s, brokers)


def notification_rate(t_diff_s: float, area_s: float, brokers: int) -> float:
    """r, from the integral of the measured G over [0, T_diff].

    The integral of g falls from (N − 1)/N of T_diff to 0 as r grows from 0.
    """
    time_by_rate(brokers, 1.0)  # raises for the parameters that the model refuses
    if not t_diff_s > 0:
        raise ValueRefused(f"a curve over {t_diff_s:g} s", remedy="give a time above 0")
    slowest_s = t_diff_s * (brokers - 1) / brokers
    if not 0 < area_s < slowest_s:
        raise ValueRefused(
            f"no update rate leaves {area_s:g} of {t_diff_s:g} s unreached",
            remedy=f"with {brokers} brokers it is between 0 and {slowest_s:g}",
        )
    low = high = 1 / t_diff_s
    while integral_of_g(t_diff_s, brokers, high) > area_s:
        high *= 2
    while integral_of_g(t_diff_s, brokers, low) < area_s:
        low /= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if integral_of_g(t_diff_s, brokers, middle) > area_s:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def rapidity(t_s: float, area_s: float) -> float:
    """r of paper 002, from the integral of the share of brokers reached, r / (r + 1) of T."""
    if not 0 < area_s < t_s:
        raise ValueRefused(
            f"no rapidity gives an area of {area_s:g} over {t_s:g} s",
            remedy=f"it is between 0 and {t_s:g}",
        )
    return area_s / (t_s - area_s)
