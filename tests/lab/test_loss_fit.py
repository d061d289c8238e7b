"""Fitting recovers known rates, and refuses areas that no rate has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import ValueRefused
from qns.lab.experiments.loss_fit import notification_rate, rapidity, subscription_rate
from qns.lab.experiments.loss_model import Delays, integral_of_f, integral_of_g

BROKERS = st.integers(3, 1_000)
RATES = st.floats(0.05, 20)
TIMES = st.floats(0.5, 60)


@given(BROKERS, RATES, TIMES)
def test_fit_recovers_the_rate_of_a_curve(brokers: int, rate: float, time: float) -> None:
    s = subscription_rate(time, integral_of_f(time, brokers, rate), brokers)
    r = notification_rate(time, integral_of_g(time, brokers, rate), brokers)
    assert s == pytest.approx(rate, rel=1e-6)
    assert r == pytest.approx(rate, rel=1e-6)


@given(BROKERS, TIMES, st.floats(0.001, 0.999))
def test_fitted_curve_has_the_given_area(brokers: int, time: float, share: float) -> None:
    area = share * time * (brokers - 1) / brokers
    rate = notification_rate(time, area, brokers)
    assert integral_of_g(time, brokers, rate) == pytest.approx(area, rel=1e-6)
    assert subscription_rate(time, time - area, brokers) == pytest.approx(rate, rel=1e-6)


def test_faster_spread_gives_a_larger_rate() -> None:
    assert notification_rate(10, 3, 100) > notification_rate(10, 4, 100)
    assert subscription_rate(10, 7, 100) > subscription_rate(10, 6, 100)


@pytest.mark.parametrize(("time", "area"), [(10, 0), (10, -1), (10, 9.9), (10, 11), (0, 0)])
def test_fit_refuses_an_area_that_no_rate_has(time: float, area: float) -> None:
    with pytest.raises(ValueRefused):
        notification_rate(time, area, 100)


def test_fit_refuses_too_few_brokers() -> None:
    with pytest.raises(ValueRefused, match="N = 1 "):
        notification_rate(10, 4, 1)


def test_fit_recovers_the_rapidity_of_paper_002() -> None:
    assert rapidity(20, 1.14 / 2.14 * 20) == pytest.approx(1.14)
    assert Delays.by_rapidity(12, 8, 1.14).rapidity == pytest.approx(1.14)
    for area in (0, 20, 21):
        with pytest.raises(ValueRefused):
            rapidity(20, area)
