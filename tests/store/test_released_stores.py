"""Stores that released versions wrote are opened with all their rows, and their peers go on.

`released/` has one file for each migration of a released version: a store with rows in all tables,
as SQL text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from qns.cbr.index import DictionaryIndex
from qns.d2q.event_json import EventReader
from qns.iil.requests import Deliveries, ListSubscriptions, Publish, Published, PullDeliveries
from qns.peer.gateway import Gateway
from qns.peer.ports import Mark
from qns.peer.recovery import Settings
from qns.peer.tables import (
    CUSTODY,
    DEAD_LETTERS,
    DELIVERIES,
    DOCUMENT,
    EARLY,
    EVENTS,
    IDENTITY,
    OWED,
    QUEUED,
    SUBSCRIPTIONS,
    TABLES,
)
from qns.peer.tuning import Tuning
from qns.store.connection import check_unused
from qns.store.lineage import MemoryLineage
from qns.store.migrations import MIGRATIONS
from qns.store.reading import StoreReader
from qns.store.sqlite import SqliteStore

RELEASED = sorted((Path(__file__).parent / "released").glob("*.sql"))
NEWEST_RELEASED = 2
"""The last migration of the last release, 0.2.0."""

OldRows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(params=RELEASED, ids=lambda path: path.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Returns the path of a store as the released version left it."""
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(request.param.read_text(encoding="utf-8"))
    connection.close()
    return path


def old_rows(path: Path) -> OldRows:
    """Returns the rows of every table, read without this program's knowledge of the tables."""
    connection = apsw.Connection(str(path))
    names = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    found = {name: sorted(connection.execute(f'SELECT * FROM "{name}"')) for name in names}
    connection.close()
    return found


def opened(store: SqliteStore) -> Gateway:
    (identity,) = store.rows(IDENTITY)
    (document,) = store.rows(DOCUMENT)
    return Gateway.open(
        Settings(identity.organisation, Tuning(), DictionaryIndex),
        store,
        MemoryLineage((Mark(identity.epoch, identity.nonce),)),
        document=document.xml,
        nonce="new",
        now=41.0,
    )


def test_every_released_migration_has_a_store() -> None:
    numbers = [int(path.stem.rpartition("-")[2]) for path in RELEASED]
    assert numbers == list(range(1, NEWEST_RELEASED + 1))
    assert len(MIGRATIONS) >= NEWEST_RELEASED


def test_released_store_is_migrated_with_every_row(old: Path) -> None:
    before = old_rows(old)
    assert all(before.values())
    with SqliteStore(old) as store:
        assert store.has_checksums
        found = {table.name: list(store.rows(table)) for table in TABLES}
    for name, rows in before.items():
        width = len(rows[0])
        assert sorted(tuple(row[:width]) for row in found[name]) == rows, name
    connection = apsw.Connection(str(old))
    assert connection.pragma("user_version") == len(MIGRATIONS)
    assert connection.pragma("integrity_check") == "ok"


def test_second_opening_changes_nothing(old: Path) -> None:
    SqliteStore(old).close()
    before = old.read_bytes()
    SqliteStore(old).close()
    assert old.read_bytes() == before


def test_released_store_can_be_checked_and_read_without_migration(old: Path) -> None:
    before = old.read_bytes()
    check_unused(old)
    with StoreReader(old) as reader:
        assert len(list(reader.rows(EVENTS))) == len(old_rows(old)["events"])
    assert old.read_bytes() == before


def test_peer_goes_on_with_a_released_store(old: Path) -> None:
    before = old_rows(old)
    with SqliteStore(old) as store:
        gateway = opened(store)
        assert not gateway.restored
        status = gateway.status
        assert status.subscriptions == len(before["subscriptions"])
        assert status.deliveries_waiting == len(before["deliveries"]) + len(before["queued"])
        assert status.custody == len(before["custody"])
        assert status.dead_letters == len(before["dead_letters"])
        assert status.early_entries == len(before["early"])
        lags = {row[0]: row[4] - row[5] for row in before["consumers"]}
        assert {each.consumer: each.lag_events for each in status.outbound()} == lags
        assert any(lags.values())
        for row in store.rows(SUBSCRIPTIONS):
            answers = gateway.run(
                [PullDeliveries(row.owner, row.id), ListSubscriptions(row.owner)], 42.0
            ).answers
            assert isinstance(answers[0], Deliveries)
            unread = [each for each in before["deliveries"] if each[0] == row.id]
            assert [each.number for each in answers[0].deliveries] == [each[1] for each in unread]
        fields = {"id": "new", "class": "Report", "source": status.organisation}
        event = EventReader(status.federation.schema).from_fields(fields)
        (answer,) = gateway.run([Publish(event)], 43.0).answers
        assert isinstance(answer, Published), answer
    with SqliteStore(old) as store:
        assert opened(store).status.epoch == before["identity"][0][2] + 2
        for table in (DELIVERIES, QUEUED, CUSTODY, DEAD_LETTERS, EARLY, OWED):
            # Without the end of a lease, which the peer renews.
            found = {row[:4] for row in store.rows(table)}
            assert {row[:4] for row in before[table.name]} <= found, table.name
