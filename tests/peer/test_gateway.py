"""Gateway: effects wait for the commit, which includes the records of the history."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import pytest

from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.errors import StoreFailed, StoreFull
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.history.records import read_records
from qns.iil.requests import (
    ListSubscriptions,
    Pause,
    Publish,
    Request,
    Subscribe,
    Subscriptions,
    Unsubscribe,
)
from qns.peer.gateway import Gateway
from qns.peer.ports import Mark
from qns.peer.recovery import Settings
from qns.peer.tables import ALL, COUNTERS, DELIVERIES, HISTORY, SUBSCRIPTIONS, Key, Row, Table
from qns.peer.tuning import Tuning
from qns.peer.turn import Transaction
from qns.store.lineage import MemoryLineage
from qns.store.memory import MemoryStore
from qns.store.sqlite import SqliteStore

ALONE = Federation.of("weather", WEATHER, {"Met01": ("Report", "Report/Wind")})
SETTINGS = Settings("Met01", Tuning(), DictionaryIndex)
EVENT = EventReader(WEATHER).from_fields({"id": "e1", "class": "Report", "source": "Met01"})


def open_gateway(store: SqliteStore, *, recording: bool = False, nonce: str = "n1") -> Gateway:
    return Gateway.open(
        replace(SETTINGS, recording=recording),
        store,
        MemoryLineage(),
        document=write_federation(ALONE),
        nonce=nonce,
        now=10.0,
    )


def test_gateway_rejects_a_turn_while_an_earlier_one_is_uncommitted() -> None:
    gateway = open_gateway(SqliteStore.in_memory("begun"))
    begun = gateway.begin([Subscribe("ann", "Report")], 11.0)
    assert begun.transaction
    with pytest.raises(StoreFailed, match="earlier turn"):
        gateway.begin([], 12.0)
    gateway.store.commit(begun.transaction)
    gateway.committed()
    gateway.begin([], 12.0)


def test_turns_ahead_of_the_disk_can_be_committed_together() -> None:
    store = SqliteStore.in_memory("ahead")
    gateway = open_gateway(store)
    first = gateway.begin([Subscribe("ann", "Report", id="s1"), Publish(EVENT)], 11.0)
    second = gateway.begin([Unsubscribe("ann", "s1")], 12.0, ahead=True)
    first.transaction.add(second.transaction)
    store.commit(first.transaction)
    gateway.committed(2)
    assert list(store.rows(SUBSCRIPTIONS)) == []
    assert list(store.rows(DELIVERIES)) == []
    assert [row.subscription for row in store.rows(COUNTERS)] == ["s1"]
    gateway.begin([], 13.0)


def test_gateway_rejects_turns_after_a_turn_that_raised() -> None:
    gateway = open_gateway(SqliteStore.in_memory("broken off"))
    with pytest.raises(KeyError):
        gateway.begin(["nonsense"], 11.0)  # type: ignore[list-item]
    with pytest.raises(StoreFailed, match="earlier turn"):
        gateway.begin([], 12.0, ahead=True)


def test_recording_gateway_writes_records_to_the_store() -> None:
    store = SqliteStore.in_memory("recorded")
    gateway = open_gateway(store, recording=True)
    gateway.run([Subscribe("ann", "Report", id="s1"), Publish(EVENT)], 11.0)
    records = list(read_records(row.record for row in store.rows(HISTORY)))
    assert [each["do"] for each in records] == ["start", "sub", "pub", "ntfy"]
    assert {each["org"] for each in records} == {"Met01"}
    assert [each["t"] for each in records] == [10.0, 11.0, 11.0, 11.0]
    assert records[2]["event"]["id"] == "e1"


def test_uncommitted_turn_is_not_recorded() -> None:
    store = SqliteStore.in_memory("unrecorded")
    gateway = open_gateway(store, recording=True)
    store.fail_next_commit()
    with pytest.raises(StoreFull):
        gateway.run([Publish(EVENT)], 11.0)
    assert [json.loads(row.record)["do"] for row in store.rows(HISTORY)] == ["start"]


def test_gateway_records_nothing_by_default() -> None:
    store = SqliteStore.in_memory("silent")
    open_gateway(store).run([Publish(EVENT)], 11.0)
    assert list(store.rows(HISTORY)) == []


def test_list_returns_the_state_of_the_subscriptions_of_one_owner() -> None:
    gateway = open_gateway(SqliteStore.in_memory("listed"))
    requests: list[Request] = [
        Subscribe("ann", "Report", id="s1", group="desk", lifetime_s=60.0),
        Subscribe("ann", "Report/Wind", id="s2"),
        Subscribe("bob", "Report", id="s3"),
        Pause("ann", "s2"),
        Publish(EVENT),
    ]
    gateway.run(requests, 11.0)
    (answer,) = gateway.run([ListSubscriptions("ann")], 12.0).answers
    assert isinstance(answer, Subscriptions)
    first, second = answer.subscriptions
    assert (first.id, first.text, first.group, first.expires_at) == ("s1", "Report", "desk", 71.0)
    assert (first.paused, first.delivered, first.waiting) == (False, 1, 1)
    assert (second.id, second.paused, second.delivered) == ("s2", True, 0)


# --- the mark outside the store -------------------------------------------------------------------


class Watched:
    """A store and a lineage that note every write, and die before a chosen one."""

    def __init__(self, store: MemoryStore, marks: tuple[Mark, ...], dies_before: int = 99) -> None:
        self.store = store
        self.marks = marks
        self.writes: list[object] = []
        self.dies_before = dies_before

    def _write(self, what: object) -> None:
        if len(self.writes) == self.dies_before:
            raise StoreFull("the process dies here")
        self.writes.append(what)

    def read(self) -> tuple[Mark, ...]:
        return self.marks

    def write(self, marks: tuple[Mark, ...]) -> None:
        self._write(marks)
        self.marks = marks

    def advance(self, mark: Mark) -> None:
        lineage = MemoryLineage(self.marks)
        lineage.advance(mark)
        self.marks = lineage.read()

    def rows(self, table: Table[Row]) -> Iterable[Row]:
        return self.store.rows(table)

    def get(self, table: Table[Row], key: Key) -> Row | None:
        return self.store.get(table, key)

    def scan(self, table: Table[Row], prefix: Key, after: int, limit: int) -> Sequence[Row]:
        return self.store.scan(table, prefix, after, limit)

    def last_before(self, table: Table[Row], bound: int) -> Row | None:
        return self.store.last_before(table, bound)

    def find(
        self, table: Table[Row], column: str, value: object, limit: int = ALL
    ) -> Sequence[Row]:
        return self.store.find(table, column, value, limit)

    def commit(self, transaction: Transaction) -> None:
        self._write("commit")
        self.store.commit(transaction)

    def prepare(self, transaction: Transaction) -> Callable[[], None]:
        return partial(self.commit, transaction)

    def open(self, nonce: str) -> Gateway:
        return Gateway.open(
            SETTINGS, self, self, document=write_federation(ALONE), nonce=nonce, now=10.0
        )


def test_start_writes_both_marks_then_commits_then_writes_the_new_mark() -> None:
    first = Watched(MemoryStore(), ())
    first.open("n1")
    second = Watched(first.store, first.marks)
    second.open("n2")
    old, new = Mark(1, "n1"), Mark(2, "n2")
    assert second.writes == [(old, new), "commit", (new,)]


def test_backup_writes_both_marks_then_commits_then_writes_the_new_mark() -> None:
    watched = Watched(MemoryStore(), ())
    gateway = watched.open("n1")
    watched.writes.clear()
    gateway.renew_mark("n2")
    old, new = Mark(1, "n1"), Mark(1, "n2")
    assert watched.writes == [(old, new), "commit", (new,)]


@pytest.mark.parametrize("dies_before", [0, 1, 2])
@pytest.mark.parametrize("change", ["start", "backup"])
def test_peer_that_dies_while_its_mark_changes_is_not_taken_for_restored(
    change: str, dies_before: int
) -> None:
    watched = Watched(MemoryStore(), ())
    gateway = watched.open("n1")
    dying = Watched(watched.store, watched.marks, dies_before)
    gateway.store, gateway.lineage = dying, dying
    changes = {"start": dying.open, "backup": gateway.renew_mark}
    with pytest.raises(StoreFull):
        changes[change]("n2")
    assert not Watched(dying.store, dying.marks).open("n3").restored


def test_copy_from_before_the_last_start_is_taken_for_restored() -> None:
    watched = Watched(MemoryStore(), ())
    watched.open("n1")
    copy = MemoryStore.from_snapshot(watched.store.snapshot())
    watched.open("n2")
    assert Watched(copy, watched.marks).open("n3").restored


def test_copy_from_before_the_last_backup_is_taken_for_restored() -> None:
    watched = Watched(MemoryStore(), ())
    gateway = watched.open("n1")
    copy = MemoryStore.from_snapshot(watched.store.snapshot())
    gateway.renew_mark("n2")
    assert Watched(copy, watched.marks).open("n3").restored


def commit_a_subscription(gateway: Gateway, id: str) -> None:
    gateway.run([Subscribe("ann", "Report", id=id)], 10.0)


def test_store_that_has_lost_noted_commits_is_taken_for_restored() -> None:
    watched = Watched(MemoryStore(), ())
    gateway = watched.open("n1")
    commit_a_subscription(gateway, "s1")
    copy = MemoryStore.from_snapshot(watched.store.snapshot())
    gateway.note_progress()
    marks = watched.marks
    assert not Watched(copy, marks).open("n2").restored
    copy = MemoryStore.from_snapshot(watched.store.snapshot())
    commit_a_subscription(gateway, "s2")
    assert gateway.has_progress
    gateway.note_progress()
    assert not gateway.has_progress
    assert Watched(copy, watched.marks).open("n2").restored


def test_turns_that_are_not_committed_are_not_noted() -> None:
    watched = Watched(MemoryStore(), ())
    gateway = watched.open("n1")
    commit_a_subscription(gateway, "s1")
    gateway.begin([Subscribe("ann", "Report", id="s2")], 10.0)  # the host dies before the commit
    gateway.note_progress()
    assert not Watched(watched.store, watched.marks).open("n2").restored
