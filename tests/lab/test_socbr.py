"""SOCBR: triggering, tear-down selection, its effect, and its variants."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.errors import ValueRefused
from qns.lab.simulated.network import flat, transit_stub
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Publication, Strategy, System
from qns.lab.simulated.workload import Shape, Workload
from qns.lab.strategies.cbr import CbrBroker
from qns.lab.strategies.discovery import Hop
from qns.lab.strategies.socbr import Options, SocbrBroker, socbr, tear_down
from tests.lab.socbr_worlds import World, new_world

BROKERS = 40


def rect(left: float, low: float, right: float, high: float) -> Rectangle:
    return Rectangle((left, low), (right, high))


# --- triggering -----------------------------------------------------------------------------------


def row_of(*zones: Rectangle | None) -> World:
    links = [(number - 1, number) for number in range(1, len(zones))]
    world = new_world(len(zones), 4, 0, links=links)
    for number, zone in enumerate(zones):
        if zone is not None:
            world.subscribe(f"z{number}", number, zone)
            world.system.settle()
    world.system.sent.clear()
    return world


def test_discovery_starts_only_over_links_with_a_larger_share_than_before() -> None:
    world = row_of(rect(0, 0, 2, 2), None, rect(7, 7, 8, 8))
    assert list(world.brokers[1].links) == [0, 2]
    world.subscribe(
        "new", 1, rect(1, 0, 2, 2)
    )  # it is entirely in the zone of 0, and not in that of 2
    world.system.settle()
    assert world.system.sent["discovery"] == 2
    assert world.system.sent["lock"] == 0  # 0 is a neighbour already


def test_no_discovery_starts_when_the_share_falls() -> None:
    world = row_of(rect(0, 0, 2, 2), rect(0, 0, 2, 2), None)
    world.subscribe("elsewhere", 1, rect(5, 5, 9, 9))
    world.system.settle()
    assert world.system.sent["discovery"] == 0


def test_no_discovery_starts_for_a_subscription_inside_the_zone() -> None:
    world = row_of(rect(0, 0, 4, 4), None, None, rect(0, 0, 4, 4))
    world.subscribe("inside", 0, rect(1, 1, 2, 2))
    world.system.settle()
    assert not +world.system.sent


def test_no_discovery_starts_on_unsubscription() -> None:
    world = row_of(rect(0, 0, 4, 4), None, rect(0, 0, 1, 1))
    world.subscribe("inside", 0, rect(0, 0, 1, 1))
    world.unsubscribe("z0")
    world.system.settle()
    assert world.system.sent["discovery"] == 0
    assert world.system.sent["subscription"] == world.system.sent["unsubscription"] == 2


def test_brokers_with_equal_interests_become_neighbours() -> None:
    world = row_of(rect(0, 0, 4, 4), None, None, None, rect(0, 0, 4, 4))
    world.check_quiet()
    assert world.overlay.is_link(0, 4)
    (swap,) = world.swaps
    assert swap.gain == 2


# --- tear-down selection (fig. 4.7) ---------------------------------------------------------------


def hops(*weights: float) -> list[Hop]:
    return [Hop(number, weight) for number, weight in enumerate((0.0, *weights))]


def test_lightest_link_is_cut_when_both_ends_have_links_available() -> None:
    assert tear_down(hops(0.9, 0.2, 0.5), 1, 1, 1.0) == 1
    assert tear_down(hops(0.2, 0.2, 0.5), 1, 1, 1.0) == 0


def test_end_without_available_links_cuts_its_own_link_of_the_path() -> None:
    assert tear_down(hops(0.9, 0.2, 0.5), 0, 3, 1.0) == 0
    assert tear_down(hops(0.9, 0.2, 0.5), 3, 0, 1.0) == 2
    assert tear_down(hops(0.9, 0.2, 0.5), 0, 0, 1.0) is None


def test_link_is_cut_only_for_a_heavier_one() -> None:
    assert tear_down(hops(0.9, 0.2, 0.5), 1, 1, 0.2) is None
    assert tear_down(hops(0.9, 0.2, 0.5), 0, 1, 0.9) is None
    assert tear_down(hops(0.9, 0.2, 0.5), 1, 0, 0.6) == 2


def test_farthest_of_the_lighter_links_is_cut_with_a_proximity_bound() -> None:
    path = [Hop(0, 0.0), Hop(1, 0.1, 30.0), Hop(2, 0.3, 90.0), Hop(3, 0.9, 150.0), Hop(4, 0.2, 40)]
    assert tear_down(path, 1, 1, 0.5) == 0
    assert tear_down(path, 1, 1, 0.5, farthest=True) == 3  # its near end is farther than all others
    assert tear_down(path, 1, 1, 0.15, farthest=True) == 0
    assert tear_down(path, 0, 1, 0.5, farthest=True) == 0


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.9]), min_size=2, max_size=6),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([0.1, 0.5, 1.0, 2.0]),
    st.booleans(),
)
def test_cut_link_is_lighter_and_leaves_no_end_above_its_fan_out(
    weights: list[float], available: int, offered: int, new: float, farthest: bool
) -> None:
    cut = tear_down(hops(*weights), available, offered, new, farthest=farthest)
    if cut is None:
        assert (available == offered == 0) or min(weights) >= new or 0 in (available, offered)
    else:
        assert weights[cut] < new
        assert available > 0 or cut == 0
        assert offered > 0 or cut == len(weights) - 1


# --- as a whole -----------------------------------------------------------------------------------


def run(strategy: Strategy, seed: int = 0, subscriptions: int = 120) -> System:
    """Runs subscriptions one after the other, and a few publications at the end."""
    random = Random(seed)
    network = transit_stub(BROKERS, random)
    overlay = Overlay.random_tree(BROKERS, 6, random)
    system = System(network, overlay, strategy, random)
    draw = Workload(Shape(longest=600.0), random, [list(range(BROKERS))])
    for number in range(subscriptions):
        broker, rectangle = draw.subscription()
        system.brokers[broker].subscribe(f"s{number}", rectangle)
        system.settle()
    for number in range(60):
        publisher, point = draw.publication()
        system.brokers[publisher].publish(Publication(f"e{number}", point, publisher))
        system.settle()
    return system


def swaps(system: System) -> list[tuple[int, int]]:
    brokers = [each for each in system.brokers if isinstance(each, SocbrBroker)]
    return [swap.tear_up for broker in brokers for swap in broker.swaps]


def notified(system: System) -> list[tuple[str, str]]:
    return sorted((each.event, each.subscription) for each in system.deliveries)


def test_socbr_delivers_the_same_as_cbr_with_fewer_pure_forwarders() -> None:
    plain, organised = run(CbrBroker), run(socbr())
    assert notified(plain) == notified(organised)
    assert plain.sent["subscription"] == organised.sent["subscription"]
    assert organised.sent["notification"] < 0.9 * plain.sent["notification"]
    assert organised.overlay.is_tree
    assert max(map(organised.overlay.degree, range(BROKERS))) <= 6
    assert organised.sent["discovery"] > 0
    assert organised.sent["lock"] > 0
    assert organised.sent["ping"] == 0


def test_ttl_0_is_plain_cbr() -> None:
    plain, organised = run(CbrBroker), run(socbr(Options(ttl=0)))
    assert plain.sent == organised.sent
    assert plain.deliveries == organised.deliveries


def test_ttl_saves_messages_and_links_only_brokers_within_reach() -> None:
    wide, narrow = run(socbr()), run(socbr(Options(ttl=3)))
    assert narrow.sent["discovery"] < wide.sent["discovery"]
    assert notified(narrow) == notified(wide)


@pytest.mark.parametrize("cuts_lightest", [False, True])
@pytest.mark.parametrize("bound_ms", [60.0, 120.0])
def test_proximity_bound_links_only_near_brokers(bound_ms: float, cuts_lightest: bool) -> None:
    system = run(socbr(Options(bound_ms=bound_ms, cuts_lightest=cuts_lightest)))
    linked = swaps(system)
    assert linked
    assert all(system.latency_ms(*pair) <= bound_ms for pair in linked)
    assert system.sent["ping"] > 0
    assert notified(system) == notified(run(CbrBroker))


def test_two_runs_with_the_same_seed_are_identical() -> None:
    one, other = run(socbr(), 4), run(socbr(), 4)
    assert one.deliveries == other.deliveries
    assert one.sent == other.sent
    assert list(one.overlay.links()) == list(other.overlay.links())


def test_single_broker_delivers_without_links() -> None:
    system = System(flat(2, Random(0)), Overlay(1, 2), socbr(), Random(0))
    system.brokers[0].subscribe("s", rect(0, 0, 1, 1))
    system.brokers[0].publish(Publication("e", (0.5, 0.5), 0))
    system.settle()
    assert notified(system) == [("e", "s")]


@pytest.mark.parametrize(
    ("wrong", "complaint"), [({"ttl": -1}, "TTL"), ({"bound_ms": -0.5}, "proximity bound")]
)
def test_negative_options_are_refused(wrong: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueRefused, match=complaint):
        Options(**wrong)
