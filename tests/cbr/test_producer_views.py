"""The views of all producers in one covering order equal one order for each (semantics §6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr import oracle
from qns.cbr.delta import Delta
from qns.cbr.producer_views import Changes, ProducerViews
from qns.cbr.subscription import Subscription
from qns.errors import DuplicateId, NameNotKnown
from tests.strategies import ALL_TYPES, crowds

PRODUCERS = ("INPS", "INAIL", "CoC")
CLASSES = sorted(ALL_TYPES.classes)
Views = dict[str, set[Subscription]]


@st.composite
def mappings(draw: st.DrawFn) -> dict[str, frozenset[str]]:
    """Draws which of the producers are members, and what each of them hosts."""
    members = draw(st.sets(st.sampled_from(PRODUCERS)))
    return {name: draw(st.frozensets(st.sampled_from(CLASSES))) for name in sorted(members)}


Step = tuple[str, Subscription | None] | dict[str, frozenset[str]]


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Draws subscribes (id, subscription), unsubscribes (id, None) and changes of the mapping."""
    pool = draw(crowds())
    steps: list[Step] = [draw(mappings())]
    alive: list[str] = []
    for number in range(draw(st.integers(1, 24))):
        kind = draw(st.integers(0, 6))
        if kind == 0:
            steps.append(draw(mappings()))
        elif alive and kind <= 2:
            leaver = draw(st.sampled_from(alive))
            alive.remove(leaver)
            steps.append((leaver, None))
        else:
            steps.append((f"s{number}", draw(st.sampled_from(pool))))
            alive.append(f"s{number}")
    return steps


def replay(views: Views, changes: Changes) -> None:
    for name, delta in changes.items():
        assert delta
        assert not delta.added & views[name]
        assert delta.removed <= views[name]
        views[name] = (views[name] - delta.removed) | delta.added


def as_seen(
    elements: set[Subscription], producer: str, hosted: frozenset[str]
) -> set[Subscription | None]:
    found = {each.projected(producer, hosted) for each in elements}
    assert len(found) == len(elements), "two elements are the same at the producer"
    return found


@given(histories())
def test_views_equal_recomputation_and_deltas_replay_to_them(history: list[Step]) -> None:
    views: ProducerViews[str] = ProducerViews()
    alive: dict[str, Subscription] = {}
    hosts: dict[str, frozenset[str]] = {}
    replayed: Views = {}
    for step in history:
        if isinstance(step, dict):
            hosts = step
            replayed = {name: replayed.get(name, set()) for name in hosts}
            changes = views.host(hosts)
        elif step[1] is None:
            del alive[step[0]]
            changes = views.unsubscribe(step[0])
        else:
            alive[step[0]] = step[1]
            changes = views.subscribe(step[0], step[1])
        replay(replayed, changes)
        assert views.merge_set == oracle.merge_set(alive.values())
        for name, hosted in hosts.items():
            assert replayed[name] == set(views.elements(name))
            expected = oracle.producer_view(alive.values(), name, hosted)
            assert as_seen(replayed[name], name, hosted) == expected
    assert len(views) == len(alive)


@given(crowds(), mappings())
def test_adding_all_at_once_gives_the_same_views(
    wanted: list[Subscription], hosts: dict[str, frozenset[str]]
) -> None:
    views: ProducerViews[int] = ProducerViews()
    views.host(hosts)
    views.subscribe_all(enumerate(wanted))
    assert views.merge_set == oracle.merge_set(wanted)
    for name, hosted in hosts.items():
        expected = oracle.producer_view(wanted, name, hosted)
        assert as_seen(set(views.elements(name)), name, hosted) == expected
    for number in range(len(wanted)):
        views.unsubscribe(number)
    assert not views.merge_set
    assert not any(list(views.elements(name)) for name in hosts)


def test_unchanged_mapping_changes_no_view() -> None:
    hosts = {"INPS": frozenset(CLASSES)}
    views: ProducerViews[str] = ProducerViews()
    views.host(hosts)
    everything = Subscription(frozenset(CLASSES), None, {}, CLASSES[0])
    assert views.subscribe("a", everything) == {"INPS": Delta(frozenset({everything}))}
    assert views.subscribe("b", everything) == {}
    assert views.host(hosts) == {}
    assert views.unsubscribe("a") == {}
    assert views.unsubscribe("b") == {"INPS": Delta(removed=frozenset({everything}))}


def test_second_subscription_of_an_id_and_an_unknown_id_are_rejected() -> None:
    views: ProducerViews[str] = ProducerViews()
    everything = Subscription(frozenset(CLASSES), None, {}, CLASSES[0])
    views.subscribe("a", everything)
    with pytest.raises(DuplicateId, match="subscription a exists already"):
        views.subscribe("a", everything)
    with pytest.raises(NameNotKnown, match="b"):
        views.unsubscribe("b")
    assert views.merge_set == {everything}
