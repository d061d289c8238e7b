"""Exact merging: which elements are merged, which are not, and how merging is undone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qns.cbr import exact_merge, oracle
from qns.cbr.delta import Delta
from qns.cbr.event import Event
from qns.cbr.exact_merge import ExactMerge
from qns.cbr.subscription import Subscription
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from tests.strategies import crowds, events, subscriptions

SCHEMA = Schema(
    "exact", {"A": {"X": "integer", "Y": "integer", "S": "string"}}, {"low": 0.3, "high": 0.9}
)


def wanted(*texts: str) -> set[Subscription]:
    return oracle.merge_set(parse_subscription(text, SCHEMA) for text in texts)


def merged(*texts: str) -> set[Subscription]:
    return set(ExactMerge(wanted(*texts)).subscriptions)


def test_neighbouring_and_distant_intervals_become_one_element() -> None:
    assert merged("A where X between 1 and 3", "A where X between 4 and 9") == wanted(
        "A where X between 1 and 9"
    )
    assert merged("A where X < 0", "A where X > 9") == wanted("A where X in {< 0, > 9}")


def test_elements_that_differ_in_two_attributes_stay_apart() -> None:
    apart = ("A where X = 1 and Y = 1", "A where X = 2 and Y = 2")
    assert merged(*apart) == wanted(*apart)


def test_four_elements_that_tile_a_square_become_one() -> None:
    square = [f"A where X = {x} and Y = {y}" for x in (1, 2) for y in (1, 2)]
    assert merged(*square) == wanted("A where X in {1, 2} and Y in {1, 2}")


def test_string_lists_are_joined_and_an_excluded_string_is_filled_in() -> None:
    assert merged('A where S = "a"', 'A where S = "b"') == wanted('A where S in {"a", "b"}')
    assert merged('A where S != "a"', 'A where S = "a"') == wanted("A where S exists")
    apart = ('A where S starts with "a"', 'A where S ends with "b"')
    assert merged(*apart) == wanted(*apart)


def test_elements_that_differ_only_in_sources_become_one() -> None:
    assert merged("A from P, Q where X = 1", "A from R where X = 1") == wanted(
        "A from P, Q, R where X = 1"
    )


def test_union_that_accepts_all_sources_keeps_accepting_them() -> None:
    """The union of two elements has the constraint of a third one, which names a source."""
    assert merged("A where X < 5", "A where X >= 5 and X <= 9", "A from P where X <= 9") == wanted(
        "A where X <= 9"
    )


def test_a_union_covers_elements_of_other_families() -> None:
    assert merged(
        "A where X between 1 and 5",
        "A where X between 6 and 9",
        "A where X between 4 and 7 and Y = 1",
    ) == wanted("A where X between 1 and 9")


def test_removing_an_element_undoes_its_merge() -> None:
    left, right = (parse_subscription(f"A where X = {x}", SCHEMA) for x in (1, 2))
    both = parse_subscription("A where X in {1, 2}", SCHEMA)
    exact = ExactMerge([left, right])
    assert exact.subscriptions == {both}
    assert exact.update(Delta(removed=frozenset({left}))) == Delta(
        frozenset({right}), frozenset({both})
    )
    assert exact.update(Delta(removed=frozenset({right}))) == Delta(removed=frozenset({right}))


def test_merged_element_never_exceeds_what_can_be_written_and_read() -> None:
    many = [f"A where X = {2 * x}" for x in range(exact_merge.MAX_TERMS * 2 + 1)]
    elements = merged(*many)
    assert 3 <= len(elements) <= 4
    assert all(sum(v.terms for v in e.constraints.values()) <= 1_000 for e in elements)
    long = [f'A where S = "{"s" * 9_000}{number}"' for number in range(6)]
    assert 3 <= len(merged(*long)) < 6
    crowds = [
        f"A from {', '.join(f'O{crowd}_{n}' for n in range(600))} where X = 1" for crowd in range(3)
    ]
    assert len(merged(*crowds)) == 3
    for element in (*elements, *merged(*long), *merged(*crowds)):
        assert parse_subscription(write_readable(element, SCHEMA), SCHEMA) == element


@given(
    st.lists(subscriptions(max_constraints=2), max_size=10) | crowds(10),
    st.lists(events(), max_size=8),
)
def test_merged_set_matches_the_same_events_as_the_original_set(
    several: list[Subscription], happened: list[Event]
) -> None:
    exact = ExactMerge(oracle.merge_set(several)).subscriptions
    for event in happened:
        assert any(each.matches(event) for each in exact) == any(
            each.matches(event) for each in several
        )


@given(st.permutations([f"A where X = {x} and Y = {y}" for x in range(3) for y in range(3)]))
def test_result_does_not_depend_on_the_order_of_additions(texts: list[str]) -> None:
    exact = ExactMerge()
    for text in texts:
        exact.update(Delta(added=frozenset({parse_subscription(text, SCHEMA)})))
    assert exact.subscriptions == wanted("A where X in {0, 1, 2} and Y in {0, 1, 2}")
