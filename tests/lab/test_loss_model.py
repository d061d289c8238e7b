"""The models of loss: closed forms against integration, limits, and refused parameters."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.errors import ValueRefused
from qns.lab.experiments.loss_model import (
    Delays,
    d_by_areas,
    d_by_integrals,
    d_by_means,
    d_by_rapidity,
    d_by_rates,
    d_with_persistence,
    f,
    g,
    integral_of_f,
    integral_of_g,
    time_by_rate,
)

BROKERS = st.integers(3, 1_000)
RATES = st.floats(0.05, 5)
TIMES = st.floats(0, 60)
T_ON = st.floats(0.01, 5_000)


def integral(curve: Callable[[float], float], end: float, steps: int = 2_000) -> float:
    """Integrates by Simpson's rule."""
    width = end / steps
    inner = sum((4 if step % 2 else 2) * curve(step * width) for step in range(1, steps))
    return (curve(0) + inner + curve(end)) * width / 3


def power_f(t_s: float, t_sub_s: float, rapidity: float) -> float:
    """f of paper 002."""
    return float((t_s / t_sub_s) ** (1 / rapidity))


def power_g(t_s: float, t_diff_s: float, rapidity: float) -> float:
    """g of paper 002."""
    return power_f(t_diff_s - t_s, t_diff_s, rapidity)


# --- the curves -----------------------------------------------------------------------------------


def test_f_starts_at_one_broker_in_n() -> None:
    assert f(0, 100, 0.97) == pytest.approx(1 / 100)
    assert g(0, 100, 1.21) == pytest.approx(1 - 1 / 100)


@given(BROKERS, RATES, TIMES, TIMES)
def test_f_rises_and_g_falls(brokers: int, rate: float, one: float, other: float) -> None:
    early, late = sorted((one, other))
    assert 0 <= f(early, brokers, rate) <= f(late, brokers, rate) <= 1
    assert 1 >= g(early, brokers, rate) >= g(late, brokers, rate) >= 0


@given(BROKERS, RATES)
def test_one_broker_in_n_is_not_reached_after_t(brokers: int, rate: float) -> None:
    t = time_by_rate(brokers, rate)
    assert f(t, brokers, rate) == pytest.approx(1 - 1 / brokers)
    assert g(t, brokers, rate) == pytest.approx(1 / brokers)


@pytest.mark.parametrize("brokers", [3, 10, 100, 1_000])
@pytest.mark.parametrize("rate", [0.05, 0.47, 1.21, 5])
@pytest.mark.parametrize("time", [0, 0.001, 1, 9.95, 60])
def test_integrals_equal_numerical_integration_of_the_curves(
    brokers: int, rate: float, time: float
) -> None:
    assert integral_of_f(time, brokers, rate) == pytest.approx(
        integral(lambda t: f(t, brokers, rate), time), rel=1e-6
    )
    assert integral_of_g(time, brokers, rate) == pytest.approx(
        integral(lambda t: g(t, brokers, rate), time), rel=1e-6
    )


@given(BROKERS, RATES, TIMES)
def test_integrals_are_within_their_time(brokers: int, rate: float, time: float) -> None:
    assert 0 <= integral_of_f(time, brokers, rate) <= time
    assert 0 <= integral_of_g(time, brokers, rate) <= time


@pytest.mark.parametrize("rapidity", [0.5, 1.14, 4])
def test_curves_of_paper_002_have_the_expected_areas(rapidity: float) -> None:
    # The curve is not smooth at 0, so the rule is less exact there.
    area = rapidity / (rapidity + 1) * 12
    assert integral(lambda t: power_f(t, 12, rapidity), 12) == pytest.approx(area, rel=1e-3)
    assert integral(lambda t: power_g(t, 12, rapidity), 12) == pytest.approx(area, rel=1e-3)
    assert (power_f(0, 12, rapidity), power_g(0, 12, rapidity)) == (0, 1)
    assert (power_f(12, 12, rapidity), power_g(12, 12, rapidity)) == (1, 0)


# --- d --------------------------------------------------------------------------------------------


def test_d_equals_the_area_of_figure_3_5() -> None:
    t_on, t_sub, t_diff = 60.0, 12.20, 9.95

    def p(t: float) -> float:
        if t < t_sub:
            return f(t, 100, 0.97)
        return g(t - (t_on - t_diff), 100, 1.21) if t > t_on - t_diff else 1.0

    # In parts, because P is not continuous where the thesis takes f(T_sub) as 1.
    expected = sum(p((step + 0.5) * t_on / 60_000) for step in range(60_000)) / 60_000
    assert d_by_integrals(t_on, t_sub, t_diff, 100, 0.97, 1.21) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("s", "r", "t_sub", "t_diff"),
    [(0.97, 1.21, 12.20, 9.95), (0.62, 0.80, 19.06, 14.03), (0.47, 0.58, 25.44, 20.44)],
)
def test_d_with_measured_t_is_near_the_short_form(
    s: float, r: float, t_sub: float, t_diff: float
) -> None:
    """Semantics §11: d ≈ 1 − (T_diff + (1/s − 1/r) ln N) / T_ON."""
    short = 1 - (t_diff + (1 / s - 1 / r) * log(100)) / 150
    assert d_by_integrals(150, t_sub, t_diff, 100, s, r) == pytest.approx(short, abs=2e-4)


@given(BROKERS, RATES, RATES)
def test_eq_3_6_follows_from_eq_3_1(brokers: int, s: float, r: float) -> None:
    """The exact formula has ln(N − 1), where eq. 3.6 has ln N."""
    times = time_by_rate(brokers, s), time_by_rate(brokers, r)
    t_on = 2 * sum(times)
    exact = d_by_integrals(t_on, *times, brokers, s, r)
    assert exact == pytest.approx(1 - (1 / s + 1 / r) * log(brokers - 1) / t_on)
    by_rates = d_by_rates(t_on, brokers, s, r)
    assert exact - by_rates == pytest.approx(
        (1 / s + 1 / r) * log(brokers / (brokers - 1)) / t_on, abs=1e-9
    )


@given(BROKERS, RATES, RATES)
def test_both_readings_of_g_agree_for_symmetric_curves(brokers: int, s: float, r: float) -> None:
    times = time_by_rate(brokers, s), time_by_rate(brokers, r)
    t_on = 2 * sum(times)
    means = (t - integral_of_f(t, brokers, rate) for t, rate in zip(times, (s, r), strict=True))
    assert d_by_integrals(t_on, *times, brokers, s, r) == pytest.approx(d_by_means(t_on, *means))


@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=20), st.floats(0.01, 500))
def test_d_by_means_is_exact_for_long_t_on_and_otherwise_a_lower_bound(
    pairs: list[tuple[float, float]], t_on: float
) -> None:
    """A pair with delays S and D gets the events of [S, T_ON − D]."""
    number = len(pairs)
    happens = sum(max(0.0, t_on - sub - diff) for sub, diff in pairs) / t_on / number
    mean_sub = sum(sub for sub, _ in pairs) / number
    mean_diff = sum(diff for _, diff in pairs) / number
    delays = Delays(max(s for s, _ in pairs), max(d for _, d in pairs), mean_sub, mean_diff)
    assert happens >= delays.d(t_on) - 1e-9
    if delays.is_exact(t_on):
        assert delays.d(t_on) == pytest.approx(happens, abs=1e-9)


@given(T_ON, TIMES, TIMES, BROKERS, RATES, RATES)
def test_d_is_a_probability_for_all_parameters(
    t_on: float, t_sub: float, t_diff: float, brokers: int, s: float, r: float
) -> None:
    for d in (
        d_by_integrals(t_on, t_sub, t_diff, brokers, s, r),
        d_by_rates(t_on, brokers, s, r),
        d_by_rapidity(t_on, t_sub, t_diff, r),
        d_by_means(t_on, t_sub, t_diff),
        d_with_persistence(t_on, t_sub + s, t_sub, t_diff, t_sub / 2, t_diff / 2),
    ):
        assert 0 <= d <= 1


@given(st.tuples(T_ON, T_ON).map(sorted), BROKERS, RATES)
def test_d_grows_with_t_on_and_falls_with_brokers(
    t_on: list[float], brokers: int, rate: float
) -> None:
    short, long = t_on
    assert d_by_rates(short, brokers, rate, rate) <= d_by_rates(long, brokers, rate, rate)
    assert d_by_rates(long, brokers + 1, rate, rate) <= d_by_rates(long, brokers, rate, rate)


def test_d_is_1_without_delays() -> None:
    assert d_by_areas(1, 0, 0, 0, 0) == d_by_means(1, 0, 0) == d_by_rapidity(1, 0, 0) == 1
    assert Delays.by_rapidity(0, 0).rapidity is None


def test_d_by_rapidity_equals_the_formula_of_paper_002() -> None:
    assert d_by_rapidity(60, 12, 8) == pytest.approx(1 - 20 / 2.14 / 60)
    assert d_by_rapidity(60, 12, 8) == d_by_rapidity(60, 8, 12)  # only the sum counts
    area = 1.14 / 2.14
    assert d_by_rapidity(60, 12, 8) == pytest.approx(d_by_areas(60, 12, 8, area * 12, area * 8))


@pytest.mark.parametrize("brokers", [10, 100, 1_000])
def test_d_stays_above_0_9_from_rate_1_5_on(brokers: int) -> None:
    """Thesis 3.2.3: with T_ON = 150, d is above 0.9 for any number of participants."""
    assert d_by_rates(150, brokers, 1.5, 1.5) > 0.9


# --- persistence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("t_x", [12.20, 15, 60, 1_000])
def test_persistence_moves_the_rise_of_f_before_the_subscription(t_x: float) -> None:
    """P3a: f rises once, from T_x before the subscription."""
    t_on, t_sub, t_diff = 40.0, 12.20, 9.95
    areas = integral_of_f(t_sub, 100, 0.97), integral_of_g(t_diff, 100, 1.21)
    notified = areas[0] + (t_on + t_x - t_sub - t_diff) + areas[1]
    found = d_with_persistence(t_on, t_x, t_sub, t_diff, *areas)
    assert found == pytest.approx(notified / (t_on + t_x))
    assert found > d_by_areas(t_on, t_sub, t_diff, *areas)


def test_available_events_are_not_lost_at_the_start() -> None:
    delays = Delays.by_rapidity(12, 8)
    assert delays.d_available(60) == pytest.approx(1 - 8 / 2.14 / 60)
    assert delays.d_available_before(60, 60) == pytest.approx(1 - 20 / 2.14 / 120)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("brokers", [-1, 0, 1, 2])
def test_model_refuses_fewer_than_three_brokers(brokers: int) -> None:
    with pytest.raises(ValueRefused, match=f"N = {brokers} .*undefined"):
        d_by_rates(60, brokers, 1, 1)


@pytest.mark.parametrize("t_on", [0, -1, float("nan"), float("inf")])
def test_t_on_that_is_not_positive_and_finite_is_refused(t_on: float) -> None:
    with pytest.raises(ValueRefused, match="finite T_ON above 0"):
        d_by_means(t_on, 1, 1)
    with pytest.raises(ValueRefused, match="finite T_ON above 0"):
        d_by_areas(t_on, 1, 1, 0, 0)


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf")])
def test_negative_times_and_non_positive_rates_are_refused(bad: float) -> None:
    with pytest.raises(ValueRefused, match="a time of"):
        d_by_rapidity(60, bad, 1)
    with pytest.raises(ValueRefused, match="r of"):
        d_by_rapidity(60, 1, 1, bad)
    with pytest.raises(ValueRefused, match="update rate"):
        f(1, 100, bad)


def test_area_larger_than_its_time_is_refused() -> None:
    with pytest.raises(ValueRefused, match="g cannot have the integral 9 over 8 s"):
        d_by_areas(60, 12, 8, 6, 9)


def test_persistence_shorter_than_t_sub_is_refused() -> None:
    with pytest.raises(ValueRefused, match="less than T_sub"):
        d_with_persistence(60, 11, 12, 8, 6, 4)
