"""A lab run as a history: records in the order of events, with D2Q decimals."""

from __future__ import annotations

import pytest

from qns.cbr.rectangles import Rectangle
from qns.errors import ValueRefused
from qns.history.judge import judge
from qns.history.records import read_record, write_record
from qns.history.verdict import Rule
from qns.lab.simulated.history import RecordedRun
from qns.lab.simulated.space import broker, organisation, rounded, rounded_rectangle
from qns.lab.simulated.system import Publication
from qns.lab.strategies.catalogue import Setting
from qns.lab.strategies.cbr import CbrBroker

ALL = Rectangle((0.0, 0.0), (1000.0, 1000.0))


def _run() -> RecordedRun:
    return Setting(3, 1).run(CbrBroker)


def _kinds(run: RecordedRun) -> list[tuple[str, str]]:
    return [(each["do"], each.get("org", "")) for each in run.records()]


def test_records_are_in_the_order_of_events() -> None:
    run = _run()
    run.subscribe(1, "s", ALL)
    run.calm()
    run.publish(Publication("e1", (1.0, 2.0), 1))
    run.publish(Publication("e2", (1.0, 2.0), 0))
    run.settle()
    run.unsubscribe(1, "s")
    run.calm()
    assert _kinds(run) == [
        ("schema", ""),
        ("join", "B0000"),
        ("join", "B0001"),
        ("join", "B0002"),
        ("sub", "B0001"),
        ("calm", ""),
        ("pub", "B0001"),
        ("ntfy", "B0001"),
        ("stable", "B0001"),
        ("pub", "B0000"),
        ("ntfy", "B0001"),
        ("usub", "B0001"),
        ("calm", ""),
    ]
    verdict = judge(read_record(write_record(each)) for each in run.records())
    assert verdict.holds
    assert verdict.checks[Rule.LIVENESS] == 0  # it had ended before the check


def test_subscription_may_miss_events_before_it_is_stable() -> None:
    run = _run()
    run.subscribe(1, "s", ALL)
    run.publish(Publication("e", (1.0, 2.0), 0))
    run.calm()
    assert not run.deliveries
    assert judge(run.records()).holds


def test_coordinates_that_are_not_rounded_are_refused() -> None:
    run = _run()
    fine = 1 / 3
    with pytest.raises(ValueRefused, match="15 significant digits"):
        run.subscribe(0, "s", Rectangle((fine, 0.0), (1.0, 1.0)))
    with pytest.raises(ValueRefused, match="15 significant digits"):
        run.publish(Publication("e", (fine, 0.0), 0))
    assert rounded((fine, 2.0)) == (0.333333, 2.0)
    run.subscribe(0, "s", rounded_rectangle(Rectangle((fine, 0.0), (1.0, 1.0))))


def test_organisation_names_map_back_to_broker_numbers() -> None:
    assert [broker(organisation(number)) for number in (0, 7, 4999)] == [0, 7, 4999]
