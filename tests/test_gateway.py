"""Gateway: effects wait for the commit, and the record of what happened is part of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import EventReader
from qns.d2q.shipped import WEATHER
from qns.errors import StoreFailed, StoreFull
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.gateway import Gateway
from qns.history.records import read_records
from qns.iil.requests import (
    ListSubscriptions,
    Pause,
    Publish,
    Subscribe,
    Subscriptions,
    Unsubscribe,
)
from qns.recovery import Settings
from qns.store.lineage import MemoryLineage
from qns.store.sqlite import SqliteStore
from qns.tables import COUNTERS, DELIVERIES, HISTORY, SUBSCRIPTIONS
from qns.tuning import Tuning

ALONE = Federation.of("weather", WEATHER, {"Met01": ("Report", "Report/Wind")})
SETTINGS = Settings("Met01", Tuning(), DictionaryIndex)
EVENT = EventReader(WEATHER).from_fields({"id": "e1", "class": "Report", "source": "Met01"})


def opened(store: SqliteStore, *, recording: bool = False, nonce: str = "n1") -> Gateway:
    return Gateway.open(
        replace(SETTINGS, recording=recording),
        store,
        MemoryLineage(),
        document=write_federation(ALONE),
        nonce=nonce,
        now=10.0,
    )


def test_a_turn_that_is_not_committed_stops_the_gateway() -> None:
    gateway = opened(SqliteStore.in_memory("begun"))
    begun = gateway.begin([Subscribe("ann", "Report")], 11.0)
    assert begun.transaction
    with pytest.raises(StoreFailed, match="earlier turn"):
        gateway.begin([], 12.0)
    gateway.store.commit(begun.transaction)
    gateway.committed()
    gateway.begin([], 12.0)


def test_turns_ahead_of_the_disk_are_committed_together() -> None:
    store = SqliteStore.in_memory("ahead")
    gateway = opened(store)
    first = gateway.begin([Subscribe("ann", "Report", id="s1"), Publish(EVENT)], 11.0)
    second = gateway.begin([Unsubscribe("ann", "s1")], 12.0, ahead=True)
    first.transaction.add(second.transaction)
    store.commit(first.transaction)
    gateway.committed(2)
    assert list(store.rows(SUBSCRIPTIONS)) == []
    assert list(store.rows(DELIVERIES)) == []
    assert [row.subscription for row in store.rows(COUNTERS)] == ["s1"]
    gateway.begin([], 13.0)


def test_nothing_goes_on_after_a_turn_that_broke_off() -> None:
    gateway = opened(SqliteStore.in_memory("broken off"))
    with pytest.raises(KeyError):
        gateway.begin(["nonsense"], 11.0)  # type: ignore[list-item]
    with pytest.raises(StoreFailed, match="earlier turn"):
        gateway.begin([], 12.0, ahead=True)


def test_what_happened_is_in_the_store_if_it_is_to_be_kept() -> None:
    store = SqliteStore.in_memory("recorded")
    gateway = opened(store, recording=True)
    gateway.run([Subscribe("ann", "Report", id="s1"), Publish(EVENT)], 11.0)
    records = list(read_records(row.record for row in store.rows(HISTORY)))
    assert [each["do"] for each in records] == ["start", "sub", "pub", "ntfy"]
    assert {each["org"] for each in records} == {"Met01"}
    assert [each["t"] for each in records] == [10.0, 11.0, 11.0, 11.0]
    assert records[2]["event"]["id"] == "e1"


def test_what_was_not_committed_is_not_recorded() -> None:
    store = SqliteStore.in_memory("unrecorded")
    gateway = opened(store, recording=True)
    store.fail_next_commit()
    with pytest.raises(StoreFull):
        gateway.run([Publish(EVENT)], 11.0)
    assert [json.loads(row.record)["do"] for row in store.rows(HISTORY)] == ["start"]


def test_nothing_is_recorded_by_default() -> None:
    store = SqliteStore.in_memory("silent")
    opened(store).run([Publish(EVENT)], 11.0)
    assert list(store.rows(HISTORY)) == []


def test_a_user_sees_the_own_subscriptions_and_how_they_stand() -> None:
    gateway = opened(SqliteStore.in_memory("listed"))
    wanted = [
        Subscribe("ann", "Report", id="s1", group="desk", lifetime_s=60.0),
        Subscribe("ann", "Report/Wind", id="s2"),
        Subscribe("bob", "Report", id="s3"),
        Pause("ann", "s2"),
        Publish(EVENT),
    ]
    gateway.run(wanted, 11.0)
    (answer,) = gateway.run([ListSubscriptions("ann")], 12.0).answers
    assert isinstance(answer, Subscriptions)
    first, second = answer.subscriptions
    assert (first.id, first.text, first.group, first.expires_at) == ("s1", "Report", "desk", 71.0)
    assert (first.paused, first.delivered, first.waiting) == (False, 1, 1)
    assert (second.id, second.paused, second.delivered) == ("s2", True, 0)
