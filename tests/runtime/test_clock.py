"""The steady clock: it never goes back and does not run ahead."""

from __future__ import annotations

import pytest

from qns.peer.steady_time import LARGEST_STEP_S, LASTS_S
from qns.runtime.clock import SteadyClock

DAY_S = 86_400.0


def test_time_never_decreases(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 90.0, 110.0])
    monkeypatch.setattr("qns.runtime.clock.time", lambda: next(times))
    clock = SteadyClock()
    first, second, third = (clock.now() for _ in range(3))
    assert first == 100.0
    assert 100.0 <= second < 110.0
    assert third == 110.0


def test_pause_between_reading_the_two_clocks_does_not_put_the_time_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Peers on one busy machine must agree on the time, because histories are merged by it."""
    at, pauses = [1_000.0], iter([0.5, 0.5])

    def read() -> float:
        at[0] += next(pauses, 0.0)  # another process runs after either clock is read
        return at[0]

    monkeypatch.setattr("qns.runtime.clock.time", read)
    monkeypatch.setattr("qns.runtime.clock.monotonic", read)
    clock = SteadyClock()
    for _ in range(5):
        clock.now()
        at[0] += 0.1
        assert clock.now() <= at[0]
    assert clock.now() == at[0]


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The time of day and the monotonic clock, as a test sets them."""
    at = {"day": 1_000_000.0, "passed": 0.0}
    monkeypatch.setattr("qns.runtime.clock.time", lambda: at["day"])
    monkeypatch.setattr("qns.runtime.clock.monotonic", lambda: at["passed"])
    return at


def wait(clocks: dict[str, float], seconds: float) -> None:
    clocks["day"] += seconds
    clocks["passed"] += seconds


def test_time_passes_half_as_fast_after_the_clock_is_set_back(clocks: dict[str, float]) -> None:
    clock = SteadyClock()
    ahead = clock.now()
    clocks["day"] -= 100.0
    times = []
    for _ in range(5):
        wait(clocks, 50.0)
        times.append(clock.now() - ahead)
    assert times == [25.0, 50.0, 75.0, 100.0, 150.0]


def test_step_forward_by_a_day_that_does_not_last_leaves_the_time_as_it_was(
    clocks: dict[str, float],
) -> None:
    clock = SteadyClock()
    before = clock.now()
    clocks["day"] += DAY_S
    for passed in (100.0, 200.0, 300.0):
        wait(clocks, 100.0)
        assert clock.now() == before + passed
    clocks["day"] -= DAY_S
    wait(clocks, 100.0)
    assert clock.now() == before + 400.0
    clocks["day"] += DAY_S  # another step, which begins anew
    wait(clocks, LASTS_S - 100.0)
    assert clock.now() == before + 300.0 + LASTS_S


def test_step_forward_counts_when_it_lasts(clocks: dict[str, float]) -> None:
    clock = SteadyClock()
    before = clock.now()
    clocks["day"] += DAY_S
    clock.now()
    wait(clocks, LASTS_S - 1.0)
    assert clock.now() == before + LASTS_S - 1.0
    wait(clocks, 1.0)
    assert clock.now() == before + DAY_S + LASTS_S


def test_small_step_forward_counts_at_once(clocks: dict[str, float]) -> None:
    clock = SteadyClock()
    before = clock.now()
    clocks["day"] += LARGEST_STEP_S
    assert clock.now() == before + LARGEST_STEP_S
