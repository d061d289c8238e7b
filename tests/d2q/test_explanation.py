"""Explanation: it agrees with matching, and every condition that it names really fails."""

from __future__ import annotations

import pytest
from hypothesis import given

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.d2q.event_json import EventReader
from qns.d2q.explanation import CLASS, SOURCE, Condition, explain
from qns.d2q.language import parse_subscription
from qns.d2q.shipped import AGENCIES
from tests.strategies import ALL_TYPES, events, subscriptions


@given(subscriptions(), events())
def test_explanation_reports_a_match_exactly_if_the_event_matches(
    subscription: Subscription, event: Event
) -> None:
    explanation = explain(subscription, event, ALL_TYPES)
    assert explanation.matches == subscription.matches(event)
    assert (explanation.failing == ()) == explanation.matches


@given(subscriptions(), events())
def test_subscription_of_one_named_condition_matches_exactly_if_the_condition_holds(
    subscription: Subscription, event: Event
) -> None:
    for condition in explain(subscription, event, ALL_TYPES).conditions:
        if condition.what == CLASS:
            assert condition.holds == (event.data_class in subscription.scope)
        elif condition.what == SOURCE:
            assert condition.holds == (event.source in (subscription.sources or ()))
        else:
            text = f"{subscription.data_class} where {condition.text}"
            alone = parse_subscription(text, ALL_TYPES)
            if event.data_class in alone.scope:
                assert alone.matches(event) == condition.holds


@given(subscriptions(), events())
def test_value_is_absent_exactly_if_the_event_does_not_carry_the_attribute(
    subscription: Subscription, event: Event
) -> None:
    for condition in explain(subscription, event, ALL_TYPES).conditions:
        if condition.what not in (CLASS, SOURCE):
            name = condition.what.removesuffix(" was").strip("`")
            attribute = ALL_TYPES.attribute(subscription.data_class, name)
            assert (condition.actual is None) == (attribute.name not in event.values)


EVENT = EventReader(AGENCIES).from_fields(
    {
        "id": "e1",
        "class": "Enterprise/Holder",
        "source": "CoC",
        "data": {"Name": "M. Mecalla", "FiscalCode": "x" * 100},
        "quality": {"Name.accuracy": 0.7},
        "previous": {"Name.accuracy": 0.9},
    }
)


@pytest.mark.parametrize(
    ("text", "failing"),
    [
        ("Enterprise/Holder where Name.accuracy <= medium", ("Name.accuracy <= 0.6", "0.7")),
        ("Enterprise/Holder from INPS", ("source in {INPS}", "CoC")),
        ("only Enterprise", ("class is Enterprise", "Enterprise/Holder")),
        ("Enterprise where Code exists", ("Code exists", None)),
        ('Enterprise/Holder where Name != "M. Mecalla"', ('Name != "M. Mecalla"', "'M. Mecalla'")),
        (
            "Enterprise/Holder where Name.accuracy falls below 0.5",
            ("Name.accuracy falls below 0.5", "0.9 → 0.7"),
        ),
        (
            'Enterprise/Holder where FiscalCode starts with "A"',
            ('FiscalCode starts with "A"', f"'{'x' * 59}…'"),
        ),
    ],
)
def test_failing_condition_has_its_text_and_the_value_of_the_event(
    text: str, failing: tuple[str, str | None]
) -> None:
    (found,) = explain(parse_subscription(text, AGENCIES), EVENT, AGENCIES).failing
    assert (found.text, found.actual) == failing


def test_conditions_of_a_matching_event_all_hold() -> None:
    text = "Enterprise/Holder from CoC where Name.accuracy falls below 0.8"
    explanation = explain(parse_subscription(text, AGENCIES), EVENT, AGENCIES)
    assert explanation.matches
    assert explanation.conditions == (
        Condition("class", "is", "Enterprise/Holder", "Enterprise/Holder", True),
        Condition("source", "in", "{CoC}", "CoC", True),
        Condition("Name.accuracy", "falls below", "0.8", "0.9 → 0.7", True),
    )


def test_missing_previous_value_is_shown() -> None:
    event = EVENT._replace(previous={})
    text = "Enterprise/Holder where Name.accuracy falls below 0.8"
    (found,) = explain(parse_subscription(text, AGENCIES), event, AGENCIES).failing
    assert found.actual == "nothing → 0.7"
