"""Containment is sound and complete: there is a witness exactly if it does not hold (semantics §5).

One test compares it with the witness, another enumerates all events over the boundary values.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import BOOLEAN, INTEGER, QUALITY, Key
from qns.cbr.event import Event
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.cbr.witness import SCOPE, SOURCES, Witness, witness
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.language import parse_subscription
from qns.d2q.schema import Schema
from qns.d2q.shipped import AGENCIES, WEATHER
from tests.strategies import ALL_TYPES, ORGANISATIONS, subscriptions


@st.composite
def relatives(
    draw: st.DrawFn, family: st.SearchStrategy[Subscription]
) -> tuple[Subscription, Subscription]:
    """Draws two similar subscriptions. In nearly half of the cases one contains the other."""
    a, b = draw(family), draw(family)
    if draw(st.booleans()):
        shared = draw(st.sets(st.sampled_from(sorted(a.constraints)))) if a.constraints else ()
        constraints = {name: a.constraints[name] for name in shared}
        if a.scope == b.scope:
            constraints = {**b.constraints, **constraints}
        sources = draw(st.sampled_from([a.sources, b.sources]))
        b = Subscription(a.scope, sources, constraints, a.data_class, a.only)
    return (a, b) if draw(st.booleans()) else (b, a)


@given(relatives(subscriptions()))
def test_witness_exists_exactly_if_there_is_no_containment(
    pair: tuple[Subscription, Subscription],
) -> None:
    a, b = pair
    found = witness(a, b)
    assert a.contains(b) == (found is None)
    if found is not None:
        assert b.matches(found.event)
        assert not a.matches(found.event)
        assert found.attribute in {SCOPE, SOURCES, *a.constraints}


@given(subscriptions(), subscriptions())
def test_witness_is_a_valid_event_of_the_schema(a: Subscription, b: Subscription) -> None:
    found = witness(a, b)
    if found is not None:
        fields = write_event_json(found.event, ALL_TYPES)
        assert EventReader(ALL_TYPES).from_fields(fields) == found.event


@given(subscriptions())
def test_subscription_has_no_witness_against_itself(a: Subscription) -> None:
    assert witness(a, a) is None


# -- enumeration over a tiny schema -----------------------------------------------------------

TINY = Schema(
    "tiny",
    {
        "Box": {"Open": "boolean", "Size": "integer"},
        "Box/Lid": {"Tight": "boolean"},
        "Bag": {"Full": "boolean"},
    },
)
SIZES = range(4)
QUALITIES = [QUALITY.key(x) for x in (0, 0.5, 1)]


@st.composite
def spans(draw: st.DrawFn, keys: list[int], lowest: int, highest: int) -> Intervals:
    """Draws one or two closed, half-open or unbounded spans with ends in the pool."""
    found = []
    for _ in range(draw(st.integers(1, 2))):
        lo, hi = sorted((draw(st.sampled_from(keys)), draw(st.sampled_from(keys))))
        lo, hi = draw(st.sampled_from([(lo, hi), (lowest, hi), (lo, highest), (lo + 1, hi)]))
        found.append((max(lo, lowest), min(hi, highest)))
    return Intervals.of(found)


def tiny_sets(name: str, dimension: str | None) -> st.SearchStrategy[ValueSet]:
    if dimension:
        quality = spans(QUALITIES, QUALITY.lo, QUALITY.hi)
        change = st.sampled_from([0, 0, QUALITIES[1], QUALITIES[2]])
        return st.one_of(
            quality.map(Region.of),
            st.builds(Region.of, quality, quality, change),
        ).filter(lambda region: not region.is_empty)
    if name == "Size":
        return spans(list(SIZES), INTEGER.lo, INTEGER.hi).filter(lambda s: not s.is_empty)
    return st.sampled_from([Intervals.all_of(BOOLEAN), *(Intervals.of([(k, k)]) for k in (0, 1))])


@st.composite
def tiny_subscriptions(draw: st.DrawFn) -> Subscription:
    path = draw(st.sampled_from(TINY.classes))
    usable = [a for a in TINY.attributes(path) if a.dimension in (None, "accuracy")]
    chosen = draw(st.lists(st.sampled_from(usable), max_size=2, unique_by=lambda a: a.name))
    constraints = {a.name: draw(tiny_sets(a.prop.name, a.dimension)) for a in chosen}
    only = any(a.dimension for a in chosen) or draw(st.booleans())
    sources = draw(st.none() | st.frozensets(st.sampled_from(ORGANISATIONS[:2]), min_size=1))
    return Subscription(TINY.scope(path, only), sources, constraints, path, only)


def around(values: ValueSet) -> set[int]:
    """Returns the ends of a set and the keys next to them."""
    assert not isinstance(values, Strings)
    if isinstance(values, Intervals):
        ends = {end for span in values.spans for end in span}
        return {key + step for key in ends for step in (-1, 0, 1)}
    found = around(values.new) | around(values.previous or values.new)
    return found | {key + sign * values.change for key in found for sign in (-1, 1)}


def every_event(a: Subscription, b: Subscription) -> Iterator[Event]:
    """Yields all events over the boundary values of both, ±1, and with absent attributes.

    Attributes that neither subscription constrains make no difference.
    """
    kinds = {
        attribute.name: attribute for path in TINY.classes for attribute in TINY.attributes(path)
    }
    fields: dict[str, list[tuple[Key, int | None] | None]] = {}
    for name in {*a.constraints, *b.constraints}:
        domain = kinds[name].domain
        near = {k for s in (a, b) if name in s.constraints for k in around(s.constraints[name])}
        keys = sorted(key for key in near if domain.lo <= key <= domain.hi)
        olds = [None, *keys] if domain is QUALITY else [None]
        fields[name] = [None, *product(keys, olds)]
    for path, source in product(TINY.classes, [*ORGANISATIONS[:2], "elsewhere"]):
        own = [name for name in fields if name in {x.name for x in TINY.attributes(path)}]
        for chosen in product(*(fields[name] for name in own)):
            pairs = {name: pair for name, pair in zip(own, chosen, strict=True) if pair}
            values = {name: pair[0] for name, pair in pairs.items()}
            previous = {name: pair[1] for name, pair in pairs.items() if pair[1] is not None}
            yield Event("e", path, source, values, previous)


@given(relatives(tiny_subscriptions()))
def test_containment_agrees_with_the_enumeration_of_all_events(
    pair: tuple[Subscription, Subscription],
) -> None:
    a, b = pair
    truth = all(a.matches(event) for event in every_event(a, b) if b.matches(event))
    assert a.contains(b) == truth
    assert (witness(a, b) is None) == truth


# -- reasons ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "attribute", "reason"),
    [
        ("Report/Wind", "Report", SCOPE, "B accepts events of Report, A does not"),
        ("only Report/Wind", "Report/Wind", SCOPE, "B accepts events of Report/Wind/Gust"),
        ("Report from Met01", "Report", SOURCES, "from everyone, A only from Met01"),
        ("Report from Met01", "Report from Met01, Met02", SOURCES, "from Met02, A does not"),
        ("Report where Region exists", "Report", "Report.Region", "A asks for Report.Region"),
        (
            "Report/Wind where Speed > 20.5",
            "Report/Wind where Speed > 10",
            "Report/Wind.Speed",
            "B accepts values of Report/Wind.Speed that A does not",
        ),
    ],
)
def test_reason_names_the_attribute_in_which_the_two_differ(
    a: str, b: str, attribute: str, reason: str
) -> None:
    found = witness(parse_subscription(a, WEATHER), parse_subscription(b, WEATHER))
    assert found is not None
    assert found.attribute == attribute
    assert reason in found.reason


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        ("Report/Wind where Speed > 20.5", "Report/Wind where Speed exists", {"Speed": 0.0}),
        ("Report/Wind where Speed > 20.5", "Report/Wind where Speed > 3", {"Speed": 20.5}),
        (
            "Report/Wind where Direction >= 0",
            "Report/Wind where Direction exists",
            {"Direction": -1},
        ),
        ("Report where Station starts with 'LI'", "Report where Station exists", {"Station": ""}),
    ],
)
def test_witness_has_plain_values(a: str, b: str, shown: dict[str, object]) -> None:
    found = witness(parse_subscription(a, WEATHER), parse_subscription(b, WEATHER))
    assert found is not None
    data = write_event_json(found.event, WEATHER)["data"]
    assert {name.rpartition(".")[2]: value for name, value in data.items()} == shown


def test_witness_has_a_previous_value_if_the_difference_needs_it() -> None:
    a = parse_subscription("Enterprise/Holder where Name.accuracy falls below 0.6", AGENCIES)
    b = parse_subscription("Enterprise/Holder where Name.accuracy < 0.6", AGENCIES)
    steady = witness(a, b)
    assert steady is not None
    assert not steady.event.previous
    c = parse_subscription("Enterprise/Holder where Name.accuracy falls below 0.9", AGENCIES)
    fallen = witness(a, c)
    assert fallen is not None
    assert fallen.event.previous
    assert witness(b, a) is None


def test_witness_source_is_an_organisation_that_the_container_does_not_name() -> None:
    a = parse_subscription("Report from Elsewhere, Elsewhere2", WEATHER)
    found = witness(a, parse_subscription("Report", WEATHER))
    assert found is not None
    assert found.event.source == "Elsewhere3"


def test_witness_differs_from_a_common_event_in_one_point_if_possible() -> None:
    a = parse_subscription("Report where Region = 'Lazio' and Station = 'LIRF'", WEATHER)
    b = parse_subscription("Report where Region = 'Lazio' and Station exists", WEATHER)
    found = witness(a, b)
    assert found is not None
    assert found.event.values["Report.Region"] == "Lazio"
    assert found.attribute == "Report.Station"


def test_witness_is_found_if_a_pattern_uses_every_common_character() -> None:
    text = "".join(map(chr, range(0x4E00, 0x9FFF))) + "-~*#+%"
    container = parse_subscription('Report where Station = "a"', WEATHER)
    contained = parse_subscription(f'Report where Station starts with "{text}"', WEATHER)
    assert_is_an_event_of_the_schema(witness(container, contained), WEATHER)


def test_witness_of_two_long_patterns_fits_into_an_event() -> None:
    long = "x" * 39_000
    container = parse_subscription(
        f"Report where Station starts with '{long}' and Region = 'a'", WEATHER
    )
    contained = parse_subscription(
        f"Report where Station ends with 'y{long}' and Region exists", WEATHER
    )
    assert_is_an_event_of_the_schema(witness(container, contained), WEATHER)


def assert_is_an_event_of_the_schema(found: Witness | None, schema: Schema) -> None:
    assert found is not None
    fields = write_event_json(found.event, schema)
    assert EventReader(schema).from_fields(fields) == found.event
