"""The inbound stream against a model that remembers every life of its producer."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from qns.edl.inbound import InboundStream, Place
from qns.edl.messages import Entry, Fence
from qns.tables import EARLY, INBOUND, INBOUND_FENCES, EarlyRow
from qns.turn import Turn


@st.composite
def lives(draw: st.DrawFn) -> list[Fence]:
    """The fences of a producer, which restores with falling and rising numbers."""
    epochs = sorted(draw(st.sets(st.integers(1, 6), max_size=4)))
    return [Fence(epoch, draw(st.integers(1, 8))) for epoch in epochs]


def is_valid(fences: list[Fence], epoch: int, number: int) -> bool:
    """An entry of an older epoch is valid iff its number is below the first of every later one."""
    return all(number < fence.first for fence in fences if fence.epoch > epoch)


steps = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 8)), max_size=25)


@given(lives(), steps)
def test_entries_are_placed_as_the_fences_say(
    fences: list[Fence], entries: list[tuple[int, int]]
) -> None:
    stream, turn = InboundStream("P", 1, 1, 1), Turn(0.0)
    taken = 0
    for epoch, number in entries:
        told = tuple(each for each in fences if each.epoch <= epoch)
        fresh = [each for each in told if each.epoch > stream.epoch]
        for fence in fresh:
            taken = min(taken, fence.first - 1)
        stream.learn_from(turn, Entry("C", 1, epoch, number, 0, told))
        known = [each for each in fences if each.epoch <= stream.epoch]
        place = stream.place(epoch, number)
        if not is_valid(known, epoch, number):
            assert place is Place.OBSOLETE
        elif number <= taken:
            assert place is Place.DUPLICATE
        elif number == taken + 1:
            assert place is Place.NEXT
            taken = number
            stream.advance(turn, number)
            while (row := stream.pop_next(turn)) is not None:
                assert is_valid(known, row.epoch, row.number)
                taken = row.number
                stream.advance(turn, row.number)
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
    assert head[2:] == (stream.epoch, stream.last)
    assert {row.epoch: row.first for row in rows.get(INBOUND_FENCES, [])} == stream.fences
    assert {row.number: row for row in rows.get(EARLY, [])} == stream.early


@given(lives(), st.integers(1, 7), st.integers(0, 7), st.integers(1, 8))
def test_an_entry_that_does_not_tell_every_fence_is_not_believed(
    fences: list[Fence], epoch: int, confirmed: int, number: int
) -> None:
    assume(confirmed < epoch)
    stream, turn = InboundStream("P", 1, 1, 1), Turn(0.0)
    told = tuple(each for each in fences if confirmed < each.epoch <= epoch)
    stream.learn_from(turn, Entry("C", 1, epoch, number, confirmed, told))
    assert (stream.place(epoch, number) is Place.UNKNOWN) == (confirmed > 0)
    stream.learn(turn, epoch, [each for each in fences if each.epoch <= epoch])
    assert stream.place(epoch, number) is not Place.UNKNOWN


@given(st.sets(st.integers(2, 20), min_size=1), st.integers(1, 25))
def test_a_skip_passes_early_entries(numbers: set[int], upto: int) -> None:
    stream, turn = InboundStream("P", 1, 1, 1, epoch=1), Turn(0.0)
    for number in numbers:
        stream.hold_back(turn, EarlyRow("P", 1, number, 1, f"e{number}"))
    stream.advance(turn, upto)
    assert {row.number for row in stream.pop_passed(turn)} == {n for n in numbers if n <= upto}
    assert set(stream.early) == {n for n in numbers if n > upto}
    assert {row.number for row in stream.end(turn)} == {n for n in numbers if n > upto}
    assert not any(row for _, rows in turn.transaction.changes() for row in rows.values())
