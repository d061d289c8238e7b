"""The outbound stream agrees with a model that maps each number to its event."""

from __future__ import annotations

from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from qns.d2q.event_json import EventReader
from qns.d2q.event_xml import write_event
from qns.d2q.shipped import WEATHER
from qns.edl.fences import Fences
from qns.edl.messages import Fence, Standing
from qns.edl.outbound_stream import (
    STREAM,
    OutboundStream,
    StreamEvent,
    StreamState,
)
from qns.edl.owed_events import recover_streams
from qns.peer.event_log import EventKey, EventLog, LoggedEvent
from qns.peer.row_view import RowView
from qns.peer.tables import CONSUMERS, EVENTS, FENCES, OWED
from qns.peer.turn import Turn
from qns.store.memory import MemoryStore

READER = EventReader(WEATHER)


class OutboundMachine(RuleBasedStateMachine):
    """A producer with one consumer that acknowledges, is restored and learns of fences."""

    @initialize(most_in_memory=st.sampled_from([inf, 3, 1]))
    def begin(self, most_in_memory: float) -> None:
        self.most_in_memory = most_in_memory
        self.store = MemoryStore()
        self.view = RowView(self.store)
        self.log, self.turn, self.now = EventLog(self.view, WEATHER, most_in_memory), Turn(0.0), 0.0
        self.log.count_owed = self.count_owed
        self.view.begin(self.turn.transaction)
        self.stream = OutboundStream("P", "C", 1, view=self.view, most_in_memory=most_in_memory)
        self.stream.put(self.turn)
        self.epoch = 1
        self.begun: dict[int, int] = {}
        """Epoch -> its first number, until a later epoch is confirmed."""
        self.assigned: dict[int, tuple[str, str]] = {}
        """Number -> event, as long as the stream keeps both."""
        self.expiry: dict[tuple[str, str], float] = {}
        self.acknowledged = 0

    def count_owed(self, key: EventKey) -> int:
        rows = self.view.find(OWED, "event", key[1])
        return sum(row.number > self.stream.acknowledged for row in rows)

    @rule()
    def commit(self) -> None:
        self.store.commit(self.turn.transaction)
        self.view.committed()
        self.turn = Turn(self.now)
        self.view.begin(self.turn.transaction)

    @rule()
    def trim(self) -> None:
        self.log.trim(self.now)

    @rule()
    def restart(self) -> None:
        """Commits and builds the stream and the log again from the store."""
        self.commit()
        self.log = EventLog(self.view, WEATHER, self.most_in_memory)
        self.log.recover_from(self.store, self.now)
        streams = recover_streams("P", self.store, self.log, self.view, self.most_in_memory)
        self.log.count_owed = self.count_owed
        before, self.stream = self.stream, streams["C"]
        self.stream.state = before.state
        self.stream.resend_next = before.resend_next

    @rule(available=st.sampled_from([0.0, 3.0, 100.0]))
    def assign_number(self, available: float) -> None:
        id = f"e{self.stream.number + 1}-{self.epoch}"
        event = READER.from_fields({"id": id, "class": "Report", "source": "P"})
        logged = LoggedEvent(
            event, write_event(event, WEATHER), (1, self.epoch, 1), self.now + available, taken=True
        )
        self.log.add(self.turn, logged)
        number = self.stream.assign_number(self.turn, self.epoch, logged.key, self.log)
        assert number == self.stream.number
        assert number not in self.assigned
        self.assigned[number] = logged.key
        self.expiry[logged.key] = logged.expires_at

    @rule(epochs_ago=st.integers(0, 3), last=st.integers(0, 30), may_fall_back=st.booleans())
    def update_standing(self, epochs_ago: int, last: int, may_fall_back: bool) -> None:
        epoch = max(0, self.epoch - epochs_ago)
        unknown = [fence.first for fence in self.stream.fences if fence.epoch > epoch]
        has = min([last, self.stream.number, *(first - 1 for first in unknown)])
        standing = Standing(1, 1, 1, epoch, last)
        self.stream.update_standing(self.turn, standing, self.log, may_fall_back=may_fall_back)
        self.begun = {e: first for e, first in self.begun.items() if e >= self.stream.confirmed}
        if has > self.acknowledged or may_fall_back:
            self.acknowledged = has
        if not self.stream.owes:
            self.stream.catch_up()
        elif may_fall_back:
            self.stream.resend()

    @rule()
    def restore(self) -> None:
        self.epoch += 1
        self.stream.raise_fence(self.turn, self.epoch)
        self.begun[self.epoch] = self.stream.number + 1
        confirmed = self.stream.confirmed
        unconfirmed = [Fence(*each) for each in self.begun.items() if each[0] > confirmed]
        assert self.stream.fences.after(confirmed) == unconfirmed

    @rule(chosen=st.integers(0, 30))
    def drop(self, chosen: int) -> None:
        owed = [number for number in self.assigned if number > self.acknowledged]
        if owed:
            number = owed[chosen % len(owed)]
            row = self.stream.owed.get(number)
            assert row is not None
            assert ("P", row.event) == self.assigned.pop(number)
            self.stream.drop(self.turn, row, self.log)

    @rule(seconds=st.sampled_from([0.5, 5.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.turn.now = self.now
        for key in self.log.collect(self.turn):
            self.stream.owed.remove_event(self.turn, key[1])
            for row in self.view.find(OWED, "event", key[1]):
                self.stream.owed.remove(self.turn, row)
            owed = [n for n, each in self.assigned.items() if each == key and n > self.acknowledged]
            assert not owed, "an owed event was collected"
            self.assigned = {n: each for n, each in self.assigned.items() if each != key}

    @precondition(lambda self: self.stream.number)
    @rule()
    def end(self) -> None:
        self.stream.end(self.turn, self.log)
        assert not any(logged.owed for logged in self.log)
        assert len(self.stream.owed) == 0
        assert self.view.get(CONSUMERS, ("C",)) is None
        for table in (FENCES, OWED):
            assert not self.view.scan(table, ("C",), 0, 1)
        self.begin(self.most_in_memory)

    @invariant()
    def numbers_and_holders_equal_those_of_the_model(self) -> None:
        if not hasattr(self, "stream"):
            return
        stream = self.stream
        assert stream.acknowledged == self.acknowledged
        kept = stream.owed.between(1, stream.number)
        assert {row.number: ("P", row.event) for row in kept} == self.assigned
        assert len(stream.owed) == len(self.assigned)
        owed = list(stream.owed.between(self.acknowledged + 1, stream.number))
        assert stream.owed_events == len(owed)
        assert stream.owed_bytes == sum(row.size for row in owed)
        assert all(row.size > 0 for row in owed)
        for number, (_, event) in self.assigned.items():
            assert stream.owed.number_of(event) == number
        for logged in self.log:
            owed = [n for n, key in self.assigned.items() if key == logged.key]
            assert logged.owed == sum(number > self.acknowledged for number in owed)

    @invariant()
    def owed_events_can_be_read(self) -> None:
        if hasattr(self, "stream"):
            for number, key in self.assigned.items():
                if number > self.acknowledged:
                    assert self.view.get(EVENTS, key) is not None

    @invariant()
    def state_is_caught_up_exactly_if_nothing_is_owed(self) -> None:
        if hasattr(self, "stream"):
            is_caught_up = self.stream.state is StreamState.CAUGHT_UP
            assert is_caught_up == (self.stream.number == self.acknowledged)

    @invariant()
    def stored_rows_equal_the_stream_in_memory(self) -> None:
        if not hasattr(self, "stream"):
            return
        stream = self.stream
        row = self.view.get(CONSUMERS, ("C",))
        assert row is not None
        found = (row.number, row.acknowledged, row.confirmed)
        assert found == (stream.number, stream.acknowledged, stream.confirmed)
        twin = OutboundStream.from_row("P", row)
        assert (twin.state is StreamState.CAUGHT_UP) == (not stream.owes)
        rows = self.view.scan(OWED, ("C",), 0, 1_000)
        assert rows == list(stream.owed.between(1, stream.number))
        fences = self.view.scan(FENCES, ("C",), 0, 1_000)
        assert [each[1:] for each in fences] == list(stream.fences)

    @invariant()
    def entry_has_every_fence_that_the_consumer_has_not_confirmed(self) -> None:
        if not hasattr(self, "stream"):
            return
        entry = self.stream.entry(1, self.epoch)
        assert entry.confirmed == self.stream.confirmed
        missing = {fence for fence in self.stream.fences if fence.epoch > entry.confirmed}
        assert set(entry.fences) == missing


TestOutbound = OutboundMachine.TestCase
TestOutbound.settings = settings(stateful_step_count=30)


def test_every_stream_state_can_be_reached_and_left() -> None:
    assert {state for state, _ in STREAM} == set(StreamState)
    assert set(STREAM.values()) == set(StreamState)
    assert {event for _, event in STREAM} == set(StreamEvent)


def test_epoch_after_a_restore_begins_where_the_first_unconfirmed_epoch_began() -> None:
    stream, turn = OutboundStream("P", "C", 1, number=5, confirmed=1), Turn(0.0)
    stream.raise_fence(turn, 20)
    stream.number = 7
    stream.raise_fence(turn, 60)
    assert list(stream.fences) == [Fence(20, 6), Fence(60, 8)]
    stream.restore(turn, 70, 8)
    assert list(stream.fences) == [Fence(70, 6)]


def test_starts_that_no_consumer_has_confirmed_are_bounded() -> None:
    stream, turn = OutboundStream("P", "C", 1, number=5, confirmed=1), Turn(0.0)
    for epoch in range(2, 300):
        stream.raise_fence(turn, epoch)
    stored = [each.epoch for each in stream.fences]
    assert stored == [2, *range(201, 300)]
    rows = dict(turn.transaction.changes())[FENCES]
    assert sorted(row.epoch for row in rows.values() if row is not None) == stored


def test_consumer_steps_back_to_the_first_unconfirmed_number_of_a_forgotten_start() -> None:
    stream, turn = OutboundStream("P", "C", 1, number=6, confirmed=1), Turn(0.0)
    stream.fences = Fences([Fence(20, 6), Fence(60, 7)])
    forgotten = Standing(1, 1, 1, 50, 6, (Fence(50, 7),))
    assert stream.find_lost_epoch(forgotten, epoch=60) == Fence(60, 6)
    remembered = Standing(1, 1, 1, 20, 6, (Fence(20, 6),))
    assert stream.find_lost_epoch(remembered, epoch=60) is None
    stream.restore(turn, 70, 6)
    assert stream.find_lost_epoch(forgotten, epoch=70) is None


def test_lost_epoch_has_the_newest_fence_of_the_consumer_and_its_earliest_number() -> None:
    stream = OutboundStream("P", "C", 1, number=5, acknowledged=2)
    standing = Standing(1, 1, 1, 1, 4, (Fence(2, 2), Fence(3, 4)))
    assert stream.find_lost_epoch(standing, epoch=1) == Fence(3, 2)
    assert list(stream.fences) == []
