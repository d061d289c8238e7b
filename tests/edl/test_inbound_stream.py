"""The inbound stream agrees with a model that knows every epoch of the producer."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qns.edl.inbound_stream import InboundStream, Place
from qns.edl.messages import Entry, Fence
from qns.peer.tables import EARLY, INBOUND, INBOUND_FENCES, EarlyRow
from qns.peer.turn import Turn


@st.composite
def fence_lists(draw: st.DrawFn) -> list[Fence]:
    """Draws the fences of a producer whose restores end at lower and higher numbers."""
    epochs = sorted(draw(st.sets(st.integers(1, 6), max_size=4)))
    return [Fence(epoch, draw(st.integers(1, 8))) for epoch in epochs]


def is_valid(fences: list[Fence], epoch: int, number: int) -> bool:
    """True if the number is below the first number of every later epoch."""
    return all(number < fence.first for fence in fences if fence.epoch > epoch)


steps = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 8)), max_size=25)


@given(fence_lists(), steps)
def test_stream_places_entries_according_to_the_fences(
    fences: list[Fence], entries: list[tuple[int, int]]
) -> None:
    stream, turn = InboundStream("P", 1, 1, 1), Turn(0.0)
    taken = 0
    for epoch, number in entries:
        sent = tuple(each for each in fences if each.epoch <= epoch)
        fresh = [each for each in sent if each.epoch > stream.epoch]
        for fence in fresh:
            taken = min(taken, fence.first - 1)
        stream.learn_from(turn, Entry("C", 1, epoch, number, 0, sent))
        known = [each for each in fences if each.epoch <= stream.epoch]
        place = stream.place(epoch, number)
        if not is_valid(known, epoch, number):
            # A fence is dropped when every number before a later one has arrived.
            assert place is Place.OBSOLETE or (place is Place.DUPLICATE and number <= taken)
        elif number <= taken:
            assert place is Place.DUPLICATE
        elif number == taken + 1:
            assert place is Place.NEXT
            taken = number
            stream.advance(turn, number, (1, epoch, number), is_new=True)
            stream.put(turn)
            while (row := stream.pop_next(turn)) is not None:
                assert is_valid(known, row.epoch, row.number)
                taken = row.number
                stream.advance(turn, row.number, (1, row.epoch, row.number), is_new=True)
                stream.put(turn)
        else:
            assert place is Place.EARLY
            stream.hold_back(turn, EarlyRow("P", 1, number, epoch, f"{epoch}-{number}"))
        assert stream.last == taken
        assert all(number > taken + 1 for number in stream.early)
        assert stream.gap == (min(stream.early) - 1 if stream.early else None)
        assert all(is_valid(known, row.epoch, row.number) for row in stream.early.values())
    _assert_recovers(turn, stream)


def _assert_recovers(turn: Turn, stream: InboundStream) -> None:
    rows = {
        table: [row for row in changes.values() if row is not None]
        for table, changes in turn.transaction.changes()
    }
    (head,) = rows.get(INBOUND) or [("P", 1, stream.epoch, stream.last)]
    assert head[2:4] == (stream.epoch, stream.last)
    recovered = InboundStream("P", 1, 1, 1)
    for row in sorted(rows.get(INBOUND_FENCES, [])):
        recovered.recover_fence(row)
    assert list(recovered.fences) == list(stream.fences)
    assert recovered.harmless == stream.harmless
    assert {row.number: row for row in rows.get(EARLY, [])} == stream.early


@given(fence_lists(), st.integers(1, 7), st.integers(0, 7), st.integers(1, 8))
def test_entry_has_an_unknown_place_until_every_fence_of_its_epoch_is_known(
    fences: list[Fence], epoch: int, confirmed: int, number: int
) -> None:
    assume(confirmed < epoch)
    stream, turn = InboundStream("P", 1, 1, 1), Turn(0.0)
    sent = tuple(each for each in fences if confirmed < each.epoch <= epoch)
    stream.learn_from(turn, Entry("C", 1, epoch, number, confirmed, sent))
    assert (stream.place(epoch, number) is Place.UNKNOWN) == (confirmed > 0)
    stream.learn(turn, epoch, [each for each in fences if each.epoch <= epoch])
    assert stream.place(epoch, number) is not Place.UNKNOWN


@given(st.sets(st.integers(2, 20), min_size=1), st.integers(1, 25))
def test_skip_removes_exactly_the_early_entries_up_to_its_last_number(
    numbers: set[int], upto: int
) -> None:
    stream, turn = InboundStream("P", 1, 1, 1, epoch=1), Turn(0.0)
    for number in numbers:
        stream.hold_back(turn, EarlyRow("P", 1, number, 1, f"e{number}"))
    passed = stream.skip_to(turn, upto)
    assert {row.number for row in passed} == {n for n in numbers if n <= upto}
    assert set(stream.early) == {n for n in numbers if n > upto}
    assert {row.number for row in stream.end(turn)} == {n for n in numbers if n > upto}
    assert not any(row for _, rows in turn.transaction.changes() for row in rows.values())


def _after_a_rollback(confirmed: int | None, sent: tuple[Fence, ...]) -> tuple[Turn, InboundStream]:
    """Returns a stream at epoch 50 and number 7, which learns of epoch 60 with these fences."""
    stream, turn = InboundStream("P", 1, 1, 1), Turn(0.0)
    stream.learn(turn, 50, [Fence(50, 7)])
    stream.advance(turn, 7, (1, 1, 7), is_new=True)
    stream.put(turn)
    if confirmed is None:
        stream.learn(turn, 60, sent)
    else:
        stream.learn_from(turn, Entry("C", 1, 60, 8, confirmed, sent))
    _assert_recovers(turn, stream)
    return turn, stream


@pytest.mark.parametrize("confirmed", [None, 10])
@pytest.mark.parametrize(("again", "later", "kept"), [(7, 8, 7), (6, 7, 7), (5, 6, 6)])
def test_fence_that_the_producer_has_forgotten_stays_in_the_standing(
    confirmed: int | None, again: int, later: int, kept: int
) -> None:
    # Rolled back, the producer used numbers again in epoch 20, which this consumer never saw.
    turn, stream = _after_a_rollback(confirmed, (Fence(20, again), Fence(60, later)))
    assert stream.standing.fences == (Fence(50, kept), Fence(60, later))
    stream.learn(turn, 70, [Fence(20, again), Fence(60, later), Fence(70, 9)])
    assert stream.standing.fences[0] == Fence(50, kept)
    _assert_recovers(turn, stream)


@pytest.mark.parametrize(
    ("confirmed", "sent"),
    [
        (None, (Fence(50, 7), Fence(60, 8))),
        (10, (Fence(50, 7), Fence(60, 8))),
        (50, (Fence(60, 8),)),
    ],
)
def test_fence_that_the_producer_remembers_leaves_the_standing(
    confirmed: int | None, sent: tuple[Fence, ...]
) -> None:
    _, stream = _after_a_rollback(confirmed, sent)
    assert stream.standing.fences == (Fence(60, 8),)


def test_forgotten_fence_leaves_the_standing_when_the_producer_begins_there_again() -> None:
    turn, stream = _after_a_rollback(None, (Fence(20, 7), Fence(60, 8)))
    stream.learn(turn, 70, [Fence(70, 7)])
    assert (stream.last, stream.standing.fences) == (6, (Fence(70, 7),))
    _assert_recovers(turn, stream)
