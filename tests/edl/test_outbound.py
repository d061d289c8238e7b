"""The outbound stream against a list of what was given out."""

from __future__ import annotations

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
from qns.d2q.shipped import WEATHER
from qns.edl.messages import Fence, Standing
from qns.edl.outbound import OutboundStream
from qns.event_log import EventLog, KnownEvent
from qns.tables import CONSUMERS, FENCES, OWED, ConsumerRow
from qns.turn import Turn

READER = EventReader(WEATHER)


class Outbound(RuleBasedStateMachine):
    """A producer with one consumer, which acknowledges, falls back and learns of fences."""

    @initialize()
    def begin(self) -> None:
        self.log, self.turn, self.now = EventLog(), Turn(0.0), 0.0
        self.stream = OutboundStream("P", "C", 1)
        self.stream.put(self.turn)
        self.epoch = 1
        self.given: dict[int, tuple[str, str]] = {}
        """Number -> event, while both are known."""
        self.expiry: dict[tuple[str, str], float] = {}
        self.acknowledged = 0
        self.rows: dict[tuple[object, object], object] = {}

    @rule(available=st.sampled_from([0.0, 3.0, 100.0]))
    def give(self, available: float) -> None:
        id = f"e{self.stream.number + 1}-{self.epoch}"
        event = READER.from_fields({"id": id, "class": "Report", "source": "P"})
        known = KnownEvent(event, b"", (1, self.epoch, 1), self.now + available, taken=True)
        self.log.add(self.turn, known)
        number = self.stream.give(self.turn, self.epoch, known.key, self.log)
        assert number == self.stream.number
        assert number not in self.given
        self.given[number] = known.key
        self.expiry[known.key] = known.expires_at

    @rule(epochs_ago=st.integers(0, 3), last=st.integers(0, 30), afresh=st.booleans())
    def stands(self, epochs_ago: int, last: int, afresh: bool) -> None:
        epoch = max(0, self.epoch - epochs_ago)
        unknown = [fence.first for fence in self.stream.fences if fence.epoch > epoch]
        has = min([last, self.stream.number, *(first - 1 for first in unknown)])
        self.stream.stands(self.turn, Standing(1, 1, 1, epoch, last), self.log, afresh=afresh)
        if has > self.acknowledged or afresh:
            self.acknowledged = has

    @rule()
    def restore(self) -> None:
        self.epoch += 1
        self.stream.raise_fence(self.turn, self.epoch)
        assert self.stream.fences[-1] == Fence(self.epoch, self.stream.number + 1)

    @rule(chosen=st.integers(0, 30))
    def drop(self, chosen: int) -> None:
        owed = [number for number in self.given if number > self.acknowledged]
        if owed:
            number = owed[chosen % len(owed)]
            key = self.stream.drop(self.turn, number, self.log)
            assert key == self.given.pop(number)

    @rule(seconds=st.sampled_from([0.5, 5.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.turn.now = self.now
        for key in self.log.collect(self.turn):
            self.stream.forget(self.turn, key)
            owed = [n for n, each in self.given.items() if each == key and n > self.acknowledged]
            assert not owed, "an owed event was collected"
            self.given = {n: each for n, each in self.given.items() if each != key}

    @precondition(lambda self: self.stream.number)
    @rule()
    def end(self) -> None:
        self.stream.end(self.turn, self.log)
        assert not any(known.holders for known in self.log)
        for table in (CONSUMERS, FENCES, OWED):
            assert not self._rows(table)
        self.begin()

    def _rows(self, table: object) -> list[tuple[object, ...]]:
        for each, changes in self.turn.transaction.changes():
            if each is table:
                return [row for row in changes.values() if row is not None]
        return []

    @invariant()
    def numbers_and_holders_are_those_of_the_model(self) -> None:
        if not hasattr(self, "stream"):
            return
        stream = self.stream
        assert stream.acknowledged == self.acknowledged
        assert {n: ("P", row.event) for n, row in stream.rows.items()} == self.given
        assert stream.numbers == {key: number for number, key in self.given.items()}
        for known in self.log:
            owed = [n for n, key in self.given.items() if key == known.key]
            assert known.holders == sum(number > self.acknowledged for number in owed)

    @invariant()
    def the_rows_tell_the_same_stream(self) -> None:
        if not hasattr(self, "stream"):
            return
        stream = self.stream
        (row,) = self._rows(CONSUMERS)
        assert isinstance(row, ConsumerRow)
        assert (row.number, row.acknowledged, row.confirmed) == (
            *(stream.number, stream.acknowledged, stream.confirmed),
        )
        assert sorted(self._rows(OWED)) == sorted(stream.rows.values())
        assert sorted(each[1:] for each in self._rows(FENCES)) == sorted(stream.fences)

    @invariant()
    def an_entry_tells_every_fence_that_the_consumer_has_not_confirmed(self) -> None:
        if not hasattr(self, "stream"):
            return
        entry = self.stream.entry(1, self.epoch)
        assert entry.confirmed == self.stream.confirmed
        missing = {fence for fence in self.stream.fences if fence.epoch > entry.confirmed}
        assert set(entry.fences) == missing


TestOutbound = Outbound.TestCase
TestOutbound.settings = settings(stateful_step_count=30)
