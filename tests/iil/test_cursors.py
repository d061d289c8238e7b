"""Cursors: a peer that goes back in time refuses those of deliveries that it has lost.

Invariant: a cursor of a delivery that the peer has made is accepted. If any other cursor is
accepted, no unread delivery has its number or a smaller one, so that the reader skips nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qns.errors import ValueRefused
from qns.iil.cursor import Cursor, CursorAhead
from qns.iil.deliveries_dropped import DeliveriesDropped
from qns.iil.number_series import MOST_SERIES
from qns.iil.requests import AcknowledgeDeliveries, Deliveries, Publish, PullDeliveries, Request
from qns.peer.tables import NUMBER_SERIES
from qns.simulation.node import Backup, KillPoint
from tests.iil.conftest import OpenPeer
from tests.iil.single_peer import ME, OWNER, SinglePeer, event


def cursors(peer: SinglePeer, id: str, after: int = 0) -> list[Cursor]:
    answer = peer.do(PullDeliveries(OWNER, id, after, 10_000))
    assert isinstance(answer, Deliveries)
    return [Cursor(each.number, each.series) for each in answer.deliveries]


def requests(id: str, cursor: Cursor) -> tuple[Request, Request]:
    number, series = cursor
    pull = PullDeliveries(OWNER, id, number, 10_000, series)
    return pull, AcknowledgeDeliveries(OWNER, id, number, series)


def is_refused(peer: SinglePeer, id: str, cursor: Cursor) -> bool:
    """True if the peer refuses to read after a cursor; checks that nothing has changed then."""
    pull, acknowledge = requests(id, cursor)
    before, recorded = peer.rows(), len(peer.world.history)
    try:
        peer.do(pull)
    except CursorAhead:
        with pytest.raises(CursorAhead):
            peer.do(acknowledge)
        assert peer.rows() == before
        assert len(peer.world.history) == recorded
        return True
    return False


def publish(peer: SinglePeer, prefix: str, number: int) -> None:
    peer.publish(*(f"{prefix}{each}" for each in range(number)))


# --- going back in time ---------------------------------------------------------------------------


def whole_host(peer: SinglePeer) -> Backup:
    return peer.world.snapshot(ME)


def rows_only(peer: SinglePeer) -> Backup:
    """What a lost write-ahead log leaves: older rows of the same epoch, known outside."""
    return Backup(peer.now, peer.world.nodes[ME].disk.copy())


def backup(peer: SinglePeer) -> Backup:
    peer.world.back_up(ME)
    return peer.world.nodes[ME].backups[-1]


@pytest.mark.parametrize("copy", [whole_host, rows_only, backup])
@pytest.mark.parametrize("restarted", [False, True])
def test_cursor_of_a_lost_delivery_is_refused_and_changes_nothing(
    peer: SinglePeer, copy: Callable[[SinglePeer], Backup], restarted: bool
) -> None:
    peer.subscribe("s")
    publish(peer, "e", 5)
    kept = cursors(peer, "s")
    before = copy(peer)
    if restarted:
        peer.crash()
    publish(peer, "f", 10)
    *_, last = cursors(peer, "s")
    assert last.number == 15
    peer.world.put_back(ME, before)
    assert is_refused(peer, "s", last), "the peer has made fewer deliveries"
    publish(peer, "g", 30)
    assert is_refused(peer, "s", last), "the peer has used the number again"
    assert len(peer.read("s")) == 35
    for each in kept:
        assert not is_refused(peer, "s", each)
    assert [each.number for each in cursors(peer, "s", kept[-1].number)] == [*range(6, 36)]


def test_cursor_stays_valid_when_the_peer_starts_again(peer: SinglePeer) -> None:
    peer.subscribe("s")
    for start in range(4):
        publish(peer, f"e{start}-", 2)
        peer.crash()
    found = cursors(peer, "s")
    assert len({each.series for each in found}) == 4
    for each in found:
        assert not is_refused(peer, "s", each)


@pytest.mark.parametrize("point", KillPoint, ids=lambda point: point.name)
def test_cursor_stays_valid_wherever_the_peer_crashes(peer: SinglePeer, point: KillPoint) -> None:
    peer.subscribe("s")
    peer.crash()
    peer.crash_during(Publish(event("e1")), point)
    peer.do(Publish(event("e1")))
    (cursor,) = cursors(peer, "s")
    peer.crash()
    peer.publish("e2")
    assert [each.series == cursor.series for each in cursors(peer, "s")] == [True, False]
    assert not is_refused(peer, "s", cursor)


def test_request_without_a_series_is_not_checked(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.publish("e1", "e2")
    assert peer.read("s", after=1000) == []
    peer.acknowledge("s", 1)
    assert peer.read("s") == [(2, "e2")]


# --- bad cursors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        Cursor(2, "x"),
        Cursor(2, "0123456789abcdef"),
        Cursor(2, "x" * 100_000),
        Cursor(2, "è\u0000\ud800"),
        Cursor(2**62, "x"),
        Cursor(4, "x"),
    ],
)
def test_invented_series_is_refused(peer: SinglePeer, bad: Cursor) -> None:
    peer.subscribe("s")
    publish(peer, "e", 3)
    assert is_refused(peer, "s", bad)
    assert len(peer.read("s")) == 3


def test_cursor_of_another_subscription_is_refused(peer: SinglePeer) -> None:
    peer.subscribe("s")
    peer.subscribe("t")
    publish(peer, "e", 3)
    assert all(is_refused(peer, "s", each) for each in cursors(peer, "t"))


def test_error_names_the_subscription_both_numbers_and_the_remedy() -> None:
    peer = SinglePeer()
    peer.subscribe("s")
    publish(peer, "e", 3)
    with pytest.raises(
        CursorAhead, match=r"^subscription s has had 3 deliveries, the cursor is at 7: .*after=0"
    ) as caught:
        peer.do(PullDeliveries(OWNER, "s", 7, series="x"))
    assert (caught.value.id, caught.value.number, caught.value.delivered) == ("s", 7, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-1",
        "1@",
        "@x",
        "1@x@y",
        "1@-3",
        "1.5",
        " 1",
        "1\n",
        "١@x",
        "1@é",
        "9" * 20,
        "1@" + "x" * 41,
    ],
)
def test_text_that_is_no_cursor_is_rejected(text: str) -> None:
    with pytest.raises(ValueRefused, match="is no cursor"):
        Cursor.of(text)


@given(st.integers(0, 2**63 - 1), st.text("0123456789abcdef", max_size=16))
def test_cursor_is_read_as_it_was_written(number: int, series: str) -> None:
    assert Cursor.of(str(Cursor(number, series))) == Cursor(number, series)
    assert Cursor.of(number) == Cursor(number)


# --- dropped numbers, pauses, groups, ends --------------------------------------------------------


def test_reader_continues_after_dropped_numbers_with_a_cursor(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=2)
    peer.subscribe("s")
    before = whole_host(peer)
    publish(peer, "e", 5)
    with pytest.raises(DeliveriesDropped) as caught:
        cursors(peer, "s")
    place = Cursor.of(caught.value.cursor)
    assert place.number == 3
    assert place.series
    assert not is_refused(peer, "s", place)
    assert [each.number for each in cursors(peer, "s", 3)] == [4, 5]
    peer.world.put_back(ME, before)
    publish(peer, "f", 5)
    assert is_refused(peer, "s", place)


def test_number_that_is_dropped_in_a_pause_begins_a_series(open_peer: OpenPeer) -> None:
    peer = open_peer(longest_queue=1)
    peer.subscribe("s")
    peer.pause("s")
    publish(peer, "e", 3)
    with pytest.raises(DeliveriesDropped) as caught:
        cursors(peer, "s")
    peer.crash()
    assert not is_refused(peer, "s", Cursor.of(caught.value.cursor))
    peer.resume("s")
    assert [(each.number, bool(each.series)) for each in cursors(peer, "s", 2)] == [(3, True)]


def test_cursor_in_a_group_stays_valid_when_events_pass_to_other_members(
    open_peer: OpenPeer,
) -> None:
    peer = open_peer(lease_s=10.0)
    peer.subscribe("s", group="g")
    publish(peer, "e", 3)
    read = cursors(peer, "s")
    peer.subscribe("t", group="g")
    peer.wait(11.0)
    assert cursors(peer, "s") == []
    assert len(cursors(peer, "t")) == 3
    for each in read:
        assert not is_refused(peer, "s", each)
        assert is_refused(peer, "t", each)


def test_ended_subscription_leaves_no_series(peer: SinglePeer) -> None:
    peer.subscribe("s")
    publish(peer, "e", 2)
    assert len(peer.rows()["number_series"]) == 1
    peer.unsubscribe("s")
    assert "number_series" not in peer.rows()


# --- bounds ---------------------------------------------------------------------------------------


def kept_series(peer: SinglePeer, id: str) -> list[int]:
    """Returns the first number of each series that the store has."""
    rows = peer.gateway.store.rows(NUMBER_SERIES)
    return sorted(row.first for row in rows if row.subscription == id)


def test_acknowledgement_forgets_the_series_that_end_before_it(peer: SinglePeer) -> None:
    peer.subscribe("s")
    for start in range(4):
        publish(peer, f"e{start}-", 2)
        peer.crash()
    assert kept_series(peer, "s") == [1, 3, 5, 7]
    early, *_ = cursors(peer, "s")
    peer.acknowledge("s", 2)
    assert kept_series(peer, "s") == [1, 3, 5, 7]
    peer.acknowledge("s", 5)
    assert kept_series(peer, "s") == [5, 7]
    assert not is_refused(peer, "s", early), "it cannot skip anything"
    peer.acknowledge("s", 1_000)
    assert kept_series(peer, "s") == [7]
    peer.acknowledge("s", -5)
    assert kept_series(peer, "s") == [7]


def test_oldest_series_of_a_reader_that_never_acknowledges_is_forgotten() -> None:
    peer = SinglePeer()
    peer.subscribe("s")
    for start in range(MOST_SERIES + 3):
        peer.publish(f"e{start}")
        peer.crash()
    assert kept_series(peer, "s") == [*range(4, MOST_SERIES + 4)]
    assert [bool(each.series) for each in cursors(peer, "s")][:5] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert not is_refused(peer, "s", Cursor(2, "forgotten"))
    assert is_refused(peer, "s", Cursor(4, "forgotten"))


# --- the invariant --------------------------------------------------------------------------------


@dataclass
class Oracle:
    """The naive oracle: keeps every delivery and which of them are unread."""

    made: list[str] = field(default_factory=list)
    """The event of each delivery, by its number."""
    unread: set[int] = field(default_factory=set)

    def copy(self) -> Oracle:
        return Oracle(list(self.made), set(self.unread))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("crash"), st.just(0)),
        st.tuples(st.just("acknowledge"), st.integers(0, 20)),
        st.tuples(st.just("snapshot"), st.just(0)),
        st.tuples(st.sampled_from(["put back", "restore"]), st.integers(0, 5)),
    ),
    max_size=25,
)


@settings(max_examples=max(20, settings.default.max_examples // 5), deadline=None)
@given(STEPS)
def test_accepted_cursor_never_skips_an_unread_delivery(steps: list[tuple[str, int]]) -> None:
    peer, oracle, ids = SinglePeer(), Oracle(), count()
    peer.subscribe("s")
    copies: list[tuple[Backup, Oracle]] = []
    given_out: dict[Cursor, str] = {}
    for do, number in steps:
        if do == "publish":
            for _ in range(number):
                id = f"e{next(ids)}"
                peer.publish(id)
                oracle.made.append(id)
                oracle.unread.add(len(oracle.made))
        elif do == "crash":
            peer.crash()
        elif do == "acknowledge":
            peer.acknowledge("s", number)
            oracle.unread = {each for each in oracle.unread if each > number}
        elif do == "snapshot":
            copies.append((whole_host(peer), oracle.copy()))
            copies.append((backup(peer), oracle.copy()))
        elif copies:
            copy, then = copies[number % len(copies)]
            peer.world.put_back(ME, copy)
            oracle = then.copy()
        answer = peer.do(PullDeliveries(OWNER, "s", 0, 10_000))
        assert isinstance(answer, Deliveries)
        assert {each.number for each in answer.deliveries} == oracle.unread
        for each in answer.deliveries:
            given_out[Cursor(each.number, each.series)] = each.event
        assert len(kept_series(peer, "s")) <= len(oracle.unread) + 1
        for cursor, id in given_out.items():
            is_made = cursor.number <= len(oracle.made) and oracle.made[cursor.number - 1] == id
            if is_refused(peer, "s", cursor):
                assert not is_made
            elif not is_made:
                assert cursor.number < min(oracle.unread, default=cursor.number + 1)
