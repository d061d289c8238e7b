"""CBR on random trees against brute force: receivers and crossed links of notifications."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import Zone
from qns.lab.simulated.network import flat
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import Publication, System
from qns.lab.strategies.cbr import CbrBroker

CORNERS = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3), st.integers(0, 3))
RECTANGLES = CORNERS.map(lambda c: rect(c[0], c[1], c[0] + c[2], c[1] + c[3]))


def rect(left: float, low: float, right: float, high: float) -> Rectangle:
    return Rectangle((left, low), (right, high))


def cbr(brokers: int, seed: int = 0, fan_out: int = 3) -> System:
    random = Random(seed)
    overlay = Overlay.random_tree(brokers, fan_out, random)
    return System(flat(max(2, brokers), random), overlay, CbrBroker, random)


def line(brokers: int) -> System:
    overlay = Overlay(brokers, 2)
    for broker in range(1, brokers):
        overlay.link(broker - 1, broker)
    return System(flat(brokers, Random(0)), overlay, CbrBroker, Random(0))


def broker(system: System, number: int) -> CbrBroker:
    found = system.brokers[number]
    assert isinstance(found, CbrBroker)
    return found


def crossed(system: System, publisher: int, interested: set[int]) -> int:
    """Counts the links with an interested broker on the side away from the publisher."""
    parents = system.overlay.parents(publisher)
    links = set()
    for each in interested:
        while each != publisher:
            links.add((parents[each], each))
            each = parents[each]
    return len(links)


@given(
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 8), RECTANGLES, st.booleans()), max_size=14),
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 18), st.integers(0, 18)), min_size=1, max_size=6
    ),
    st.integers(0, 1000),
)
def test_notification_reaches_the_brokers_of_brute_force_over_no_other_links(
    brokers: int,
    subscriptions: list[tuple[int, Rectangle, bool]],
    publications: list[tuple[int, int, int]],
    seed: int,
) -> None:
    system = cbr(brokers, seed)
    asked: dict[str, tuple[int, Rectangle]] = {}
    for number, (place, rectangle, cancels) in enumerate(subscriptions):
        asked[f"s{number}"] = place % brokers, rectangle
        system.brokers[place % brokers].subscribe(f"s{number}", rectangle)
        system.settle()
        if cancels and number % 2:
            cancelled = f"s{number // 2}"
            if cancelled in asked:
                system.brokers[asked.pop(cancelled)[0]].unsubscribe(cancelled)
                system.settle()
    for number, (place, x, y) in enumerate(publications):
        publisher, point = place % brokers, (x / 2, y / 2)
        sent, delivered = system.sent["notification"], len(system.deliveries)
        system.brokers[publisher].publish(Publication(f"e{number}", point, publisher))
        system.settle()
        wanted = {id: home for id, (home, one) in asked.items() if one.holds(point)}
        found = Counter(each.subscription for each in system.deliveries[delivered:])
        assert found == Counter(list(wanted))
        hops = crossed(system, publisher, set(wanted.values()))
        assert system.sent["notification"] - sent == hops
        assert len(system.reached[f"e{number}"]) == hops + 1


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(0, 7), RECTANGLES), max_size=10),
    st.integers(0, 1000),
)
def test_routing_table_has_the_link_of_every_subscription(
    brokers: int, subscriptions: list[tuple[int, Rectangle]], seed: int
) -> None:
    system = cbr(brokers, seed)
    for number, (place, rectangle) in enumerate(subscriptions):
        system.brokers[place % brokers].subscribe(f"s{number}", rectangle)
    system.settle()
    for number in range(brokers):
        here, parents = broker(system, number), system.overlay.parents(number)
        expected: dict[int, dict[str, Rectangle]] = {link: {} for link in here.links}
        for other in range(brokers):
            step = other
            while step != number and parents[step] != number:
                step = parents[step]
            if step != number:
                expected[step] |= broker(system, other).announced
        assert {link: here.behind(link) for link in here.links} == expected


def test_subscription_inside_the_zone_is_not_announced() -> None:
    system = line(3)
    system.brokers[0].subscribe("left", rect(0, 0, 2, 2))
    system.brokers[0].subscribe("right", rect(2, 0, 4, 2))
    system.settle()
    sent = system.sent["subscription"]
    system.brokers[0].subscribe("between", rect(1, 0, 3, 2))
    system.settle()
    assert sent == system.sent["subscription"] == 4
    assert broker(system, 0).table_size == 3
    assert broker(system, 2).table_size == 2
    system.brokers[2].publish(Publication("e", (2.0, 1.0), 2))
    system.settle()
    assert [each.subscription for each in system.deliveries] == ["between", "left", "right"]


def test_unsubscribing_the_cover_brings_back_what_it_covered() -> None:
    system = line(3)
    system.brokers[0].subscribe("cover", rect(0, 0, 4, 4))
    system.brokers[0].subscribe("inside", rect(1, 1, 2, 2))
    system.settle()
    system.brokers[0].unsubscribe("cover")
    system.settle()
    for other in (1, 2):
        assert broker(system, other).table.rectangles == {"inside": rect(1, 1, 2, 2)}
    system.brokers[0].unsubscribe("inside")
    system.settle()
    assert [broker(system, each).table_size for each in range(3)] == [0, 0, 0]
    assert system.sent["unsubscription"] == 4


def test_no_notification_is_lost_while_a_cover_is_replaced() -> None:
    system = line(4)
    system.brokers[0].subscribe("cover", rect(0, 0, 4, 4))
    system.brokers[0].subscribe("inside", rect(1, 1, 2, 2))
    system.settle()
    for number in range(40):
        event = Publication(f"e{number}", (1.5, 1.5), 3)
        system.engine.at(system.engine.now + 5 * number, system.brokers[3].publish, event)
    system.engine.at(system.engine.now + 60, system.brokers[0].unsubscribe, "cover")
    system.settle()
    found = Counter(each.event for each in system.deliveries if each.subscription == "inside")
    assert found == Counter(f"e{number}" for number in range(40))


def test_two_runs_with_the_same_seed_are_identical() -> None:
    def run() -> System:
        system, random = cbr(12, 7), Random(3)
        for number in range(30):
            x, y = random.random(), random.random()
            system.brokers[random.randrange(12)].subscribe(f"s{number}", rect(x, y, x + 1, y + 1))
            event = Publication(f"e{number}", (random.random(), random.random()), number % 12)
            system.brokers[number % 12].publish(event)
        system.settle()
        return system

    one, other = run(), run()
    assert one.deliveries == other.deliveries
    assert one.sent == other.sent


def test_announced_subscriptions_have_the_zone_of_all_subscriptions() -> None:
    system, random = cbr(1), Random(1)
    for number in range(40):
        x, y = random.randrange(6), random.randrange(6)
        system.brokers[0].subscribe(f"s{number}", rect(x, y, x + 2, y + 2))
        if number % 3 == 2:
            system.brokers[0].unsubscribe(f"s{number - 1}")
    here = broker(system, 0)
    assert len(here.announced) < len(here.local)
    assert Zone.from_rectangles(here.announced.items()).area() == here.local.area()
