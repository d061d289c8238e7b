"""Means, intervals, correlations and exponents against published values."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.report.statistics import (
    Estimate,
    chance_of,
    count_text,
    estimate,
    fit_exponent,
    percent_text,
    points_text,
    saved,
    spearman,
    t_quantile,
    t_within,
)


@pytest.mark.parametrize(
    ("degrees", "t"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)],
)
def test_t_quantile_equals_the_published_tables(degrees: int, t: float) -> None:
    assert t_quantile(degrees) == pytest.approx(t, abs=5e-4)


@given(st.integers(1, 200), st.floats(0, 50))
def test_t_within_is_a_probability_that_grows_with_the_bounds(degrees: int, t: float) -> None:
    assert 0 <= t_within(t, degrees) <= 1 + 1e-12
    assert t_within(t, degrees) <= t_within(t + 1, degrees) + 1e-12


def test_interval_of_five_seeds_equals_the_textbook_value() -> None:
    found = estimate([10.0, 12.0, 11.0, 13.0, 14.0])
    assert found.mean == 12.0
    assert found.half == pytest.approx(2.776 * 1.5811 / 5**0.5, abs=1e-3)
    assert (found.low, found.high) == pytest.approx((12 - found.half, 12 + found.half))


def test_one_seed_has_no_interval_half() -> None:
    found = estimate([7.0])
    assert found.half is None
    assert found.low == found.high == 7.0
    with pytest.raises(ValueError, match="no seeds"):
        estimate([])


def test_saved_share_is_relative_to_the_trivial_solution() -> None:
    assert saved(200, 50) == 75.0
    assert saved(200, 250) == -25.0
    assert saved(0, 0) == 0.0


def test_rank_correlation_handles_ties() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert spearman([2, 2, 3, 4], [1, 2, 3, 4]) == pytest.approx(0.9487, abs=1e-4)
    assert spearman([1, 1, 1], [1, 2, 3]) is None


@given(st.lists(st.integers(-1_000, 1_000), min_size=3, max_size=20, unique=True))
def test_rank_correlation_depends_only_on_the_order(values: list[int]) -> None:
    assert spearman(values, [value**3 for value in values]) == pytest.approx(1)


def test_chance_of_a_correlation_equals_the_published_tables() -> None:
    """The one-sided 5 % level for ten pairs is 0.549 by Student's t."""
    assert chance_of(0.5494, 10) == pytest.approx(0.05, abs=5e-4)
    assert chance_of(0.0, 10) == pytest.approx(0.5)
    assert chance_of(1.0, 10) == 0.0
    assert chance_of(-1.0, 10) == 1.0
    assert chance_of(-0.5494, 10) == pytest.approx(0.95, abs=5e-4)


def test_fit_recovers_the_exponent_for_any_factors() -> None:
    fit = fit_exponent(
        [[(n, 3e-6 * n**1.2) for n in (1e3, 1e4, 1e5)], [(n, 7e-6 * n**1.2) for n in (1e3, 1e6)]]
    )
    assert fit is not None
    assert fit.exponent == pytest.approx(1.2)
    assert fit.error == pytest.approx(0, abs=1e-9)
    assert (fit.points, fit.least, fit.most) == (5, 1e3, 1e6)


def test_error_of_an_exponent_is_that_of_least_squares() -> None:
    """y = 0, 1, 1 over x = 0, 1, 2 has slope 1/2 and residual 1/6 with one degree of freedom."""
    e = 2.718281828459045
    fit = fit_exponent([[(1, 1), (e, e), (e**2, e)]])
    assert fit is not None
    assert fit.exponent == pytest.approx(0.5)
    assert fit.error is not None
    assert isclose(fit.error, (1 / 6 / 2) ** 0.5, rel_tol=1e-6)


def test_points_of_one_size_have_no_exponent() -> None:
    assert fit_exponent([[(1_000, 1.0), (1_000, 2.0)]]) is None
    assert fit_exponent([]) is None
    assert fit_exponent([[(1_000, 0.0), (10_000, 0.0)]]) is None


def test_numbers_are_formatted_with_their_interval_rounded_up() -> None:
    assert percent_text(Estimate(81.24, 0.31, 5)) == "81.2 % ± 0.4"
    assert percent_text(Estimate(-0.04, None, 1)) == "0.0 %"
    assert points_text(Estimate(1.25, 0.4, 5)) == "+1.2 ± 0.4"
    assert points_text(Estimate(-3.0, None, 1)) == "−3.0"
    assert count_text(Estimate(12_345.6, 7.2, 5)) == "12,346 ± 8"
    assert count_text(Estimate(9.0, 0.0, 5)) == "9"
    assert count_text(Estimate(1.53, 0.11, 5)) == "1.5 ± 0.2"
