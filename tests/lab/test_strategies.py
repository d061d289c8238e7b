"""Every strategy delivers exactly what the oracle expects, and the judge accepts its history."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.history.judge import judge
from qns.history.verdict import Rule
from qns.lab.simulated.measure import Run
from qns.lab.simulated.space import rounded, rounded_rectangle
from qns.lab.simulated.system import Publication
from qns.lab.simulated.workload import Shape, Workload
from qns.lab.strategies.catalogue import STRATEGIES, Setting

FEWER = settings(max_examples=max(5, settings.default.max_examples // 20))  # whole systems
EVERY = pytest.mark.parametrize("strategy", STRATEGIES)

# Events of one publisher take different paths over the rendezvous of their cells, so a later one
# may arrive first.
IN_ORDER = pytest.mark.parametrize(
    "strategy", [each for each in STRATEGIES if each != "rendezvous"]
)


class _Trial:
    """One run, and an oracle that matches all rectangles by brute force."""

    def __init__(self, strategy: str, brokers: int, seed: int) -> None:
        setting = Setting(brokers, seed, fan_out=3, diffusion_fan_out=2)
        self.run: Run = STRATEGIES[strategy](setting)
        self.chance = Random(seed)
        self.draw = Workload(Shape(longest=600.0), self.chance, [list(range(brokers))])
        self.asked: dict[str, tuple[int, Rectangle]] = {}
        self.events: list[Publication] = []
        self.expected: Counter[tuple[str, str, int]] = Counter()

    def subscribe(self) -> None:
        broker, rectangle = self.draw.subscription()
        id = f"s{len(self.asked)}-{self.chance.randrange(10**9)}"
        self.asked[id] = broker, rounded_rectangle(rectangle)
        self.run.subscribe(broker, id, self.asked[id][1])

    def unsubscribe(self) -> None:
        id = self.chance.choice(list(self.asked))
        broker, _ = self.asked.pop(id)
        self.run.unsubscribe(broker, id)

    def publish(self) -> None:
        publisher, point = self.draw.publication()
        event = Publication(f"e{len(self.events)}", rounded(point), publisher)
        self.events.append(event)
        self.expected.update(
            (event.id, id, broker)
            for id, (broker, rectangle) in self.asked.items()
            if rectangle.holds(event.point)
        )
        self.run.publish(event)

    def delivered(self) -> Counter[tuple[str, str, int]]:
        return Counter((each.event, each.subscription, each.broker) for each in self.run.deliveries)


def _check(trial: _Trial) -> None:
    trial.run.calm()
    assert trial.delivered() == trial.expected
    verdict = judge(trial.run.records())
    assert verdict.violations == []
    assert verdict.counts.notifications == trial.expected.total()


@EVERY
@FEWER
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 12))
def test_every_strategy_delivers_what_the_oracle_expects(
    strategy: str, seed: int, brokers: int, subscriptions: int
) -> None:
    trial = _Trial(strategy, brokers, seed)
    for _ in range(subscriptions):
        trial.subscribe()
    trial.run.calm()
    for _ in range(8):
        trial.publish()
        trial.run.settle()
    _check(trial)


@EVERY
@FEWER
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_every_strategy_delivers_what_the_oracle_expects_after_unsubscriptions(
    strategy: str, seed: int, brokers: int
) -> None:
    trial = _Trial(strategy, brokers, seed)
    for _ in range(3):
        for _ in range(6):
            if trial.asked and trial.chance.random() < 0.4:
                trial.unsubscribe()
            else:
                trial.subscribe()
            if trial.chance.random() < 0.5:
                trial.run.settle()
        trial.run.calm()
        for _ in range(4):
            trial.publish()
            trial.run.settle()
    _check(trial)


@IN_ORDER
@FEWER
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_rapid_publications_arrive_in_order(strategy: str, seed: int, brokers: int) -> None:
    trial = _Trial(strategy, brokers, seed)
    for _ in range(8):
        trial.subscribe()
    trial.run.calm()
    for _ in range(12):
        trial.publish()
    _check(trial)


def test_rendezvous_strategy_may_reorder_events_of_different_cells() -> None:
    """Table 2.1 does not show this, but the judge reports it."""
    for seed in range(30):
        trial = _Trial("rendezvous", 12, seed)
        for _ in range(12):
            trial.subscribe()
        trial.run.calm()
        for _ in range(40):
            trial.publish()
        trial.run.calm()
        assert trial.delivered() == trial.expected
        broken = {each.rule for each in judge(trial.run.records()).violations}
        assert broken <= {Rule.FIFO}
        if broken:
            return
    pytest.fail("it never happened")


@EVERY
def test_judge_reports_a_missing_delivery(strategy: str) -> None:
    trial = _Trial(strategy, 4, 1)
    for _ in range(12):
        trial.subscribe()
    trial.run.calm()
    for _ in range(8):
        trial.publish()
        trial.run.settle()
    trial.run.calm()
    records = trial.run.records()
    (lost, *_) = [number for number, each in enumerate(records) if each["do"] == "ntfy"]
    (violation,) = judge([*records[:lost], *records[lost + 1 :]]).violations
    assert violation.rule is Rule.LIVENESS


@EVERY
def test_same_seed_gives_the_same_run(strategy: str) -> None:
    runs = []
    for _ in range(2):
        trial = _Trial(strategy, 6, 7)
        for _ in range(6):
            trial.subscribe()
        trial.run.calm()
        for _ in range(6):
            trial.publish()
        trial.run.calm()
        runs.append((trial.run.deliveries, trial.run.sent, trial.run.records()))
    assert runs[0] == runs[1]
