"""The event log keeps what is available or held, and nothing else (semantics §8)."""

from __future__ import annotations

from math import inf
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from qns.cbr.event import Event
from qns.event_log import EventKey, EventLog, KnownEvent
from qns.tables import EventRow
from qns.turn import Turn


def known(
    id: str,
    *,
    source: str = "INPS",
    data_class: str = "Enterprise",
    position: tuple[int, int, int] = (1, 1, 1),
    expires_at: float = 0.0,
    taken: bool = True,
    published_at: float = 0.0,
) -> KnownEvent:
    event = Event(id, data_class, source, {}, available_s=expires_at - published_at)
    return KnownEvent(event, f"<{id}/>".encode(), position, expires_at, taken)


def log_of(*events: KnownEvent, now: float = 0.0) -> tuple[EventLog, Turn]:
    log, turn = EventLog(), Turn(now)
    for each in events:
        log.add(turn, each)
    return log, turn


def changed(turn: Turn) -> dict[EventKey, EventRow | None]:
    return {key: row for _, rows in turn.transaction.changes() for key, row in rows.items()}


def names(events: list[KnownEvent]) -> list[str]:
    return [each.event.id for each in events]


def test_an_event_that_nobody_holds_and_that_is_not_available_goes_at_once() -> None:
    log, turn = log_of(known("e1", expires_at=0.0))
    assert list(log.collect(turn)) == [("INPS", "e1")]
    assert len(log) == 0
    assert changed(turn) == {("INPS", "e1"): None}


def test_an_event_goes_with_its_last_holder() -> None:
    log, turn = log_of(known("e1"))
    for _ in range(2):
        log.hold(("INPS", "e1"))
    log.release(("INPS", "e1"))
    assert list(log.collect(turn)) == []
    log.release(("INPS", "e1"))
    assert list(log.collect(turn)) == [("INPS", "e1")]


def test_an_event_that_is_passed_from_hand_to_hand_stays() -> None:
    log, turn = log_of(known("e1"))
    log.hold(("INPS", "e1"))
    log.release(("INPS", "e1"))
    log.hold(("INPS", "e1"))
    assert list(log.collect(turn)) == []
    log.release(("INPS", "e1"))
    assert list(log.collect(turn)) == [("INPS", "e1")]


def test_an_available_event_stays_until_its_time_is_over() -> None:
    log, _ = log_of(known("e1", expires_at=10.0))
    assert log.next_expiry() == 10.0
    assert list(log.collect(Turn(9.9))) == []
    assert list(log.collect(Turn(10.0))) == [("INPS", "e1")]
    assert log.next_expiry() == inf


def test_an_expired_event_that_is_held_is_asked_about_once_only() -> None:
    log, _ = log_of(known("e1", expires_at=10.0))
    log.hold(("INPS", "e1"))
    assert list(log.collect(Turn(10.0))) == []
    assert log.next_expiry() == inf
    log.release(("INPS", "e1"))
    assert list(log.collect(Turn(11.0))) == [("INPS", "e1")]


def test_an_event_for_ever_is_never_collected_and_wakes_nobody() -> None:
    log, _ = log_of(known("e1", expires_at=inf))
    log.hold(("INPS", "e1"))
    log.release(("INPS", "e1"))
    assert log.next_expiry() == inf
    assert list(log.collect(Turn(1e300))) == []


def test_available_is_what_was_taken_and_has_not_expired_in_publication_order() -> None:
    log, _ = log_of(
        known("third", position=(1, 2, 1), expires_at=inf),
        known("second", position=(1, 1, 10), expires_at=20.0),
        known("first", position=(1, 1, 9), expires_at=20.0),
        known("newer incarnation", position=(2, 1, 1), expires_at=20.0),
        known("expired", expires_at=5.0),
        known("not its turn", expires_at=inf, taken=False),
        known("of another", source="CoC", expires_at=inf),
    )
    expected = ["first", "second", "third", "newer incarnation"]
    assert names(log.available("INPS", 10.0)) == expected
    assert names(log.available("CoC", 10.0)) == ["of another"]
    assert log.available("nobody", 10.0) == []


def test_taking_an_event_is_remembered() -> None:
    log, turn = log_of(known("e1", expires_at=inf, taken=False))
    log.take(turn, log["INPS", "e1"])
    assert names(log.available("INPS", 0.0)) == ["e1"]
    row = changed(turn)["INPS", "e1"]
    assert row is not None
    assert row.taken == 1


def test_the_same_id_of_two_sources_is_two_events() -> None:
    log, turn = log_of(known("e1"), known("e1", source="CoC", expires_at=inf))
    assert list(log.collect(turn)) == [("INPS", "e1")]
    assert ("CoC", "e1") in log
    assert log.get(("INPS", "e1")) is None


def test_events_of_classes_that_a_producer_gave_up_are_not_available_any_more() -> None:
    log, _ = log_of(
        known("for ever", expires_at=inf),
        known("held", expires_at=inf),
        known("of another class", data_class="Enterprise/Holder", expires_at=inf),
        known("of another source", source="CoC", expires_at=inf),
    )
    log.hold(("INPS", "held"))
    turn = Turn(5.0)
    log.expire(turn, "INPS", ["Enterprise"])
    assert names(log.available("INPS", 5.0)) == ["of another class"]
    assert names(log.available("CoC", 5.0)) == ["of another source"]
    assert list(log.collect(turn)) == [("INPS", "for ever")]
    row = changed(turn)["INPS", "held"]
    assert row is not None
    assert row.expires_at <= 5.0
    log.release(("INPS", "held"))
    assert list(log.collect(Turn(6.0))) == [("INPS", "held")]


def test_what_has_expired_does_not_become_available_by_expiring_again() -> None:
    log, _ = log_of(known("e1", expires_at=3.0))
    log.hold(("INPS", "e1"))
    log.collect(Turn(4.0))
    log.expire(Turn(5.0), "INPS", ["Enterprise"])
    assert log["INPS", "e1"].expires_at <= 3.0


def test_what_was_recovered_and_nobody_holds_goes_with_the_first_turn() -> None:
    log = EventLog()
    for each in (known("held"), known("expired"), known("available", expires_at=10.0)):
        log.recover(each)
    log.hold(("INPS", "held"))
    turn = Turn(5.0)
    assert list(log.collect(turn)) == [("INPS", "expired")]
    assert changed(turn) == {("INPS", "expired"): None}
    assert list(log.collect(Turn(10.0))) == [("INPS", "available")]


def test_forgetting_tells_in_a_fixed_order() -> None:
    log, turn = log_of(*(known(id, source=source) for source in "ba" for id in "zxy"))
    assert list(log.collect(turn)) == sorted((s, i) for s in "ab" for i in "xyz")


class LogMachine(RuleBasedStateMachine):
    """Against two dictionaries: who holds what, and until when it is available."""

    def __init__(self) -> None:
        super().__init__()
        self.log = EventLog()
        self.now = 0.0
        self.rows: dict[EventKey, EventRow] = {}
        self.published_at: dict[EventKey, float] = {}
        self.holders: dict[EventKey, int] = {}
        self.count = 0

    def commit(self, turn: Turn) -> None:
        for key, row in changed(turn).items():
            if row is None:
                self.rows.pop(key, None)  # None if it came and went in one turn
            else:
                self.rows[key] = row

    @rule(
        source=st.sampled_from("ab"),
        lasts_s=st.sampled_from([0.0, 1.05, 5.05, inf]),
        taken=st.booleans(),
        holders=st.integers(0, 2),
    )
    def add(self, source: str, lasts_s: float, taken: bool, holders: int) -> None:
        self.count += 1
        turn = Turn(self.now)
        new = known(
            f"e{self.count}",
            source=source,
            position=(1, 1, self.count),
            expires_at=self.now + lasts_s,
            taken=taken,
            published_at=self.now,
        )
        self.log.add(turn, new)
        self.published_at[new.key] = self.now
        self.holders[new.key] = holders
        for _ in range(holders):
            self.log.hold(new.key)
        self._collect(turn)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.rows)))
        self.log.hold(key)
        self.holders[key] += 1

    @precondition(lambda self: any(self.holders[key] for key in self.rows))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(k for k in self.rows if self.holders[k])))
        self.log.release(key)
        self.holders[key] -= 1
        self._collect(Turn(self.now))

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))  # nothing expires at that very moment
    def advance(self, seconds: float) -> None:
        self.now += seconds
        self._collect(Turn(self.now))

    @precondition(lambda self: self.rows)
    @rule(source=st.sampled_from("ab"))
    def give_up(self, source: str) -> None:
        turn = Turn(self.now)
        self.log.expire(turn, source, ["Enterprise"])
        self._collect(turn)

    @rule()
    def crash(self) -> None:
        self.log = EventLog()
        for key, row in self.rows.items():
            again = known(
                row.id,
                source=row.source,
                position=row[2:5],
                expires_at=row.expires_at,
                taken=bool(row.taken),
                published_at=self.published_at[key],
            )
            self.log.recover(again)
            for _ in range(self.holders[key]):
                self.log.hold(key)
        self._collect(Turn(self.now))

    def _collect(self, turn: Turn) -> None:
        gone = list(self.log.collect(turn))
        self.commit(turn)
        assert not set(gone) & set(self.rows)

    @invariant()
    def keeps_what_is_needed_and_nothing_else(self) -> None:
        assert {each.key for each in self.log} == set(self.rows)
        for key, row in self.rows.items():
            assert self.holders[key] or row.expires_at > self.now
            assert self.log[key].row() == row

    @invariant()
    def wakes_in_time(self) -> None:
        due = [row.expires_at for key, row in self.rows.items() if row.expires_at > self.now]
        assert self.log.next_expiry() <= min(due, default=inf)

    @invariant()
    def tells_what_is_available(self) -> None:
        for source in "ab":
            expected = sorted(
                (row.sequence, row.id)
                for row in self.rows.values()
                if row.source == source and row.taken and row.expires_at > self.now
            )
            found = self.log.available(source, self.now)
            assert names(found) == [id for _, id in expected]


def tried(machine: type[RuleBasedStateMachine]) -> Any:
    case = machine.TestCase
    examples = settings.default.max_examples if settings.default else 100
    case.settings = settings(max_examples=max(20, examples // 10), stateful_step_count=40)
    return case


TestEventLog = tried(LogMachine)
