"""Custody: promises survive a restart unchanged, and each one ends exactly once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.edl.custody import Custody, read_route, write_route
from qns.edl.link import Parcel
from qns.edl.messages import Entry, Fence
from qns.peer.event_log import EventLog, LoggedEvent
from qns.peer.tables import CUSTODY, DEAD_LETTERS, CustodyRow, DeadLetterRow
from qns.peer.turn import Turn

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
numbers = st.integers(0, 2**63 - 1)
fences = st.lists(st.builds(Fence, numbers, numbers), max_size=3).map(tuple)
proofs = st.binary(min_size=4, max_size=40)
carriers = st.lists(names, max_size=2).map(tuple)


seals = st.just(((), b"")) | st.tuples(carriers, proofs)


def make_entry(
    head: tuple[str, int, int, int, int, tuple[Fence, ...]],
    children: list[Entry],
    seal: tuple[tuple[str, ...], bytes],
) -> Entry:
    return Entry(*head, tuple(children), *seal)


heads = st.tuples(names, numbers, numbers, numbers, numbers, fences)
entries = st.recursive(
    st.builds(make_entry, heads, st.just([]), seals),
    lambda below: st.builds(make_entry, heads, st.lists(below, max_size=3), seals),
    max_leaves=8,
)


@given(names, names, numbers, entries, st.lists(names, max_size=4).map(tuple), st.binary())
def test_reading_a_written_route_returns_the_same_route(
    source: str, event: str, incarnation: int, entry: Entry, path: tuple[str, ...], seal: bytes
) -> None:
    parcel = Parcel((source, event), incarnation, entry, path, None, seal)
    assert read_route(write_route(parcel)) == (incarnation, path, entry, seal)


def test_route_of_a_release_without_seals_is_read() -> None:
    text = '[1,["P"],["C",1,2,3,0,[[2,1]],[["D",1,2,5,0,[],[]]]]]'
    below = Entry("D", 1, 2, 5, 0)
    entry = Entry("C", 1, 2, 3, 0, (Fence(2, 1),), (below,))
    assert read_route(text) == (1, ("P",), entry, b"")
    assert write_route(Parcel(("P", "e"), 1, entry, ("P",), None)) == text


def logged_event() -> LoggedEvent:
    event = EventReader(WEATHER).from_fields({"id": "e", "class": "Report", "source": "P"})
    return LoggedEvent(event, b"", (1, 1, 1), 0.0)


@given(st.lists(st.sampled_from(["promise", "fulfil", "reject", "take dead letter"]), max_size=20))
def test_every_promise_and_dead_letter_holds_its_event_once(steps: list[str]) -> None:
    log, turn, event = EventLog(), Turn(0.0), logged_event()
    log.add(turn, event)
    log.hold(event.key)  # a holder that stays, so that the log keeps the event
    custody = Custody(log)
    promised: list[Parcel] = []
    entry = Entry("C", 1, 1, 1, 0)
    for step in steps:
        if step == "promise":
            promised.append(Parcel(event.key, 1, entry, ("P",), None))
            custody.promise(turn, promised[-1])
        elif step == "fulfil" and promised:
            parcel = promised.pop()
            custody.fulfil(turn, parcel)
            custody.fulfil(turn, parcel)
        elif step == "reject" and promised:
            custody.reject(turn, promised.pop(), "no")
        elif step == "take dead letter" and custody.dead_letters:
            taken = custody.take_dead_letter(turn, min(custody.dead_letters))
            assert (taken.event, taken.entry, taken.custody) == (event.key, entry, None)
        assert len(custody) == len(promised)
        assert event.holders == 1 + len(promised) + len(custody.dead_letters)
    _assert_recovers(turn, custody, event)


def _assert_recovers(turn: Turn, custody: Custody, event: LoggedEvent) -> None:
    log = EventLog()
    log.recover(logged_event())
    twin = Custody(log)
    for table, changes in turn.transaction.changes():
        for row in changes.values():
            if table is CUSTODY and row is not None:
                assert isinstance(row, CustodyRow)
                twin.recover(row)
            if table is DEAD_LETTERS and row is not None:
                assert isinstance(row, DeadLetterRow)
                twin.recover_letter(row)
    assert twin.parcels.keys() == custody.parcels.keys()
    assert twin.dead_letters == custody.dead_letters
    assert log[event.key].holders == event.holders - 1
