"""Discovery finds the best broker behind a link with the fewest requests."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.cbr.rectangles import Rectangle
from qns.cbr.zones import associativity_of
from qns.lab.simulated.network import flat
from qns.lab.simulated.overlay import Overlay
from qns.lab.simulated.system import System
from qns.lab.strategies.discovery import Hop, Offer, Request, best
from qns.lab.strategies.interests import boxes_of, weight
from qns.lab.strategies.socbr import Options, SocbrBroker, socbr
from tests.lab.socbr_worlds import some_rectangle

FEWER = settings(max_examples=max(10, settings.default.max_examples // 5))  # whole systems


class Asked(SocbrBroker):
    """A broker that records its offers and never starts a swap."""

    offers: list[Offer]

    def offered(self, offer: Offer) -> None:
        self.offers.append(offer)


def rect(left: float, low: float, right: float, high: float) -> Rectangle:
    return Rectangle((left, low), (right, high))


def asked(overlay: Overlay, options: Options | None = None, seed: int = 0) -> System:
    def make(system: System, number: int) -> Asked:
        broker = Asked(system, number, options or Options())
        broker.offers = []
        return broker

    return System(flat(overlay.brokers, Random(seed)), overlay, make, Random(seed))


def line(brokers: int) -> Overlay:
    overlay = Overlay(brokers, 3)
    for broker in range(1, brokers):
        overlay.link(broker - 1, broker)
    return overlay


def at(system: System, number: int) -> Asked:
    found = system.brokers[number]
    assert isinstance(found, Asked)
    return found


def look(system: System, number: int, link: int) -> Offer | None:
    """Runs one discovery over this link and returns its offer."""
    broker = at(system, number)
    broker.offers.clear()
    broker.discoveries.start(link)
    system.settle()
    return broker.offers[0] if broker.offers else None


def fill(system: System, zones: dict[int, Rectangle]) -> None:
    for number, rectangle in zones.items():
        system.brokers[number].subscribe(f"z{number}", rectangle)
    system.settle()
    system.sent.clear()


@FEWER
@given(
    st.integers(2, 12), st.integers(0, 30), st.integers(0, 10_000), st.sampled_from([None, 2, 3])
)
def test_discovery_returns_the_best_offer_of_all_brokers_behind_the_link(
    brokers: int, subscriptions: int, seed: int, ttl: int | None
) -> None:
    """The forwarding predicate never excludes a better broker."""
    random = Random(seed)
    system = asked(Overlay.random_tree(brokers, 4, random), Options(ttl=ttl), seed)
    for number in range(subscriptions):
        place = random.randrange(brokers)
        system.brokers[place].subscribe(f"s{number}", some_rectangle(random))
    system.settle()
    start = random.randrange(brokers)
    zone = at(system, start).zone
    for link in list(at(system, start).links):
        offer = look(system, start, link)
        ranks = []
        for other in range(brokers):
            path = system.overlay.path(start, other)
            if other != start and path[1] == link and (ttl is None or len(path) - 1 <= ttl):
                common = associativity_of(zone, at(system, other).zone)
                ranks.append((-common, len(path), other))
        assert offer is not None
        assert offer.rank == min(ranks)
        path = system.overlay.path(start, offer.hops[-1].broker)
        assert [hop.broker for hop in offer.hops] == path
        assert offer.available == system.overlay.available(path[-1])
        assert offer.zone is at(system, path[-1]).zone
        for before, hop in zip(path, offer.hops[1:], strict=False):
            expected = weight(at(system, before).zone, at(system, hop.broker).zone)
            assert hop.weight == pytest.approx(expected)
    assert not any(at(system, each).discoveries.pending for each in range(brokers))
    assert not any(at(system, each).discoveries.started for each in range(brokers))


def test_request_is_not_forwarded_where_no_broker_can_offer_more() -> None:
    overlay = Overlay(5, 3)
    for one, other in ((0, 1), (1, 2), (1, 3), (3, 4)):
        overlay.link(one, other)
    system = asked(overlay)
    fill(
        system,
        {
            0: rect(0, 0, 4, 4),
            1: rect(0, 0, 2, 4),  # half of the zone of 0
            2: rect(0, 0, 1, 4),  # less, so it gets no request
            4: rect(0, 0, 3, 4),  # more, behind 3, which has no interests
        },
    )
    system.sent.clear()
    offer = look(system, 0, 1)
    assert offer is not None
    assert [hop.broker for hop in offer.hops] == [0, 1, 3, 4]
    assert offer.associativity == 0.75
    assert system.sent["discovery"] == 2 * 3
    weights = [hop.weight for hop in offer.hops]
    assert weights == [0.0, 1.5, 0.0, 0.0]


def test_broker_with_full_associativity_does_not_forward_the_request() -> None:
    system = asked(line(3))
    fill(system, {number: rect(0, 0, 4, 4) for number in range(3)})
    offer = look(system, 0, 1)
    assert offer is not None
    assert offer.hops[-1].broker == 1  # 2 offers as much, but is farther away
    assert system.sent["discovery"] == 2


def offer_of(associativity: float, *brokers: int) -> Offer:
    return Offer(associativity, boxes_of(()), 1, tuple(Hop(each, 0.0) for each in brokers))


def test_best_of_equal_offers_is_the_nearest_then_the_lowest_number() -> None:
    far, near, low = offer_of(0.5, 0, 1, 2, 3), offer_of(0.5, 0, 1, 9), offer_of(0.5, 0, 1, 4)
    more = offer_of(0.6, 0, 1, 2, 3, 8)
    assert best([far, near, low]) is low
    assert best([far, near]) is near
    assert best([far, near, low, more]) is more
    assert best([]) is None


@pytest.mark.parametrize(("ttl", "found", "messages"), [(0, None, 0), (1, 1, 2), (2, 2, 4)])
def test_request_is_forwarded_as_far_as_its_ttl_allows(
    ttl: int, found: int | None, messages: int
) -> None:
    system = asked(line(4), Options(ttl=ttl))
    fill(system, {number: rect(0, 0, number + 1, 4) for number in range(1, 4)})
    fill(system, {0: rect(0, 0, 9, 4)})
    offer = look(system, 0, 1)
    assert (None if offer is None else offer.hops[-1].broker) == found
    assert system.sent["discovery"] == messages


@pytest.mark.parametrize("bound_ms", [0.0, 40.0, 80.0, 1_000.0])
def test_broker_beyond_the_proximity_bound_makes_no_offer(bound_ms: float) -> None:
    system = asked(line(6), Options(bound_ms=bound_ms), seed=3)
    fill(system, {number: rect(0, 0, number, 4) for number in range(1, 6)})
    fill(system, {0: rect(0, 0, 9, 4)})
    near = [each for each in range(1, 6) if system.latency_ms(0, each) <= bound_ms]
    offer = look(system, 0, 1)
    assert (None if offer is None else offer.hops[-1].broker) == max(near, default=None)
    assert system.sent["ping"] == 2 * 5
    if offer is not None:
        measured = [hop.distance_ms for hop in offer.hops]
        assert measured == [system.latency_ms(0, hop.broker) for hop in offer.hops]


def test_concurrent_discoveries_do_not_interfere() -> None:
    system = asked(line(5))
    fill(system, {0: rect(0, 0, 8, 4), 4: rect(0, 0, 4, 4), 2: rect(0, 0, 1, 4)})
    for number, link in ((0, 1), (4, 3), (0, 1), (1, 2)):
        at(system, number).offers.clear()
        at(system, number).discoveries.start(link)
    system.settle()
    assert [offer.hops[-1].broker for offer in at(system, 0).offers] == [4, 4]
    assert [offer.hops[-1].broker for offer in at(system, 4).offers] == [0]


def test_removed_link_ends_the_requests_and_replies_over_it() -> None:
    """1 stops waiting for 2, and 2 drops its reply to 1."""
    system = asked(line(4))
    fill(system, {0: rect(0, 0, 8, 4), 1: rect(0, 0, 1, 4), 2: rect(0, 0, 2, 4)})
    fill(system, {3: rect(0, 0, 3, 4)})
    at(system, 0).offers.clear()
    at(system, 0).discoveries.start(1)
    while not at(system, 3).discoveries.pending and not at(system, 2).discoveries.pending:
        system.engine.run(system.engine.now + 1)
    for one, other in ((1, 2), (2, 1)):
        del at(system, one).links[other]
        at(system, one).link_gone(other)
    assert not at(system, 2).discoveries.pending
    system.settle()
    assert [offer.hops[-1].broker for offer in at(system, 0).offers] == [1]
    assert not any(at(system, each).discoveries.pending for each in range(4))


def test_duplicate_request_is_answered_at_once_without_an_offer() -> None:
    """This can happen if the tree changes; the hops of the request show it."""
    system = asked(line(3))
    fill(system, {1: rect(0, 0, 1, 4), 2: rect(0, 0, 2, 4)})
    broker = at(system, 1)
    request = Request((0, 1), broker.zone, (Hop(0, 0.0), Hop(1, 0.0), Hop(2, 0.0)), None)
    broker.discoveries.on_request(2, request)
    assert system.sent["discovery"] == 1
    broker.discoveries.on_request(9, request)  # over a removed link
    assert system.sent["discovery"] == 1
    assert not broker.discoveries.pending


def test_socbr_returns_a_strategy_that_makes_socbr_brokers() -> None:
    overlay = line(2)
    system = System(flat(2, Random(0)), overlay, socbr(), Random(0))
    assert all(isinstance(broker, SocbrBroker) for broker in system.brokers)
