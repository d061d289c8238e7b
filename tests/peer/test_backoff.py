"""Backoff: the pause doubles with every failure, up to a limit, and jitter shortens it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.peer.backoff import Backoff
from qns.peer.tuning import Tuning

FAILURES = st.integers(1, 10_000)
BACKOFFS = st.builds(
    lambda first_s, factor: Backoff(first_s, first_s * factor),
    st.floats(0.001, 100.0),
    st.floats(1.0, 1_000.0),
)


def test_pause_doubles_with_every_failure_up_to_the_limit() -> None:
    backoff = Backoff(first_s=1.0, longest_s=10.0)
    assert [backoff.pause_s(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@given(BACKOFFS, FAILURES)
def test_pause_never_decreases_and_never_exceeds_the_limit(backoff: Backoff, failures: int) -> None:
    pause_s = backoff.pause_s(failures)
    assert backoff.first_s <= pause_s <= backoff.longest_s
    assert pause_s <= backoff.pause_s(failures + 1) <= 2 * pause_s


@given(BACKOFFS, FAILURES, st.floats(0.0, 1.0))
def test_jitter_scales_the_pause_between_one_half_and_the_whole(
    backoff: Backoff, failures: int, jitter: float
) -> None:
    whole_s = backoff.pause_s(failures)
    assert whole_s / 2 <= backoff.pause_s(failures, jitter) <= whole_s
    assert backoff.pause_s(failures, 0.0) == pytest.approx(whole_s / 2)
    assert backoff.pause_s(failures, 1.0) == whole_s


def test_link_backoff_uses_the_pauses_of_the_tuning() -> None:
    tuning = Tuning(first_pause_s=0.5, longest_pause_s=3.0)
    assert tuning.link_backoff == Backoff(first_s=0.5, longest_s=3.0)
