"""Failing syncs, power cuts and changed bits: what each does to a small world of two peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.iil.requests import Publish
from qns.simulation.actions import Action
from qns.simulation.broken_disks import DAMAGE
from qns.simulation.disk_faults import KINDS
from qns.simulation.faults import FAULTS
from qns.simulation.injection import Injection
from qns.simulation.scenario import Scenario
from qns.simulation.workload import make_plan
from qns.simulation.world import TUNING, World
from qns.store.losing_disk import LosingDisk
from tests.edl.peers import delivered, federation, publish, subscribe
from tests.resting import comes_to_rest_and_holds


@pytest.fixture
def world() -> Iterator[World]:
    """Returns a world on disks of real files, in which C has subscribed and P has published."""
    world = World(1, federation("P", "C"), TUNING, lambda: LosingDisk(Random(1)), recording=True)
    world.start()
    world.run_for(1.0)
    subscribe(world, "C")
    world.run_for(1.0)
    publish(world, "P", "e1")
    yield world
    for node in world.nodes.values():
        node.disk.discard()


def disk_of(world: World, name: str) -> LosingDisk:
    disk = world.nodes[name].disk
    assert isinstance(disk, LosingDisk)
    return disk


def ask_to_publish(world: World, id: str) -> list[object]:
    """Hands a publication to P, which may never answer; returns the list for the answer."""
    answers: list[object] = []
    fields = {"id": id, "class": "Report", "source": "P"}
    world.ask("P", Publish(EventReader(WEATHER).from_fields(fields)), answers.append)
    world.run_for(0.1)
    return answers


def publications(world: World) -> list[str]:
    return [each["event"]["id"] for each in world.history if each["do"] == "pub"]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("then_cuts_power", [True, False])
def test_host_whose_sync_fails_answers_nothing_and_opens_its_store_again(
    world: World, kept: bool, then_cuts_power: bool
) -> None:
    injection = Injection(world, {})
    injection.do_fail_syncs(Action(0.0, "fail-syncs", "P", {"times": 1, "kept": kept}))
    answers = ask_to_publish(world, "e2")
    assert not answers
    assert not world.nodes["P"].is_up
    if then_cuts_power:
        injection.do_cut_power(Action(0.0, "cut-power", "P", {"down_s": 0.5}))
    world.run_for(2.0)
    assert world.nodes["P"].is_up
    survived = publications(world) == ["e1", "e2"]
    assert survived or publications(world) == ["e1"]
    publish(world, "P", "e2", "e3")
    comes_to_rest_and_holds(world)
    assert publications(world) == ["e1", "e2", "e3"]
    assert delivered(world, "C") == ["e1", "e2", "e3"]


def test_power_cut_undoes_nothing_that_was_answered(world: World) -> None:
    injection = Injection(world, {})
    for nth in range(2, 12):
        publish(world, "P", f"e{nth}")
        for name in ("P", "C"):
            injection.do_cut_power(Action(0.0, "cut-power", name, {"down_s": 0.2}))
        world.run_for(1.0)
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == [f"e{nth}" for nth in range(1, 12)]


def rot(world: World, injection: Injection, **fields: object) -> None:
    """Changes a bit in every page of P, so that it does not matter which pages are read."""
    disk_of(world, "P").check()  # the log is empty then
    injection.do_rot(Action(0.0, "rot", "P", {"pages": 400, "bits": 1, **fields}))


@pytest.mark.parametrize("fields", [{}, {"down_s": 0.5}], ids=["running", "down"])
def test_damaged_host_stops_until_its_operator_restores_the_newest_backup(
    world: World, fields: dict[str, object]
) -> None:
    injection = Injection(world, {})
    world.back_up("P")
    publish(world, "P", "e2")
    world.run_for(1.0)
    rot(world, injection, **fields)
    world.run_for(1.6)
    assert not world.nodes["P"].is_up
    publish_after(world, "e3")
    assert injection.counts == {"changed bits": 1, "restored stores": 1}
    assert any(each["do"] == "start" and each["restored"] for each in world.history)
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1", "e2", "e3"]
    assert injection.findings.asked[DAMAGE]
    assert not injection.findings.violations


def test_damaged_host_without_a_backup_starts_with_an_empty_store(world: World) -> None:
    injection = Injection(world, {})
    rot(world, injection)
    publish_after(world, "e2")
    assert injection.counts == {"changed bits": 1, "lost stores": 1}
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1", "e2"]


def publish_after(world: World, id: str) -> None:
    """Publishes an event when P has been repaired."""
    world.run_for(5.0)
    assert world.nodes["P"].is_up
    publish(world, "P", id)


def test_overlooked_damage_breaks_the_rule(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    injection = Injection(world, {})
    rot(world, injection)
    monkeypatch.setattr(LosingDisk, "check", lambda _: None)
    injection.broken_disks.check_everything()
    (violation,) = injection.findings.violations
    assert violation.startswith(f"{DAMAGE}: P runs on a store with changed bits in its pages")


def test_report_of_damage_without_a_changed_bit_breaks_the_rule(world: World) -> None:
    injection = Injection(world, {})
    world.on_damage("P")
    (violation,) = injection.findings.violations
    assert "no bit has changed" in violation


def test_faults_of_the_disk_leave_the_other_actions_of_a_plan_as_they_are() -> None:
    others = tuple(fault for fault in FAULTS if fault not in ("failing-sync", "rot", "twin"))
    for seed in range(0, 40, 4):  # these seeds have all faults
        without = make_plan(seed, 6, others)
        plan = make_plan(seed, 6, (*others, "failing-sync", "rot"))
        if any(each.kind in KINDS for each in plan.actions):
            assert plan.on_files
            kinds = (*KINDS, "backup", "repeat", "publish", "bounds")
            assert _without(plan.actions, kinds) == _without(without.actions, kinds)
        else:
            assert plan.actions == without.actions


def _without(actions: tuple[Action, ...], kinds: tuple[str, ...]) -> list[Action]:
    return [each for each in actions if each.kind not in kinds]


@pytest.mark.parametrize("kind", ["fail-syncs", "rot"])
def test_seed_with_faults_of_the_disk_gives_the_same_history_twice(kind: str) -> None:
    plans = (make_plan(seed, 4, ("failing-sync", "rot", "crash")) for seed in count())
    plan = next(plan for plan in plans if any(each.kind == kind for each in plan.actions))
    first, second = (Scenario(replace(plan)).run() for _ in range(2))
    assert first.history == second.history
    assert first.counts == second.counts
