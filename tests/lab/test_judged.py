"""Runs that break a rule of the history, of the tree or of swaps are rejected."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest

from qns.cbr.rectangles import Rectangle
from qns.lab.experiments import comparison, loss_experiment
from qns.lab.experiments.comparison import compare, locality
from qns.lab.experiments.judged import BrokenRun, check_overlay, check_swaps
from qns.lab.experiments.self_organisation import CBR, SOCBR, VARIANTS, Setup, run_variant
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Publication, System
from qns.lab.simulated.workload import Shape
from qns.lab.strategies.catalogue import STRATEGIES, Setting
from qns.lab.strategies.cbr import CbrBroker, Notify
from qns.lab.strategies.discovery import Hop
from qns.lab.strategies.interests import boxes_of
from qns.lab.strategies.reconfiguration import Passage, Plan, Reconfigurations, Reroute
from qns.lab.strategies.socbr import SocbrBroker, Swap

SETUP = Setup(
    brokers=20, fan_out=4, subscriptions=60, window=30, notifications=50, shape=Shape(longest=500)
)


@pytest.mark.parametrize("network", list(VARIANTS))
@pytest.mark.parametrize("variant", [CBR, SOCBR])
def test_judged_publications_do_not_change_the_measurements(network: str, variant: str) -> None:
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


def test_run_that_loses_a_message_held_by_a_swap_is_rejected(
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


def test_run_is_rejected_if_a_new_link_does_not_outweigh_the_one_it_replaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worthwhile = SocbrBroker.is_worthwhile

    def whatever(self: SocbrBroker, plan: Plan) -> bool:
        if not worthwhile(self, plan):
            self.swaps.append(Swap(self.system.engine.now, plan.tear_up, plan.tear_down, 1.0))
        return True

    def heaviest(hops: Sequence[Hop], *_: object, **__: object) -> int:
        return max(range(len(hops) - 1), key=lambda place: hops[place + 1].weight)

    monkeypatch.setattr(SocbrBroker, "is_worthwhile", whatever)
    monkeypatch.setattr("qns.lab.strategies.socbr.tear_down", heaviest)
    with pytest.raises(BrokenRun, match="replaced"):
        run_variant((SETUP, "flat", SOCBR, 1))


@pytest.mark.parametrize("strategy", ["CBR", "SOCBR", "notification flooding"])
def test_strategy_that_delivers_twice_is_rejected(
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


def test_computed_hops_that_differ_from_the_run_are_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = comparison.tree_hops
    monkeypatch.setattr(comparison, "tree_hops", lambda *given: counted(*given) + 1)
    with pytest.raises(BrokenRun, match="hops were made"):
        locality(12, 30, 10, seeds=[1], localities=[0.5])


def test_loss_experiment_rejects_a_spread_that_misses_a_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


def test_overlay_check_rejects_unconnected_parts_and_too_many_links() -> None:
    overlay = Overlay(4, 2)
    overlay.link(0, 1)
    overlay.link(0, 2)
    with pytest.raises(BrokenRun, match="not a tree"):
        check_overlay(overlay, "here")
    overlay.link(0, 3)
    with pytest.raises(BrokenRun, match="here: broker 0 has 3 links, its fan-out is 2"):
        check_overlay(overlay, "here")
    overlay.fan_out = 3
    check_overlay(overlay, "here")


def test_swap_check_rejects_a_swap_without_gain() -> None:
    here = boxes_of([Rectangle((0.0, 0.0), (1.0, 1.0))])
    there = boxes_of([Rectangle((5.0, 5.0), (6.0, 6.0))])
    check_swaps([Swap(0.0, (0, 1), (0, 2), 2.0)], [here, here, there], "here")
    for same in (there, here):
        with pytest.raises(BrokenRun, match=r"link \(0, 2\) of weight"):
            check_swaps([Swap(0.0, (0, 2), (0, 1), 2.0)], [here, here, same], "here")
