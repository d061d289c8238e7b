"""Intake: the fast path for runs of ordinary notifications changes no result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.intake import Intake
from qns.edl.messages import Entry, Envelope, Fence, Item, Notification, Notify, Skip
from qns.errors import QnsError
from qns.iil.requests import (
    AcknowledgeDeliveries,
    ListSubscriptions,
    Pause,
    Publish,
    PullDeliveries,
    Resume,
    Subscribe,
    Unsubscribe,
)
from qns.iil.requests import Request as LocalRequest
from qns.peer.gateway import Gateway
from qns.peer.inputs import Effects, Input, Received
from qns.simulation.world import World
from tests.edl.peers import OWNER, notification, subscribe, world_of
from tests.store.rows import content

Change = dict[str, Any]

ACCEPT_RUN = Intake._accept_run
ENTRY_CHANGES: tuple[Change, ...] = (
    {"receiver": "D"},
    {"incarnation": 2},
    {"incarnation": 0},
    {"epoch": 9},
    {"epoch": 0},
    {"epoch": 2, "fences": (Fence(2, 1),)},
    {"confirmed": 5},
    {"children": (Entry("D", 1, 1, 1, 0),)},
)
ITEM_CHANGES: tuple[Change, ...] = (
    {"source": "Q"},
    {"producer_incarnation": 2},
    {"path": ("P", "Q")},
    {"path": ()},
    {"xml": b"<event/>"},
    {"event": "another"},
    {"remaining_s": 60.0},
)
MOVES = st.one_of(
    st.just(("next", None)),
    st.just(("next", None)),
    st.sampled_from([("gap", None), ("duplicate", None), ("same event", None), ("skip", None)]),
    st.tuples(st.just("entry"), st.sampled_from(ENTRY_CHANGES)),
    st.tuples(st.just("item"), st.sampled_from(ITEM_CHANGES)),
)


def items_of(moves: Sequence[tuple[str, Change | None]]) -> list[Item]:
    """Returns the items of a stream from P to C; each move may make one item unusual."""
    number, items = 0, list[Item]()
    for nth, (kind, change) in enumerate(moves):
        number += {"gap": 3, "duplicate": 0}.get(kind, 1)
        entry = Entry("C", 1, 1, number, 1)
        id = "same" if kind == "same event" else f"e{nth}"
        item = notification("P", id, entry)
        if kind == "skip":
            items.append(Skip("P", 1, entry, number + 1, "no longer kept"))
            number += 1
        elif kind == "entry":
            assert change is not None
            items.append(item._replace(entry=entry._replace(**change)))
        else:
            items.append(item._replace(**change or {}))
    return items


def stable_consumer() -> tuple[World, Gateway]:
    """Returns C with two stable subscriptions, of which one matches none of the events."""
    world = world_of("P", "Q", "C", "D")
    subscribe(world, "C", "s")
    subscribe(world, "C", "wind", "Report/Wind")
    world.run_for(5.0)
    gateway = world.nodes["C"].gateway
    assert gateway is not None
    assert not gateway.peer.iil.has_pending("P")
    return world, gateway


def visible(effects: Effects) -> tuple[object, ...]:
    """Returns the visible effects, with the records sorted by kind.

    A run takes all its events before it delivers them; the order of kinds is not compared.
    """
    records = sorted(effects.records, key=lambda record: record["do"])
    return effects.answers, records, [send.to for send in effects.sends], effects.wake_at


@settings(max_examples=60)
@given(st.lists(MOVES, max_size=8), st.integers(1, 3))
@example([("next", None)] * 5, 2)
@example([("next", None), ("gap", None), ("next", None)], 1)
@example([("same event", None), ("same event", None)], 1)
def test_accepting_a_call_in_runs_equals_accepting_item_by_item(
    moves: list[tuple[str, Change | None]], calls: int
) -> None:
    items = items_of(moves)
    size = -(-len(items) // calls) or 1
    bodies = [Notify(tuple(items[at : at + size])) for at in range(0, len(items), size)]
    outcomes = []
    for with_runs in (True, False):
        with patch.object(Intake, "_accept_run", ACCEPT_RUN if with_runs else lambda *_: 0):
            world, gateway = stable_consumer()
            effects = [
                visible(gateway.run([Received(Envelope("P", 1, (), body))], world.now + nth))
                for nth, body in enumerate(bodies)
            ]
            outcomes.append((effects, content(gateway.store)))
    assert outcomes[0] == outcomes[1]


OWN = EventReader(WEATHER).from_fields({"id": "own", "class": "Report", "source": "C"})
USERS = (
    Subscribe(OWNER, "Report", id="late"),
    Unsubscribe(OWNER, "s"),
    Pause(OWNER, "s"),
    Resume(OWNER, "s"),
    PullDeliveries(OWNER, "s"),
    ListSubscriptions(OWNER),
    AcknowledgeDeliveries(OWNER, "s", 2),
    Publish(OWN),
)
"""Requests of users that come between two calls in the same turn."""


@settings(max_examples=60)
@given(
    st.lists(MOVES, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(USERS)), max_size=4),
)
@example([("next", None)] * 4, [(2, USERS[1])])
@example([("next", None)] * 4, [(2, USERS[2]), (3, USERS[3])])
@example([("next", None)] * 4, [(2, USERS[4])])
@example([("next", None), ("gap", None), ("next", None)], [])
def test_accepting_many_calls_in_one_turn_equals_accepting_item_by_item(
    moves: list[tuple[str, Change | None]], users: list[tuple[int, LocalRequest]]
) -> None:
    inputs: list[Input] = [
        Received(Envelope("P", 1, (), Notify((item,)))) for item in items_of(moves)
    ]
    for at, request in users:
        inputs.insert(at, request)
    outcomes = []
    for with_runs in (True, False):
        with patch.object(Intake, "_accept_run", ACCEPT_RUN if with_runs else lambda *_: 0):
            world, gateway = stable_consumer()
            effects = gateway.run(inputs, world.now)
            delivered = [each for each in effects.records if each["do"] == "ntfy"]
            answers = [
                str(each) if isinstance(each, QnsError) else each for each in effects.answers
            ]
            outcomes.append((answers, visible(effects)[1:], delivered, content(gateway.store)))
    assert outcomes[0] == outcomes[1]


def test_run_ends_at_the_first_notification_that_is_not_ordinary() -> None:
    items = items_of([("next", None)] * 4 + [("gap", None), ("next", None)])
    _, gateway = stable_consumer()
    runs = []

    def counted(*arguments: Any) -> int:
        runs.append(ACCEPT_RUN(*arguments))
        return runs[-1]

    with patch.object(Intake, "_accept_run", counted):
        gateway.run([Received(Envelope("P", 1, (), Notify(tuple(items))))], 100.0)
    assert runs == [4, 0]  # after a gap every entry is early and handled alone
    assert all(isinstance(item, Notification) for item in items)
