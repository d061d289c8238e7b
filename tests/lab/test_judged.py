"""Nothing is measured on a run that broke a rule: the judge, the tree and the swaps are asked."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest

from qns.cbr.rectangles import Rectangle
from qns.lab import comparison, loss_experiment
from qns.lab.cbr import CbrBroker, Notify
from qns.lab.comparison import compare, locality
from qns.lab.discovery import Hop
from qns.lab.interests import boxes_of
from qns.lab.judged import BrokenRun, check_overlay, check_swaps
from qns.lab.overlay import Overlay
from qns.lab.reconfiguration import Passage, Plan, Reconfigurations, Reroute
from qns.lab.self_organisation import CBR, SOCBR, VARIANTS, Setup, run_variant
from qns.lab.socbr import SocbrBroker, Swap
from qns.lab.strategies import STRATEGIES, Setting
from qns.lab.system import Publication, System
from qns.lab.workload import Shape

SETUP = Setup(
    brokers=20, fan_out=4, subscriptions=60, window=30, notifications=50, shape=Shape(longest=500)
)


@pytest.mark.parametrize("network", list(VARIANTS))
@pytest.mark.parametrize("variant", [CBR, SOCBR])
def test_what_is_judged_changes_nothing_that_is_measured(network: str, variant: str) -> None:
    without, little, much = (
        run_variant((replace(SETUP, judged=judged), network, variant, 1)) for judged in (0, 1, 5)
    )
    assert [each.judged_events for each in without] == [0, 0]
    assert [each.judged_events for each in much] == [150, 300]
    assert (much[-1].held_back > 0) is (variant == SOCBR)
    assert much[-1].judged_notifications > little[-1].judged_notifications > 0
    nothing = {"judged_events": 0, "judged_notifications": 0, "held_back": 0}
    for judged in (little, much):
        assert [each._replace(**nothing) for each in judged] == without


def test_a_run_that_loses_what_a_swap_holds_back_is_not_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Reconfigurations._send_kept

    def forgetful(self: Reconfigurations, passage: Passage) -> None:
        passage.kept = [each for each in passage.kept if not isinstance(each[1], Notify | Reroute)]
        whole(self, passage)

    monkeypatch.setattr(Reconfigurations, "_send_kept", forgetful)
    with pytest.raises(BrokenRun, match="Liveness is broken: Event e") as found:
        run_variant((replace(SETUP, judged=5), "flat", SOCBR, 1))
    assert "SOCBR on a flat network, seed 1" in str(found.value)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)


def test_a_run_with_a_swap_for_the_worse_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    worthwhile = SocbrBroker.is_worthwhile

    def whatever(self: SocbrBroker, plan: Plan) -> bool:
        if not worthwhile(self, plan):
            self.swaps.append(Swap(self.system.engine.now, plan.tear_up, plan.tear_down, 1.0))
        return True

    def heaviest(hops: Sequence[Hop], *_: object, **__: object) -> int:
        return max(range(len(hops) - 1), key=lambda place: hops[place + 1].weight)

    monkeypatch.setattr(SocbrBroker, "is_worthwhile", whatever)
    monkeypatch.setattr("qns.lab.socbr.tear_down", heaviest)
    with pytest.raises(BrokenRun, match="took the place of"):
        run_variant((SETUP, "flat", SOCBR, 1))


@pytest.mark.parametrize("strategy", ["CBR", "SOCBR", "notification flooding"])
def test_a_strategy_that_delivers_twice_is_not_compared(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = System.deliver

    def twice(self: System, event: Publication, subscriptions: list[str], broker: int) -> None:
        once(self, event, subscriptions * 2, broker)

    monkeypatch.setattr(System, "deliver", twice)
    with pytest.raises(BrokenRun, match=f"{strategy}, seed 3: Minimality is broken"):
        compare(
            Setting(12, 3, fan_out=4),
            20,
            20,
            shape=Shape(longest=500.0),
            strategies={strategy: STRATEGIES[strategy]},
        )


def test_hops_that_are_counted_have_to_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = comparison.tree_hops
    monkeypatch.setattr(comparison, "tree_hops", lambda *given: counted(*given) + 1)
    with pytest.raises(BrokenRun, match="hops were made"):
        locality(12, 30, 10, seeds=[1], localities=[0.5])


def test_a_spread_that_forgets_somebody_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    publish = CbrBroker.publish

    def only_here(self: CbrBroker, event: Publication) -> None:
        if event.publisher != 3:
            publish(self, event)
            return
        self.system.deliver(event, self.local.match(event.point), self.number)
        for broker in range(8):
            self.system.reach(event, broker)

    monkeypatch.setattr(CbrBroker, "publish", only_here)
    setup = loss_experiment.Setup(brokers=8, hosts=(10,), loss_hosts=(10,))
    with pytest.raises(BrokenRun, match=r"spreading on 10 hosts, topology 0: Liveness"):
        loss_experiment.spread((setup, 10, 0))


def test_an_overlay_in_parts_or_with_too_many_links_is_found() -> None:
    overlay = Overlay(4, 2)
    overlay.link(0, 1)
    overlay.link(0, 2)
    with pytest.raises(BrokenRun, match="no tree"):
        check_overlay(overlay, "here")
    overlay.link(0, 3)
    with pytest.raises(BrokenRun, match="here: broker 0 has 3 links, its fan-out is 2"):
        check_overlay(overlay, "here")
    overlay.fan_out = 3
    check_overlay(overlay, "here")


def test_a_swap_has_to_gain_something() -> None:
    here = boxes_of([Rectangle((0.0, 0.0), (1.0, 1.0))])
    there = boxes_of([Rectangle((5.0, 5.0), (6.0, 6.0))])
    check_swaps([Swap(0.0, (0, 1), (0, 2), 2.0)], [here, here, there], "here")
    for same in (there, here):
        with pytest.raises(BrokenRun, match=r"link \(0, 2\) of weight"):
            check_swaps([Swap(0.0, (0, 2), (0, 1), 2.0)], [here, here, same], "here")
