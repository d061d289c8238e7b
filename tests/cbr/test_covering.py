"""The covering order: incremental merge sets, exact deltas, producer views (semantics §6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr import oracle
from qns.cbr.covering import CoveringOrder
from qns.cbr.delta import Delta
from qns.cbr.event import Event
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription
from qns.cbr.views import ProducerView
from qns.errors import DuplicateId, NameNotKnown
from tests.strategies import ALL_TYPES, chains, crowds, events

HOSTED = frozenset({"Thing", "Thing/Part"})


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Subscription | None]]:
    """Draws valid sequences of subscribes (id, subscription) and unsubscribes (id, None)."""
    pool = draw(crowds())
    steps: list[tuple[str, Subscription | None]] = []
    alive: list[str] = []
    for number in range(draw(st.integers(1, 24))):
        if alive and draw(st.integers(0, 2)) == 0:
            leaver = draw(st.sampled_from(alive))
            alive.remove(leaver)
            steps.append((leaver, None))
        else:
            steps.append((f"s{number}", draw(st.sampled_from(pool))))
            alive.append(f"s{number}")
    return steps


def after(delta: Delta[Subscription], before: set[Subscription]) -> set[Subscription]:
    return (before - delta.removed) | delta.added


@given(histories())
def test_merge_set_equals_recomputation_and_deltas_replay_to_it(
    history: list[tuple[str, Subscription | None]],
) -> None:
    order: CoveringOrder[str] = CoveringOrder()
    view = ProducerView("INPS", HOSTED)
    exact = ExactMerge()
    alive: dict[str, Subscription] = {}
    replayed: set[Subscription] = set()
    seen_by_producer: set[Subscription] = set()
    exactly: set[Subscription] = set()
    for id, subscription in history:
        if subscription is None:
            del alive[id]
            delta = order.unsubscribe(id)
        else:
            alive[id] = subscription
            delta = order.subscribe(id, subscription)
        truth = oracle.merge_set(alive.values())
        assert order.merge_set == truth
        assert not delta.added & replayed
        assert delta.removed <= replayed
        replayed = after(delta, replayed)
        assert replayed == truth
        seen_by_producer = after(view.update(delta), seen_by_producer)
        assert seen_by_producer == oracle.producer_view(alive.values(), "INPS", HOSTED)
        exactly = after(exact.update(delta), exactly)
        assert exactly == exact.subscriptions == ExactMerge(truth).subscriptions
    covered = {id: root for root, asking, below in order.covers() for id in (*asking, *below)}
    assert set(covered) == set(alive)
    assert all(root.contains(alive[id]) for id, root in covered.items())


@given(crowds(), st.lists(events(), min_size=1, max_size=8))
def test_merged_set_matches_exactly_the_events_that_some_user_subscribed_to(
    wanted: list[Subscription], happened: list[Event]
) -> None:
    merged = oracle.merge_set(wanted)
    exact = ExactMerge(merged).subscriptions
    view = ProducerView("INPS", ALL_TYPES.classes, merged).subscriptions
    for event in happened:
        truth = any(each.matches(event) for each in wanted)
        assert any(each.matches(event) for each in merged) == truth
        assert any(each.matches(event) for each in exact) == truth
        if event.source == "INPS":
            assert any(each.matches(event) for each in view) == truth


@given(crowds())
def test_exact_merging_never_leaves_more_elements_than_the_merge_set_has(
    wanted: list[Subscription],
) -> None:
    merged = oracle.merge_set(wanted)
    assert len(ExactMerge(merged).subscriptions) <= len(merged)


@given(chains(), st.permutations(range(3)), st.permutations(range(3)))
def test_chain_is_covered_by_its_widest_member_in_any_order(
    chain: list[Subscription], arrival: list[int], departure: list[int]
) -> None:
    """Three subscriptions that contain one another come and go; the covered ones reappear."""
    order: CoveringOrder[int] = CoveringOrder()
    assert chain[0].contains(chain[1])
    assert chain[1].contains(chain[2])
    present: set[int] = set()
    for place in arrival:
        order.subscribe(place, chain[place])
        present.add(place)
        assert order.merge_set == {chain[min(present)]}
    for place in departure:
        order.unsubscribe(place)
        present.remove(place)
        assert order.merge_set == ({chain[min(present)]} if present else set())


def test_unknown_or_duplicate_id_is_rejected_and_changes_nothing() -> None:
    order: CoveringOrder[str] = CoveringOrder()
    everything = Subscription(frozenset({"Other"}), None, {}, "Other")
    order.subscribe("s1", everything)
    with pytest.raises(DuplicateId, match="s1"):
        order.subscribe("s1", everything)
    with pytest.raises(NameNotKnown, match="s2"):
        order.unsubscribe("s2")
    assert order.merge_set == {everything}
    assert len(order) == 1


def test_merge_set_changes_only_when_the_last_of_two_equal_subscriptions_leaves() -> None:
    order: CoveringOrder[str] = CoveringOrder()
    everything = Subscription(frozenset({"Other"}), None, {}, "Other")
    order.subscribe("s1", everything)
    assert order.subscribe("s2", everything) == Delta()
    assert order.unsubscribe("s1") == Delta()
    assert order.unsubscribe("s2") == Delta(removed=frozenset({everything}))
