"""Intake: what is taken in quickly is taken in just as one by one."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.intake import take_run
from qns.edl.messages import Entry, Envelope, Fence, Item, Notification, Notify, Skip
from qns.errors import QnsError
from qns.gateway import Gateway
from qns.iil.requests import (
    AcknowledgeDeliveries,
    ListSubscriptions,
    Pause,
    Publish,
    Read,
    Resume,
    Subscribe,
    Unsubscribe,
)
from qns.iil.requests import Request as LocalRequest
from qns.inputs import Effects, Input, Received
from qns.simulation.world import World
from tests.edl.peers import OWNER, notification, subscribe, world_of
from tests.store.rows import content

Change = dict[str, Any]

ENTRY_CHANGES: tuple[Change, ...] = (
    {"receiver": "D"},
    {"joined": 2},
    {"joined": 0},
    {"epoch": 9},
    {"epoch": 0},
    {"epoch": 2, "fences": (Fence(2, 1),)},
    {"confirmed": 5},
    {"children": (Entry("D", 1, 1, 1, 0),)},
)
ITEM_CHANGES: tuple[Change, ...] = (
    {"source": "Q"},
    {"joined": 2},
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


def items_of(moves: list[tuple[str, Change | None]]) -> list[Item]:
    """A stream of P to C, as it should be but where a move says otherwise."""
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


def stable() -> tuple[World, Gateway]:
    """C, whose users are stable at every producer; one of them wants none of what comes."""
    world = world_of("P", "Q", "C", "D")
    subscribe(world, "C", "s")
    subscribe(world, "C", "wind", "Report/Wind")
    world.run_for(5.0)
    gateway = world.nodes["C"].gateway
    assert gateway is not None
    assert not gateway.peer.iil.stability.waits_for("P")
    return world, gateway


def told(effects: Effects) -> tuple[object, ...]:
    """The answers and, kind by kind, what was recorded: takes and deliveries come in bulk."""
    records = sorted(effects.records, key=lambda record: record["do"])
    return effects.answers, records, [send.to for send in effects.sends], effects.wake_at


@settings(max_examples=60)
@given(st.lists(MOVES, max_size=8), st.integers(1, 3))
@example([("next", None)] * 5, 2)
@example([("next", None), ("gap", None), ("next", None)], 1)
@example([("same event", None), ("same event", None)], 1)
def test_many_at_a_time_are_taken_in_as_one_by_one(
    moves: list[tuple[str, Change | None]], calls: int
) -> None:
    items = items_of(moves)
    size = -(-len(items) // calls) or 1
    bodies = [Notify(tuple(items[at : at + size])) for at in range(0, len(items), size)]
    outcomes = []
    for quickly in (True, False):
        with patch("qns.edl.consumer.take_run", take_run if quickly else lambda *_: 0):
            world, gateway = stable()
            effects = [
                told(gateway.run([Received(Envelope("P", 1, (), body))], world.now + nth))
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
    Read(OWNER, "s"),
    ListSubscriptions(OWNER),
    AcknowledgeDeliveries(OWNER, "s", 2),
    Publish(OWN),
)
"""What users do between two calls of the same turn."""


@settings(max_examples=60)
@given(
    st.lists(MOVES, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(USERS)), max_size=4),
)
@example([("next", None)] * 4, [(2, USERS[1])])
@example([("next", None)] * 4, [(2, USERS[2]), (3, USERS[3])])
@example([("next", None)] * 4, [(2, USERS[4])])
@example([("next", None), ("gap", None), ("next", None)], [])
def test_many_calls_in_a_turn_are_taken_in_as_one_by_one(
    moves: list[tuple[str, Change | None]], users: list[tuple[int, LocalRequest]]
) -> None:
    """All matched together, or each before anything else happens."""
    inputs: list[Input] = [
        Received(Envelope("P", 1, (), Notify((item,)))) for item in items_of(moves)
    ]
    for at, request in users:
        inputs.insert(at, request)
    outcomes = []
    for quickly in (True, False):
        with patch("qns.edl.consumer.take_run", take_run if quickly else lambda *_: 0):
            world, gateway = stable()
            effects = gateway.run(inputs, world.now)
            delivered = [each for each in effects.records if each["do"] == "ntfy"]
            answers = [
                str(each) if isinstance(each, QnsError) else each for each in effects.answers
            ]
            outcomes.append((answers, told(effects)[1:], delivered, content(gateway.store)))
    assert outcomes[0] == outcomes[1]


def test_ordinary_notifications_make_one_run_up_to_the_first_that_is_not() -> None:
    items = items_of([("next", None)] * 4 + [("gap", None), ("next", None)])
    _, gateway = stable()
    runs = []

    def counted(*arguments: Any) -> int:
        runs.append(take_run(*arguments))
        return runs[-1]

    with patch("qns.edl.consumer.take_run", counted):
        gateway.run([Received(Envelope("P", 1, (), Notify(tuple(items))))], 100.0)
    assert runs == [4, 0]  # what comes after a gap is early, one by one
    assert all(isinstance(item, Notification) for item in items)
