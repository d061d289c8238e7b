"""Reading a store without changing it, also one of an earlier version."""

from __future__ import annotations

from pathlib import Path

import apsw

from qns.peer.tables import SUBSCRIPTIONS, SubscriptionRow
from qns.store.layout import UNCHECKED_ID
from qns.store.migrations import MIGRATIONS, migrate
from qns.store.reading import StoreReader
from qns.store.sqlite import SqliteStore


def test_store_of_the_first_release_is_read_with_defaults_for_later_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", UNCHECKED_ID)
    migrate(connection, str(path), MIGRATIONS[:2])
    connection.execute("INSERT INTO subscriptions VALUES ('s', 'anna', 'A', '', 9e999, 0, 1)")
    connection.close()
    with StoreReader(path) as store:
        (row,) = store.rows(SUBSCRIPTIONS)
    assert row == SubscriptionRow("s", "anna", "A", "", float("inf"), 0, 1, "")
    migrated = SqliteStore(path)
    assert list(migrated.rows(SUBSCRIPTIONS)) == [row]
    migrated.close()
