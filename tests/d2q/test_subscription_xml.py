"""Subscriptions to XML and back: the third spelling of semantics §3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qns.cbr.domains import DECIMAL, QUALITY
from qns.cbr.intervals import Intervals
from qns.cbr.region import Region
from qns.cbr.strings import Strings
from qns.cbr.subscription import Subscription
from qns.d2q.shipped import AGENCIES
from qns.d2q.subscription_xml import (
    read_subscription,
    read_subscriptions,
    write_subscription,
    write_subscriptions,
)
from qns.d2q.terms import MAX_NORMAL_TERMS
from qns.errors import DuplicateId, QnsError
from tests.d2q.test_document import texts
from tests.strategies import ALL_TYPES, subscriptions

S4 = """<?xml version="1.0"?>
<subscription xmlns="urn:qns:d2q:1" class="Enterprise/Holder">
  <sources>
    <source>INPS</source>
    <source> INAIL </source>
  </sources>
  <constraint attribute="FiscalCode" operator="equals">
    <value>MCLMSM73H17H501F</value>
  </constraint>
  <constraint attribute="Name.Accuracy" operator="atMost">
    <value> medium
    </value>
  </constraint>
</subscription>
"""


@given(subscriptions())
def test_written_subscription_is_read_back_unchanged(subscription: Subscription) -> None:
    written = write_subscription(subscription, ALL_TYPES)
    found = read_subscription(written, ALL_TYPES)
    assert found == subscription
    assert (found.data_class, found.only) == (subscription.data_class, subscription.only)
    assert write_subscription(found, ALL_TYPES) == written


@given(st.frozensets(texts(), min_size=1, max_size=3), st.booleans())
def test_every_string_is_written_and_read_unchanged(listed: frozenset[str], excluded: bool) -> None:
    values = Strings.described(excluded=listed) if excluded else Strings.of(listed)
    given = Subscription(frozenset({"Other"}), None, {"Other.Name": values}, "Other")
    assert read_subscription(write_subscription(given, ALL_TYPES), ALL_TYPES) == given


@given(st.lists(subscriptions(), max_size=3))
def test_list_of_subscriptions_keeps_ids_and_order(given: list[Subscription]) -> None:
    named = [(f"s {number}", subscription) for number, subscription in enumerate(given)]
    assert read_subscriptions(write_subscriptions(named, ALL_TYPES), ALL_TYPES) == named


def test_thesis_subscription_is_read_from_xml() -> None:
    found = read_subscription(S4, AGENCIES)
    assert found.sources == {"INPS", "INAIL"}
    assert found.only, "a quality constraint makes the scope exactly the class"
    assert dict(found.constraints) == {
        "Enterprise/Holder.FiscalCode": Strings.of(["MCLMSM73H17H501F"]),
        "Enterprise/Holder.Name.accuracy": Region.of(Intervals.of([(0, QUALITY.key(0.6))])),
    }
    assert "medium" in found.text


def test_largest_subscription_fits_the_byte_limit() -> None:
    """It has as many terms as are allowed, each as long as a number can be."""
    listed = [(DECIMAL.hi - 2 * index, DECIMAL.hi - 2 * index) for index in range(MAX_NORMAL_TERMS)]
    values = Intervals.of(listed)
    given = Subscription(
        ALL_TYPES.scope("Thing/Part"), None, {"Thing/Part.Weight": values}, "Thing/Part"
    )
    assert read_subscription(write_subscription(given, ALL_TYPES), ALL_TYPES) == given


def written(body: str, path: str = "Thing/Part") -> str:
    return f'<subscription xmlns="urn:qns:d2q:1" class="{path}">\n{body}\n</subscription>'


def constraint(attribute: str, operator: str, *values: str, previous: bool = False) -> str:
    """Returns a constraint element. Values that are elements are inserted as they are."""
    inside = "".join(v if v.startswith("<") else f"<value>{v}</value>" for v in values)
    more = ' previous="true"' if previous else ""
    return f'<constraint attribute="{attribute}" operator="{operator}"{more}>{inside}</constraint>'


ABOVE_A = '<range operator="above"><value>a</value></range>'
ONE_END = '<range operator="between"><value>1</value></range>'
NO_END = '<range operator="above"/>'
NO_RANGE = '<range operator="in"><value>1</value></range>'
CONTRADICTION = constraint("Count", "above", "3") + constraint("Count", "below", "4")
LONG = 1 << 20

REFUSED = [
    ("unknown attribute", constraint("Wieght", "equals", "1"), "did you mean Weight?"),
    ("ambiguous attribute", constraint("Code", "equals", "a"), "is ambiguous in Thing/Part"),
    ("unknown dimension", constraint("Weight.age", "atMost", "1"), "no dimension 'age'"),
    ("quality of a class above", constraint("Count.accuracy", "atMost", "1"), "enclosing class"),
    ("unknown operator", constraint("Weight", "like", "1"), "'like' is not an element"),
    ("operator of another type", constraint("Weight", "startsWith", "1"), "does not apply"),
    ("transition of data", constraint("Weight", "fallsBelow", "1"), "does not apply"),
    ("order of booleans", constraint("Broken", "below", "true"), "does not apply"),
    ("order of strings", constraint("Part.Code", "below", "a"), "does not apply"),
    ("wrong type", constraint("Weight", "equals", "heavy"), "is not a decimal"),
    ("NaN", constraint("Weight", "equals", "NaN"), "is not a decimal"),
    ("infinity", constraint("Weight", "below", "INF"), "is not a decimal"),
    ("quality 1.2", constraint("Weight.accuracy", "atMost", "1.2"), "outside [0, 1]"),
    ("quality -0.1", constraint("Weight.accuracy", "atMost", "-0.1"), "outside [0, 1]"),
    ("quality NaN", constraint("Weight.accuracy", "atMost", "NaN"), "unknown label 'NaN'"),
    ("quality INF", constraint("Weight.accuracy", "atMost", "INF"), "unknown label 'INF'"),
    ("unknown label", constraint("Weight.accuracy", "atMost", "lwo"), "did you mean low?"),
    ("no value", constraint("Weight", "equals"), "1 value is due"),
    ("two values", constraint("Weight", "equals", "1", "2"), "1 value is due"),
    ("one end", constraint("Weight", "between", "1"), "2 values are due"),
    ("a value for exists", constraint("Weight", "exists", "1"), "0 values are due"),
    ("a range for equals", constraint("Weight", "equals", "<range/>"), "'operator' is requ"),
    ("empty set", constraint("Weight", "in"), "an empty set for Thing/Part.Weight"),
    ("range of strings", constraint("Part.Code", "in", ABOVE_A), "does not apply"),
    ("range of one end", constraint("Weight", "in", ONE_END), "2 values are due"),
    ("range of nothing", constraint("Weight", "in", NO_END), "Missing child element"),
    ("range that is none", constraint("Weight", "in", NO_RANGE), "'in' is not an element"),
    ("unsatisfiable", constraint("Weight", "between", "2", "1"), "no event can satisfy"),
    ("contradiction", CONTRADICTION, "no event can satisfy the constraints on Thing.Count"),
    (
        "previous of data",
        constraint("Weight", "equals", "1", previous=True),
        "has no previous value",
    ),
    (
        "previous of a transition",
        constraint("Weight.accuracy", "fallsBelow", "1", previous=True),
        "compares the two values",
    ),
    ("empty sources", "<sources/>", "an empty set of sources"),
    ("an empty source", "<sources><source> </source></sources>", "an organisation's name is empty"),
    ("sources after constraints", constraint("Weight", "exists") + "<sources/>", "not expected"),
    ("text", "hello", "Character content"),
    ("10,000 terms", constraint("Weight", "differs", "1") * 10_000, "10,000 terms"),
    ("10,000 members", constraint("Weight", "in", *map(str, range(10_000))), "10,000 terms"),
    ("10,000 sources", f"<sources>{'<source>x</source>' * 10_000}</sources>", "10,000 sources"),
    ("a string of 1 MB", constraint("Part.Code", "equals", "x" * LONG), "1,048,576 characters"),
    ("a number of 1 MB", constraint("Weight", "equals", "1" * LONG), "is not a decimal"),
]


@pytest.mark.parametrize(
    ("body", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_invalid_subscription_is_rejected_with_the_line(body: str, said: str) -> None:
    with pytest.raises(QnsError) as caught:
        read_subscription(written(body), ALL_TYPES)
    assert said in str(caught.value)
    on_the_whole = body == "<sources/>" or "10,000 sources" in said or body == "hello"
    assert caught.value.line == (1 if on_the_whole else 2)
    assert len(str(caught.value)) < 600


def test_unknown_class_is_rejected() -> None:
    with pytest.raises(QnsError, match="line 1: unknown class 'Thing/Prat'"):
        read_subscription(written("", "Thing/Prat"), ALL_TYPES)


def test_list_is_rejected_where_one_subscription_is_expected() -> None:
    with pytest.raises(QnsError, match="'subscription' in"):
        read_subscription(write_subscriptions([], ALL_TYPES), ALL_TYPES)
    with pytest.raises(QnsError, match="'subscriptions' in"):
        read_subscriptions(written(""), ALL_TYPES)


def test_ids_in_a_list_are_required_and_unique() -> None:
    one = '<subscription class="Other"{}/>'
    whole = '<subscriptions xmlns="urn:qns:d2q:1">\n{}\n</subscriptions>'
    with pytest.raises(QnsError, match="line 2: a subscription's id is empty"):
        read_subscriptions(whole.format(one.format("")), ALL_TYPES)
    twice = one.format(' id="a"') + "\n" + one.format(' id="a"')
    with pytest.raises(DuplicateId, match="line 3: the id 'a' is given twice"):
        read_subscriptions(whole.format(twice), ALL_TYPES)
