"""Faults of simulated hosts: what each does to a small world of two or three peers."""

from __future__ import annotations

import pytest

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.iil.requests import Publish, Subscribe
from qns.peer.tables import EVENTS
from qns.simulation.actions import Action
from qns.simulation.host_faults import RECOVERY_STEPS
from qns.simulation.injection import Injection
from qns.simulation.lasting import working_pairs
from qns.simulation.workload import make_plan
from qns.simulation.world import World
from tests.edl.peers import delivered, peer_of, publish, subscribe, world_of
from tests.resting import comes_to_rest_and_holds


def test_process_follows_a_clock_that_is_set_back_slowly_until_it_starts_again() -> None:
    world = world_of("P", "C")
    node, since = world.nodes["P"], world.now
    world.set_clock("P", -20.0)
    assert node.clock(since) == pytest.approx(since)
    world.run_for(10.0)
    assert node.clock(world.now) == pytest.approx(since + 5.0)
    world.kill("P")
    world.start("P")
    assert node.clock(world.now) == pytest.approx(since - 10.0)
    comes_to_rest_and_holds(world)


@pytest.mark.parametrize("crashes", [False, True])
def test_clock_that_is_a_day_ahead_for_seconds_ends_no_subscription(crashes: bool) -> None:
    world = world_of("P", "C")
    world.do("C", Subscribe("user", "Report", id="s", lifetime_s=3_600.0))
    world.set_clock("C", 86_400.0)
    if crashes:  # a new process has nothing to compare the clock with
        world.kill("C")
        world.start("C")
    world.run_for(5.0)
    world.set_clock("C", -86_400.0)
    world.run_for(5.0)
    assert bool(peer_of(world, "C").iil.table) is not crashes


def test_ledger_knows_which_steps_of_a_clock_a_process_follows() -> None:
    world = world_of("P", "C")
    ledger, now = world.ledger, world.now
    world.set_clock("P", 86_400.0)
    assert ledger.latest_clock("P", now + 500.0) == pytest.approx(now + 500.0)
    assert ledger.latest_clock("P", now + 600.0) == pytest.approx(now + 600.0 + 86_400.0)
    world.set_clock("P", -86_400.0)
    assert ledger.latest_clock("P", now + 600.0) == pytest.approx(now + 600.0)
    world.set_clock("P", 50.0)
    assert ledger.earliest_clock("P", now) == pytest.approx(now + 50.0)
    world.set_clock("P", -70.0)
    assert ledger.earliest_clock("P", now) == pytest.approx(now - 20.0)
    assert ledger.latest_clock("P", now) == pytest.approx(now + 50.0)


def test_turns_that_begin_during_a_slow_commit_are_committed_together() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    node = world.nodes["C"]
    node.commit_s = 3.0
    before = node.commits
    publish(world, "P", "e1")
    world.run_for(0.5)
    publish(world, "P", "e2")
    world.run_for(2.0)
    assert not node.queue.is_idle
    assert node.commits == before
    node.heal()
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1", "e2"]


def test_nothing_leaves_a_host_before_its_commit() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    node = world.nodes["P"]
    assert node.gateway is not None
    node.commit_s = 3.0
    since, before = world.now, len(world.history)
    answered: list[str] = []

    def ask(*ids: str) -> None:
        for id in ids:
            fields = {"id": id, "class": "Report", "source": "P"}
            request = Publish(EventReader(WEATHER).from_fields(fields))
            assert world.ask("P", request, lambda _, id=id: answered.append(id))  # type: ignore[misc]

    def on_disk() -> list[str]:
        assert node.gateway is not None
        return [row.id for row in node.gateway.store.rows(EVENTS)]

    ask("e1")  # its commit ends after 3 s; four inputs are enough for a turn meanwhile
    world.at(since + 1.0, lambda: ask("e2", "e3", "e4", "e5"))
    world.run_for(2.9)
    assert len(peer_of(world, "P").log) == 5  # both turns have been handled in memory
    assert (on_disk(), answered) == ([], [])
    assert len(world.history) == before
    assert not [each for each in world.traffic if each[0] > since and each[1] == "P"]
    world.run_for(0.2)
    assert on_disk() == answered == ["e1"]
    sent = [each[3] for each in world.traffic if each[0] > since and each[1] == "P"]
    assert [item.event for each in sent for item in each.items] == ["e1"]
    world.run_for(3.0)
    assert answered == ["e1", "e2", "e3", "e4", "e5"]
    node.heal()
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == answered


def test_host_that_dies_during_a_slow_commit_loses_its_turns() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    world.nodes["C"].commit_s = 3.0
    publish(world, "P", "e1")
    world.run_for(1.0)
    world.kill("C")
    world.nodes["C"].heal()
    world.start("C")
    assert peer_of(world, "C").edl.consumer.standing("P").last == 0
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1"]


@pytest.mark.parametrize("step", range(RECOVERY_STEPS))
def test_host_that_dies_in_its_recovery_starts_again_and_is_not_taken_for_restored(
    step: int,
) -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    publish(world, "P", "e1")
    world.kill("P")
    world.nodes["P"].interruptions = [step, step]
    world.start("P")
    assert not world.nodes["P"].is_up
    comes_to_rest_and_holds(world)
    starts = [each for each in world.history if each["do"] == "start" and each["org"] == "P"]
    assert not any(each["restored"] for each in starts)
    committed = 2 if step > 1 else 0  # the commit is the second step
    assert len(starts) == 2 + committed


@pytest.mark.parametrize(("commits", "published"), [(0, 1), (1, 0)])
def test_every_second_failing_commit_is_written(commits: int, published: int) -> None:
    world = world_of("P", "C")
    node = world.nodes["P"]
    node.commits, node.fail_every = commits, 1
    publish_once(world, "e1")
    assert not node.is_up
    node.heal()
    world.start("P")
    assert peer_of(world, "P").identity.row.published == published
    comes_to_rest_and_holds(world)


def publish_once(world: World, id: str) -> None:
    """Hands a publication to P, which may die before it answers."""
    fields = {"id": id, "class": "Report", "source": "P"}
    world.ask("P", Publish(EventReader(WEATHER).from_fields(fields)))
    world.run_for(0.1)


def test_ways_lead_over_links_that_work_in_both_directions() -> None:
    world = world_of("A", "B", "C", "D")
    for sender, receiver in (("A", "C"), ("D", "A"), ("B", "D"), ("D", "C")):
        world.network.sever(sender, receiver)
    assert working_pairs(world) == {("A", "B"), ("A", "C"), ("B", "A")} | {
        ("B", "C"),
        ("C", "A"),
        ("C", "B"),
    }
    world.absent.add("B")
    assert working_pairs(world) == set()
    world.network.heal()
    assert working_pairs(world) == set()
    world.network.restore()
    assert len(working_pairs(world)) == 6


def test_swarm_seeds_have_different_faults() -> None:
    kinds = [
        {action.kind for action in make_plan(seed, 6, ("crash", "swarm")).actions}
        for seed in range(40)
    ]
    assert 5 < sum("crash" in each for each in kinds) < 35


def test_lost_log_undoes_commits_after_the_checkpoint_and_leaves_the_lineage() -> None:
    world = world_of("P", "C")
    subscribe(world, "C")
    world.run_for(2.0)
    publish(world, "P", "e1")
    node = world.nodes["P"]
    marks = node.lineage.read()
    node.checkpoint(world.now)
    publish(world, "P", "e2")
    world.run_for(2.0)
    injection = Injection(world, {})
    injection.do_lose_log(Action(0.0, "lose-log", "P", {"down_s": 0.0}))
    assert node.lineage.read() == marks
    world.run_for(0.0)
    assert peer_of(world, "P").identity.row.published == 1
    publish(world, "P", "e3")
    comes_to_rest_and_holds(world)
    assert delivered(world, "C") == ["e1", "e2", "e3"]
    assert injection.counts == {"lost logs": 1}


def test_log_that_was_never_checkpointed_cannot_be_lost() -> None:
    world = world_of("P", "C")
    injection = Injection(world, {})
    injection.do_lose_log(Action(0.0, "lose-log", "P", {"down_s": 0.0}))
    assert injection.counts == {}
    comes_to_rest_and_holds(world)
