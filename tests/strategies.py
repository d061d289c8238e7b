"""Hypothesis strategies for schemas, subscriptions and events.

Values come from small pools, so that random events often match random subscriptions, and random
subscriptions often contain one another.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from hypothesis import strategies as st

from qns.cbr.domains import (
    BOOLEAN,
    DATE,
    DATETIME,
    DECIMAL,
    INTEGER,
    QUALITY,
    STRING,
    Domain,
    Key,
)
from qns.cbr.event import Event
from qns.cbr.intervals import Intervals
from qns.cbr.region import EVERY_QUALITY, Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription, ValueSet
from qns.d2q.schema import Attribute, Schema

ALL_TYPES = Schema(
    "all-types",
    {
        "Thing": {"Code": "string", "Count": "integer", "Since": "date"},
        "Thing/Part": {"Code": "string", "Weight": "decimal", "Broken": "boolean"},
        "Thing/Part/Screw": {"Checked": "dateTime"},
        "Other": {"Name": "string"},
    },
    {"low": 0.3, "medium": 0.6, "high": 0.9},
)

ORGANISATIONS = ["INPS", "INAIL", "CoC"]

POOLS: dict[Domain, list[Key]] = {
    STRING: ["", "a", "ab", "abc", "b", "ba", "cab", 'say "hi"', "back\\slash", "línea\nnueva"],
    INTEGER: [INTEGER.lo, -1, 0, 1, 2, 3, 5, 10, INTEGER.hi],
    DECIMAL: [DECIMAL.key(x) for x in (-12.5, -1e-7, 0.0, 0.1, 0.3, 1.0, 1.00000000000001, 1e22)],
    BOOLEAN: [0, 1],
    DATE: [
        DATE.key(x)
        for x in (date.min, date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 2), date.max)
    ],
    DATETIME: [
        DATETIME.key(datetime(2024, 1, 31, 12, 0, second, microsecond, tzinfo=UTC))
        for second, microsecond in ((0, 0), (0, 1), (1, 0), (30, 500000))
    ]
    + [DATETIME.lo, DATETIME.hi],
    QUALITY: [QUALITY.key(x) for x in (0, 0.1, 0.3, 0.4, 0.6, 0.7, 0.9, 1)],
}


def keys(domain: Domain) -> st.SearchStrategy[Key]:
    return st.sampled_from(POOLS[domain])


@st.composite
def intervals(draw: st.DrawFn, domain: Domain) -> Intervals:
    """Draws any non-empty set that constraints or exact merging can produce."""
    ends = draw(st.lists(st.tuples(keys(domain), keys(domain)), min_size=1, max_size=3))
    openings = draw(st.sampled_from([(0, 0), (0, 0), (1, 0), (0, -1), (1, -1)]))
    spans = []
    for a, b in ends:
        assert isinstance(a, int)
        assert isinstance(b, int)
        lo, hi = sorted((a, b))
        lo, hi = max(domain.lo, lo + openings[0]), min(domain.hi, hi + openings[1])
        if draw(st.integers(0, 5)) == 0:
            lo = domain.lo
        if draw(st.integers(0, 5)) == 0:
            hi = domain.hi
        spans.append((lo, hi))
    found = Intervals.of(spans)
    return Intervals.all_of(domain) if found.is_empty else found


@st.composite
def string_sets(draw: st.DrawFn) -> Strings:
    pool = keys(STRING)
    if draw(st.booleans()):
        return Strings.of(draw(st.lists(pool, min_size=1, max_size=3)))
    prefix, suffix = draw(st.tuples(pool, pool))
    fragments = draw(st.lists(pool.filter(bool), max_size=2))
    which = draw(st.integers(0, 7))
    return Strings.described(
        prefix=prefix if which & 1 else "",
        suffix=suffix if which & 2 else "",
        fragments=fragments if which & 4 else [],
        excluded=draw(st.lists(pool, max_size=2)),
    )


@st.composite
def regions(draw: st.DrawFn) -> Region:
    new = draw(intervals(QUALITY))
    if draw(st.integers(0, 2)):
        return Region.of(new)
    threshold = draw(keys(QUALITY))
    transition = draw(
        st.sampled_from(
            [
                Region.falls_below(threshold),
                Region.rises_above(threshold),
                Region.changes_by(threshold),
                Region.of(EVERY_QUALITY, draw(intervals(QUALITY))),
                Region.of(EVERY_QUALITY, draw(intervals(QUALITY)), threshold),
            ]
        )
    )
    found = transition.intersect(Region.of(new))
    return Region.of(new) if found.is_empty else found


def value_sets(attribute: Attribute) -> st.SearchStrategy[ValueSet]:
    if attribute.dimension:
        return regions()
    if attribute.domain is STRING:
        return string_sets()
    return intervals(attribute.domain)


def sources() -> st.SearchStrategy[frozenset[str] | None]:
    return st.none() | st.frozensets(st.sampled_from(ORGANISATIONS), min_size=1)


@st.composite
def subscriptions(
    draw: st.DrawFn, schema: Schema = ALL_TYPES, max_constraints: int = 3
) -> Subscription:
    path = draw(st.sampled_from(schema.classes))
    chosen = draw(
        st.lists(
            st.sampled_from(schema.attributes(path)),
            max_size=max_constraints,
            unique_by=lambda attribute: attribute.name,
        )
    )
    constraints = {attribute.name: draw(value_sets(attribute)) for attribute in chosen}
    only = any(attribute.dimension for attribute in chosen) or draw(st.booleans())
    return Subscription(schema.scope(path, only), draw(sources()), constraints, path, only)


@st.composite
def chains(
    draw: st.DrawFn,
    family: st.SearchStrategy[Subscription] | None = None,
    schema: Schema = ALL_TYPES,
    length: int = 3,
) -> list[Subscription]:
    """Draws a subscription and narrower ones, each contained in the one before."""
    chain = [draw(subscriptions(schema) if family is None else family)]
    while len(chain) < length:
        chain.append(_narrowed(draw, chain[-1], schema))
    return chain


def _narrowed(draw: st.DrawFn, wide: Subscription, schema: Schema) -> Subscription:
    """Narrows the class, the sources or one attribute; most results differ from what they got."""
    below = [each for each in schema.scope(wide.data_class) if each != wide.data_class]
    ways = ["interval", "interval"]
    if below and not wide.only:
        ways.append("subclass")
    if wide.sources is None or len(wide.sources) > 1:
        ways.append("sources")
    way = draw(st.sampled_from(ways))
    if way == "subclass":
        path = draw(st.sampled_from(sorted(below)))
        return Subscription(schema.scope(path), wide.sources, wide.constraints, path)
    if way == "sources":
        wanted = sorted(ORGANISATIONS if wide.sources is None else wide.sources)
        fewer = draw(st.frozensets(st.sampled_from(wanted), min_size=1, max_size=2))
        return Subscription(wide.scope, fewer, wide.constraints, wide.data_class, wide.only)
    data = [each for each in schema.attributes(wide.data_class) if not each.dimension]
    attribute = draw(st.sampled_from(data))
    values: Any = draw(value_sets(attribute))
    before: Any = wide.constraints.get(attribute.name)
    if before is not None:
        values = before.intersect(values)
    constraints = dict(wide.constraints)
    if not values.is_empty:
        constraints[attribute.name] = values
    return Subscription(wide.scope, wide.sources, constraints, wide.data_class, wide.only)


def crowds(most: int = 8) -> st.SearchStrategy[list[Subscription]]:
    """Draws subscriptions of which many contain one another, in chains of three."""
    single = subscriptions().map(lambda each: [each])
    groups = st.lists(st.one_of(single, chains()), min_size=1, max_size=max(1, most // 2))
    return groups.map(lambda found: [each for group in found for each in group][:most])


@st.composite
def events(draw: st.DrawFn, schema: Schema = ALL_TYPES) -> Event:
    path = draw(st.sampled_from(schema.classes))
    values: dict[str, Key] = {}
    previous: dict[str, int] = {}
    for attribute in schema.attributes(path):
        if draw(st.integers(0, 3)):
            values[attribute.name] = draw(keys(attribute.domain))
        if attribute.dimension and draw(st.booleans()):
            old = draw(keys(QUALITY))
            assert isinstance(old, int)
            previous[attribute.name] = old
    source = draw(st.sampled_from([*ORGANISATIONS, "elsewhere"]))
    return Event(f"e{draw(st.integers(0, 999))}", path, source, values, previous)
