"""Swaps of links lose no message and keep the tree, also when they are concurrent."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.lab.strategies.interests import weight
from qns.lab.strategies.reconfiguration import Plan, Reconfigurations
from qns.lab.strategies.socbr import Options
from tests.lab.socbr_worlds import World, new_world, play, some_rectangle

FEWER = settings(max_examples=max(10, settings.default.max_examples // 5))  # whole systems
KINDS = ("notification", "subscription", "unsubscription", "lock", "reroute", "discovery")
HANDLING = st.dictionaries(st.sampled_from(KINDS), st.sampled_from([0.0, 1.0, 5.0, 20.0]))

HERE = Rectangle((0.0, 0.0), (1.0, 1.0))


def line(brokers: int, fan_out: int = 4) -> World:
    """Brokers in a row that start no discovery."""
    links = [(number - 1, number) for number in range(1, brokers)]
    return new_world(brokers, fan_out, 0, Options(ttl=0), links=links)


def attach(world: World, plan: Plan) -> bool:
    return parts(world, plan.path[0]).start(plan)


def parts(world: World, broker: int) -> Reconfigurations:
    return world.brokers[broker].reconfigurations


def links(world: World) -> set[tuple[int, int]]:
    return set(world.overlay.links())


def alike(brokers: int, *same: int, fan_out: int = 4) -> World:
    """A row in which only these brokers have common interests."""
    world = line(brokers, fan_out)
    for number in same:
        world.subscribe(f"s{number}", number, HERE)
    world.system.settle()
    world.system.sent.clear()
    return world


# --- one at a time --------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(4))
def test_swap_links_the_ends_removes_the_cut_link_and_updates_all_tables(cut: int) -> None:
    world = alike(5, 0, 4)
    for number in (1, 2, 3):
        world.subscribe(f"other{number}", number, Rectangle((number, 8.0), (number + 0.5, 9.0)))
    world.system.settle()
    assert attach(world, Plan((0, 1), (0, 1, 2, 3, 4), cut))
    world.system.settle()
    world.check_quiet()
    assert links(world) == {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)} - {(cut, cut + 1)}
    assert world.system.sent["lock"] == 3 * 4 + cut  # 4 LOCK, 4 ACK, p+1 CLOSE, p + 3−p UNLOCK


def test_swap_is_undone_when_it_no_longer_gains_weight() -> None:
    world = alike(4, 0, 1)
    assert attach(world, Plan((0, 1), (0, 1, 2, 3), 0))
    world.system.settle()
    world.check_quiet()
    assert links(world) == {(0, 1), (1, 2), (2, 3)}
    assert not world.swaps


def test_swap_is_not_made_between_links_of_equal_weight() -> None:
    world = alike(3, 0, 1, 2)
    attach(world, Plan((0, 1), (0, 1, 2), 1))
    world.system.settle()
    assert links(world) == {(0, 1), (1, 2)}


def test_broker_without_a_free_link_refuses_a_swap_unless_the_cut_frees_one() -> None:
    for cut, is_done in ((0, False), (1, True)):
        world = alike(4, 0, 2, fan_out=2)
        assert attach(world, Plan((0, 1), (0, 1, 2), cut))
        world.system.settle()
        world.check_quiet()
        assert world.overlay.is_link(0, 2) is is_done


def test_initiator_of_a_swap_needs_a_free_link() -> None:
    world = alike(5, 1, 3, fan_out=2)
    assert not attach(world, Plan((1, 1), (1, 2, 3), 1))
    assert attach(world, Plan((1, 2), (1, 2, 3), 0))
    world.system.settle()
    world.check_quiet()
    assert links(world) == {
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
    }  # the other end refused, because it has no free link


@pytest.mark.parametrize("path", [(0, 2, 3), (0, 1, 3, 2), (0, 1, 2, 4)])
def test_swap_along_a_stale_path_is_refused(path: tuple[int, ...]) -> None:
    world = alike(5, *path)
    attach(world, Plan((0, 1), path, 0))
    world.system.settle()
    world.check_quiet()
    assert links(world) == {(0, 1), (1, 2), (2, 3), (3, 4)}
    assert world.system.sent["lock"] <= 4


def test_swap_between_neighbours_is_refused() -> None:
    world = alike(3, 0, 1)
    assert not attach(world, Plan((0, 1), (0, 2, 1), 0))


# --- two at a time --------------------------------------------------------------------------------


def test_two_swaps_that_lock_the_same_link_do_not_deadlock() -> None:
    world = alike(6, 0, 5, 1, 4)
    attach(world, Plan((0, 1), (0, 1, 2, 3, 4, 5), 2))
    attach(world, Plan((4, 1), (4, 3, 2, 1), 1))
    world.system.settle()
    world.check_quiet()
    assert len(world.swaps) <= 1


def test_two_swaps_that_share_brokers_but_no_link_both_succeed() -> None:
    world = alike(5, 0, 2, 4)
    attach(world, Plan((0, 1), (0, 1, 2), 1))
    attach(world, Plan((4, 1), (4, 3, 2), 1))
    world.system.settle()
    world.check_quiet()
    assert links(world) == {(0, 1), (0, 2), (2, 4), (3, 4)}


def test_last_free_link_of_a_broker_is_reserved_only_once() -> None:
    world = line(5, fan_out=3)
    for number in (0, 2, 4):
        world.subscribe(f"s{number}", number, HERE)
    world.system.settle()
    attach(world, Plan((0, 1), (0, 1, 2), 0))
    attach(world, Plan((4, 1), (4, 3, 2), 0))
    world.system.settle()
    world.check_quiet()
    assert len(world.swaps) == 1
    assert world.overlay.degree(2) == 3


# --- with traffic ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(4))
@pytest.mark.parametrize("every_ms", [3.0, 11.0])
def test_notifications_from_all_brokers_arrive_once_everywhere_during_a_swap(
    cut: int, every_ms: float
) -> None:
    """Brokers on the path and one more beside each of them."""
    off_path = [(number, number + 5) for number in range(5)]
    links = [(number - 1, number) for number in range(1, 5)] + off_path
    world = new_world(10, 4, 0, Options(ttl=0), links=links)
    for number in (0, 4):
        world.subscribe(f"s{number}", number, HERE)
    for number in range(10):
        world.subscribe(f"all{number}", number, Rectangle((9.0, 9.0), (9.0, 9.0)))
    world.system.settle()
    engine, start = world.system.engine, world.system.engine.now
    for number in range(150):
        when, publisher = start + every_ms * number, number % 10
        engine.at(when, world.publish, f"e{number}", publisher, (9.0, 9.0))
    engine.at(start + 50, attach, world, Plan((0, 1), (0, 1, 2, 3, 4), cut))
    world.system.settle()
    assert len(world.swaps) == 1
    world.check_quiet()
    world.check_deliveries()
    assert sum(each.subscription.startswith("all") for each in world.system.deliveries) == 150 * 10


@pytest.mark.parametrize("cut", range(4))
def test_updates_from_all_brokers_arrive_everywhere_during_a_swap(cut: int) -> None:
    world = alike(5, 0, 4)
    random, engine = Random(cut), world.system.engine
    start = engine.now
    for number in range(60):
        rectangle = Rectangle((3.0 * number + 3, 3.0), (3.0 * number + 5, 5.0))
        engine.at(start + 9 * number, world.subscribe, f"u{number}", number % 5, rectangle)
        if number % 3 == 2:
            when = start + 9 * number + random.uniform(0, 100)
            engine.at(when, world.unsubscribe, f"u{number}")
    engine.at(start + 50, attach, world, Plan((0, 1), (0, 1, 2, 3, 4), cut))
    world.system.settle()
    assert len(world.swaps) == 1
    world.check_quiet()


@FEWER
@given(
    st.integers(2, 14),
    st.integers(2, 5),
    st.integers(1, 110),
    st.sampled_from([50.0, 300.0, 1_500.0, 5_000.0]),
    HANDLING,
    st.sampled_from([None, None, 3]),
    st.sampled_from([None, None, 80.0]),
    st.integers(0, 2**32),
)
def test_concurrent_swaps_keep_tree_tables_and_notifications_correct(
    brokers: int,
    fan_out: int,
    actions: int,
    within_ms: float,
    handling_ms: dict[str, float],
    ttl: int | None,
    bound_ms: float | None,
    seed: int,
) -> None:
    """Checks the overlay after every step, and tables and deliveries at the end."""
    world = new_world(brokers, fan_out, seed, Options(ttl, bound_ms), handling_ms)
    play(world, Random(seed), actions, within_ms)
    world.check_quiet()
    world.check_deliveries()


def test_many_concurrent_swaps_in_a_large_overlay_keep_everything_correct() -> None:
    """There are so many that some are refused, some undone and several half done at a time."""
    swaps = plans = together = 0
    for seed in (0, 3):
        world = new_world(40, 4, seed)
        play(world, Random(seed), 500, 2_500)
        world.check_quiet()
        world.check_deliveries()
        swaps += len(world.swaps)
        plans += sum(broker.plans for broker in world.brokers)
        together = max(together, world.overlay.most_cuts)
    assert swaps > 20
    assert plans > swaps + 50
    assert together > 2


@FEWER
@given(st.integers(3, 14), st.integers(2, 5), st.integers(3, 40), st.integers(0, 2**32))
def test_associativity_grows_with_every_swap_while_zones_are_constant(
    brokers: int, fan_out: int, subscriptions: int, seed: int
) -> None:
    """All discoveries start at once, and no broker subscribes meanwhile."""
    random = Random(seed)
    world = new_world(brokers, fan_out, seed)
    for number in range(subscriptions):
        rectangle = some_rectangle(random)
        world.subscribe(f"s{number}", random.randrange(brokers), rectangle)
    world.system.settle()
    for broker in world.brokers:
        broker.swaps.clear()
        for link in broker.links:
            broker.discoveries.start(link)
    measured = [world.associativity]

    def look() -> None:
        world.check_step()
        if not world.overlay.cuts:
            measured.append(world.associativity)

    world.engine.watcher = look
    world.system.settle()
    world.check_quiet()
    zones = [broker.zone for broker in world.brokers]
    for swap in world.swaps:
        up, down = (
            weight(*(zones[end] for end in ends)) for ends in (swap.tear_up, swap.tear_down)
        )
        assert swap.gain == pytest.approx(up - down)
        assert swap.gain > 0
    for earlier, later in pairwise(measured):
        assert later >= earlier - 1e-9


def test_swap_is_recorded_with_its_gain() -> None:
    world = alike(4, 0, 3)
    attach(world, Plan((0, 1), (0, 1, 2, 3), 1))
    before = world.associativity
    world.system.settle()
    (swap,) = world.swaps
    assert (swap.tear_up, swap.tear_down, swap.gain) == ((0, 3), (1, 2), 2.0)
    assert world.associativity == before + swap.gain / 4
