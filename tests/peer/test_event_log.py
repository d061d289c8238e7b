"""The event log keeps exactly the events that are available or held (semantics §8)."""

from __future__ import annotations

from math import inf
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from qns.cbr.event import Event
from qns.peer.event_log import EventKey, EventLog, LoggedEvent
from qns.peer.tables import EventRow
from qns.peer.turn import Turn


def logged_event(
    id: str,
    *,
    source: str = "INPS",
    data_class: str = "Enterprise",
    position: tuple[int, int, int] = (1, 1, 1),
    expires_at: float = 0.0,
    taken: bool = True,
    published_at: float = 0.0,
) -> LoggedEvent:
    event = Event(id, data_class, source, {}, available_s=expires_at - published_at)
    return LoggedEvent(event, f"<{id}/>".encode(), position, expires_at, taken)


def log_of(*events: LoggedEvent, now: float = 0.0) -> tuple[EventLog, Turn]:
    log, turn = EventLog(), Turn(now)
    for each in events:
        log.add(turn, each)
    return log, turn


def changes_of(turn: Turn) -> dict[EventKey, EventRow | None]:
    return {key: row for _, rows in turn.transaction.changes() for key, row in rows.items()}


def ids_of(events: list[LoggedEvent]) -> list[str]:
    return [each.event.id for each in events]


def test_event_without_holder_and_availability_is_collected_at_once() -> None:
    log, turn = log_of(logged_event("e1", expires_at=0.0))
    assert list(log.collect(turn)) == [("INPS", "e1")]
    assert len(log) == 0
    assert changes_of(turn) == {("INPS", "e1"): None}


def test_event_is_collected_when_its_last_holder_releases_it() -> None:
    log, turn = log_of(logged_event("e1"))
    for _ in range(2):
        log.hold(("INPS", "e1"))
    log.release(("INPS", "e1"))
    assert list(log.collect(turn)) == []
    log.release(("INPS", "e1"))
    assert list(log.collect(turn)) == [("INPS", "e1")]


def test_event_that_is_released_and_held_again_in_one_turn_stays() -> None:
    log, turn = log_of(logged_event("e1"))
    log.hold(("INPS", "e1"))
    log.release(("INPS", "e1"))
    log.hold(("INPS", "e1"))
    assert list(log.collect(turn)) == []
    log.release(("INPS", "e1"))
    assert list(log.collect(turn)) == [("INPS", "e1")]


def test_available_event_stays_until_it_expires() -> None:
    log, _ = log_of(logged_event("e1", expires_at=10.0))
    assert log.next_expiry() == 10.0
    assert list(log.collect(Turn(9.9))) == []
    assert list(log.collect(Turn(10.0))) == [("INPS", "e1")]
    assert log.next_expiry() == inf


def test_held_event_that_expires_sets_no_further_expiry() -> None:
    log, _ = log_of(logged_event("e1", expires_at=10.0))
    log.hold(("INPS", "e1"))
    assert list(log.collect(Turn(10.0))) == []
    assert log.next_expiry() == inf
    log.release(("INPS", "e1"))
    assert list(log.collect(Turn(11.0))) == [("INPS", "e1")]


def test_event_with_infinite_availability_is_never_collected_and_sets_no_expiry() -> None:
    log, _ = log_of(logged_event("e1", expires_at=inf))
    log.hold(("INPS", "e1"))
    log.release(("INPS", "e1"))
    assert log.next_expiry() == inf
    assert list(log.collect(Turn(1e300))) == []


def test_available_returns_taken_unexpired_events_in_publication_order() -> None:
    log, _ = log_of(
        logged_event("third", position=(1, 2, 1), expires_at=inf),
        logged_event("second", position=(1, 1, 10), expires_at=20.0),
        logged_event("first", position=(1, 1, 9), expires_at=20.0),
        logged_event("newer incarnation", position=(2, 1, 1), expires_at=20.0),
        logged_event("expired", expires_at=5.0),
        logged_event("not taken", expires_at=inf, taken=False),
        logged_event("of another", source="CoC", expires_at=inf),
    )
    expected = ["first", "second", "third", "newer incarnation"]
    assert ids_of(log.available("INPS", 10.0)) == expected
    assert ids_of(log.available("CoC", 10.0)) == ["of another"]
    assert log.available("nobody", 10.0) == []


def test_mark_taken_is_written_to_the_turn() -> None:
    log, turn = log_of(logged_event("e1", expires_at=inf, taken=False))
    log.mark_taken(turn, log["INPS", "e1"])
    assert ids_of(log.available("INPS", 0.0)) == ["e1"]
    row = changes_of(turn)["INPS", "e1"]
    assert row is not None
    assert row.taken == 1


def test_events_of_two_sources_may_have_the_same_id() -> None:
    log, turn = log_of(logged_event("e1"), logged_event("e1", source="CoC", expires_at=inf))
    assert list(log.collect(turn)) == [("INPS", "e1")]
    assert ("CoC", "e1") in log
    assert log.get(("INPS", "e1")) is None


def test_expire_ends_the_availability_of_the_given_classes_of_one_source() -> None:
    log, _ = log_of(
        logged_event("infinite", expires_at=inf),
        logged_event("held", expires_at=inf),
        logged_event("of another class", data_class="Enterprise/Holder", expires_at=inf),
        logged_event("of another source", source="CoC", expires_at=inf),
    )
    log.hold(("INPS", "held"))
    turn = Turn(5.0)
    log.expire(turn, "INPS", ["Enterprise"])
    assert ids_of(log.available("INPS", 5.0)) == ["of another class"]
    assert ids_of(log.available("CoC", 5.0)) == ["of another source"]
    assert list(log.collect(turn)) == [("INPS", "infinite")]
    row = changes_of(turn)["INPS", "held"]
    assert row is not None
    assert row.expires_at <= 5.0
    log.release(("INPS", "held"))
    assert list(log.collect(Turn(6.0))) == [("INPS", "held")]


def test_expiring_an_expired_event_does_not_extend_it() -> None:
    log, _ = log_of(logged_event("e1", expires_at=3.0))
    log.hold(("INPS", "e1"))
    log.collect(Turn(4.0))
    log.expire(Turn(5.0), "INPS", ["Enterprise"])
    assert log["INPS", "e1"].expires_at <= 3.0


def test_recovered_event_without_holder_is_collected_in_the_first_turn() -> None:
    log = EventLog()
    for each in (
        logged_event("held"),
        logged_event("expired"),
        logged_event("available", expires_at=10.0),
    ):
        log.recover(each)
    log.hold(("INPS", "held"))
    turn = Turn(5.0)
    assert list(log.collect(turn)) == [("INPS", "expired")]
    assert changes_of(turn) == {("INPS", "expired"): None}
    assert list(log.collect(Turn(10.0))) == [("INPS", "available")]


def test_collect_returns_keys_in_sorted_order() -> None:
    log, turn = log_of(*(logged_event(id, source=source) for source in "ba" for id in "zxy"))
    assert list(log.collect(turn)) == sorted((s, i) for s in "ab" for i in "xyz")


class LogMachine(RuleBasedStateMachine):
    """Compares the log with dictionaries of stored rows and numbers of holders."""

    def __init__(self) -> None:
        super().__init__()
        self.log = EventLog()
        self.now = 0.0
        self.rows: dict[EventKey, EventRow] = {}
        self.published_at: dict[EventKey, float] = {}
        self.holders: dict[EventKey, int] = {}
        self.count = 0

    def commit(self, turn: Turn) -> None:
        for key, row in changes_of(turn).items():
            if row is None:
                self.rows.pop(key, None)  # missing if it was added and removed in one turn
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
        new = logged_event(
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

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))  # no event expires at these moments
    def advance(self, seconds: float) -> None:
        self.now += seconds
        self._collect(Turn(self.now))

    @precondition(lambda self: self.rows)
    @rule(source=st.sampled_from("ab"))
    def expire(self, source: str) -> None:
        turn = Turn(self.now)
        self.log.expire(turn, source, ["Enterprise"])
        self._collect(turn)

    @rule()
    def crash(self) -> None:
        self.log = EventLog()
        for key, row in self.rows.items():
            again = logged_event(
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
    def log_keeps_exactly_the_needed_events(self) -> None:
        assert {each.key for each in self.log} == set(self.rows)
        for key, row in self.rows.items():
            assert self.holders[key] or row.expires_at > self.now
            assert self.log[key].row() == row

    @invariant()
    def next_expiry_is_not_too_late(self) -> None:
        due = [row.expires_at for key, row in self.rows.items() if row.expires_at > self.now]
        assert self.log.next_expiry() <= min(due, default=inf)

    @invariant()
    def available_returns_the_available_events(self) -> None:
        for source in "ab":
            expected = sorted(
                (row.sequence, row.id)
                for row in self.rows.values()
                if row.source == source and row.taken and row.expires_at > self.now
            )
            found = self.log.available(source, self.now)
            assert ids_of(found) == [id for _, id in expected]


def with_fewer_examples(machine: type[RuleBasedStateMachine]) -> Any:
    """Returns the test case with fewer examples, because each has many steps."""
    case = machine.TestCase
    examples = settings.default.max_examples if settings.default else 100
    case.settings = settings(max_examples=max(20, examples // 10), stateful_step_count=40)
    return case


TestEventLog = with_fewer_examples(LogMachine)
