"""Names in a schema whose classes and properties have equal names: each can be expressed."""

from __future__ import annotations

from hypothesis import given

from qns.cbr.event import Event
from qns.cbr.subscription import Subscription
from qns.d2q.description import spelled
from qns.d2q.event_json import EventReader, write_event_json
from qns.d2q.event_xml import read_event, write_event
from qns.d2q.language import parse_subscription
from qns.d2q.printing import write_readable, write_thesis
from qns.d2q.schema import Schema
from qns.d2q.subscription_xml import read_subscription, write_subscription
from tests.strategies import events, subscriptions

ALIKE = Schema(
    "alike",
    {
        "A": {"X": "string", "A": "integer"},
        "A/A": {"X": "string", "A": "decimal"},
        "A/A/A": {"X": "string"},
        "A/B": {"A": "date", "X": "integer"},
        "A/B/A": {"X": "boolean", "B": "integer"},
    },
    {"low": 0.3},
)


def test_qualified_name_is_unique_and_ambiguous_short_name_is_rejected() -> None:
    for path in ALIKE.classes:
        for attribute in ALIKE.attributes(path):
            assert ALIKE.attribute(path, attribute.name) == attribute
            assert ALIKE.attribute(path, attribute.name.upper()) == attribute
            assert ALIKE.attribute(path, spelled(ALIKE, path, attribute.name)) == attribute


def test_full_name_takes_precedence_in_a_class_named_like_its_parent() -> None:
    schema = Schema("a", {"A": {"X": "string"}, "A/A": {"X": "string"}})
    for name, meant in (("A.X", "A.X"), ("A/A.X", "A/A.X")):
        found = parse_subscription(f"A/A where {name} = 'v'", schema)
        assert list(found.constraints) == [meant]
        assert write_readable(found, schema) == f'A/A where {name} = "v"'


@given(subscriptions(ALIKE))
def test_subscriptions_print_and_parse_in_all_spellings(subscription: Subscription) -> None:
    for write in (write_readable, write_thesis):
        assert parse_subscription(write(subscription, ALIKE), ALIKE) == subscription
    assert read_subscription(write_subscription(subscription, ALIKE), ALIKE) == subscription


@given(events(ALIKE))
def test_events_are_written_and_read_in_both_forms(event: Event) -> None:
    assert read_event(write_event(event, ALIKE), ALIKE) == event
    assert EventReader(ALIKE).from_fields(write_event_json(event, ALIKE)) == event
