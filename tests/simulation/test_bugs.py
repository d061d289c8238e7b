"""Tests that the simulator catches each of the bugs, and reports none without a bug."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from qns.simulation import scenario
from qns.simulation.audit import NEEDED_FAULTS
from qns.simulation.faults import FAULTS, SEPARATE
from qns.simulation.host_faults import HOST_FAULTS
from qns.simulation.scenario import Scenario
from qns.simulation.workload import make_plan
from tests.simulation.bugs import BUGS, REVEALED_BY, switched_on

pytestmark = pytest.mark.slow

MOST_SEEDS = 1_000
FEW_SEEDS = 100
REST_AT_MOST_S = 60.0
"""A bug may keep the peers busy for ever; without it, these seeds come to rest much earlier."""


def violations(seed: int, faults: Iterable[str] = FAULTS) -> list[str]:
    try:
        return Scenario(make_plan(seed, 6, faults)).run().violations
    except Exception as error:  # a bug may break the peer itself
        return [f"{type(error).__name__}: {error}"]


@pytest.mark.parametrize("bug", sorted(BUGS.keys() - REVEALED_BY.keys()))
def test_simulator_catches_each_bug_within_a_thousand_seeds(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario, "_REST_AT_MOST_S", REST_AT_MOST_S)
    with switched_on(bug):
        caught = next((seed for seed in range(MOST_SEEDS) if violations(seed)), None)
    assert caught is not None, f"{MOST_SEEDS} seeds did not catch the bug: {bug}"
    assert violations(caught) == []  # without the bug the seed breaks no rule


@pytest.mark.parametrize("bug", REVEALED_BY)
def test_fault_reveals_a_bug_that_no_seed_without_it_reveals(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario, "_REST_AT_MOST_S", REST_AT_MOST_S)
    faults = REVEALED_BY[bug]
    with switched_on(bug):
        caught = next((seed for seed in range(FEW_SEEDS) if violations(seed, faults)), None)
        assert caught is not None, f"{FEW_SEEDS} seeds with {faults} did not catch the bug: {bug}"
        seeds = range(caught, caught + 3)
        without_the_fault = [violations(seed, faults[1:]) for seed in seeds]
    assert violations(caught, faults) == []
    assert without_the_fault == [[], [], []]


@pytest.mark.parametrize("fault", ["gone", "lasting", *SEPARATE, *HOST_FAULTS])
def test_added_fault_has_a_bug_that_only_it_reveals(fault: str) -> None:
    assert fault in {faults[0] for faults in REVEALED_BY.values()}


@pytest.mark.parametrize("fault", SEPARATE)
def test_rule_about_a_fault_is_broken_by_a_bug(fault: str) -> None:
    """Each rule that needs one of these faults can fail."""
    rules = {rule for rule, needed in NEEDED_FAULTS.items() if needed == {fault}}
    broken = set[str]()
    for bug in (bug for bug, faults in REVEALED_BY.items() if faults == (fault,)):
        with switched_on(bug):
            found = (violations(seed, (fault,)) for seed in range(FEW_SEEDS))
            broken |= {each.partition(": ")[0] for each in next(filter(None, found))}
    assert broken >= rules


@pytest.mark.parametrize("seed", range(20))
def test_seed_breaks_no_rule_without_a_bug(seed: int) -> None:
    assert violations(seed) == []


@pytest.mark.parametrize("seed", [3, 4])
def test_seed_gives_the_same_history_and_counts_twice(seed: int) -> None:
    first, second = (Scenario(make_plan(seed, 6, FAULTS)).run() for _ in range(2))
    assert first.history == second.history
    assert first.counts == second.counts
