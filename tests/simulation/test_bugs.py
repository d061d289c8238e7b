"""Tests of the tests: the simulator catches each of these bugs, and none where there is none."""

from __future__ import annotations

import pytest

from qns.simulation.scenario import Scenario
from qns.simulation.workload import FAULTS, make_plan
from tests.simulation.bugs import BUGS, switched_on

MOST_SEEDS = 1_000


def violations(seed: int) -> list[str]:
    try:
        return Scenario(make_plan(seed, 6, FAULTS)).run().violations
    except Exception as error:  # a bug may break the peer itself
        return [f"{type(error).__name__}: {error}"]


@pytest.mark.parametrize("bug", BUGS)
def test_the_bug_is_caught_within_a_thousand_seeds(bug: str) -> None:
    with switched_on(bug):
        caught = next((seed for seed in range(MOST_SEEDS) if violations(seed)), None)
    assert caught is not None, f"{MOST_SEEDS} seeds, and nobody noticed: {bug}"
    assert violations(caught) == []  # it was the bug, not the seed


@pytest.mark.parametrize("seed", range(20))
def test_without_a_bug_every_seed_holds(seed: int) -> None:
    assert violations(seed) == []


@pytest.mark.parametrize("seed", [3, 4])
def test_the_same_seed_is_the_same_world_to_the_last_record(seed: int) -> None:
    first, second = (Scenario(make_plan(seed, 6, FAULTS)).run() for _ in range(2))
    assert first.history == second.history
    assert first.counts == second.counts
