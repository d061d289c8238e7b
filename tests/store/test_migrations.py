"""Migrations create the tables of `qns.peer.tables`, and each step is atomic."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import apsw
import pytest

from qns.errors import StoreFailed
from qns.peer.tables import TABLES, Table
from qns.store.columns import layout_of
from qns.store.migrations import MIGRATIONS, Migration, migrate
from qns.store.sqlite import SqliteStore
from tests.store.processes import started
from tests.store.rows import content, in_place

NEXT = len(MIGRATIONS) + 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Returns the path of a closed store with one row."""
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.commit(in_place(1))
    return path


def opened(path: Path) -> apsw.Connection:
    return apsw.Connection(str(path))


def table_names(connection: apsw.Connection) -> set[str]:
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return {name for (name,) in found}


def test_migrated_store_has_exactly_the_tables_of_the_program(path: Path) -> None:
    assert table_names(opened(path)) == {table.name for table in TABLES}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_migrated_table_has_exactly_the_columns_of_its_row(path: Path, table: Table[Any]) -> None:
    found = [
        (name, kind, bool(not_null), key)
        for _, name, kind, not_null, _, key in opened(path).execute(
            "SELECT * FROM pragma_table_info(?)", (table.name,)
        )
    ]
    assert found == [
        (column.name, column.kind, not column.nullable, place if place <= table.key else 0)
        for place, column in enumerate(layout_of(table).columns, start=1)
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_is_strict(path: Path, table: Table[Any]) -> None:
    ((*_, strict),) = opened(path).execute(
        "SELECT * FROM pragma_table_list WHERE name = ?", (table.name,)
    )
    assert strict == 1


def test_migrations_are_numbered_from_one() -> None:
    assert [each.number for each in MIGRATIONS] == list(range(1, NEXT))


def test_store_of_the_newest_version_is_not_migrated_again(path: Path) -> None:
    before = path.read_bytes()
    with SqliteStore(path) as store:
        assert content(store)
    assert path.read_bytes() == before


def test_migration_brings_an_old_store_to_the_next_version(path: Path) -> None:
    connection = opened(path)
    step = Migration(NEXT, "a note", "ALTER TABLE counters ADD COLUMN note TEXT")
    migrate(connection, "here", (*MIGRATIONS, step))
    assert connection.pragma("user_version") == NEXT
    assert connection.execute("SELECT note, delivered FROM counters").fetchall() == [(None, 1)]


def test_store_of_a_newer_program_is_rejected_unchanged(path: Path) -> None:
    connection = opened(path)
    connection.pragma("user_version", 99)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreFailed, match="is a store of version 99") as caught:
        SqliteStore(path)
    assert "start the newer QNS" in caught.value.remedy
    assert path.read_bytes() == before


def test_failed_migration_leaves_the_previous_version(path: Path) -> None:
    connection = opened(path)
    bad = Migration(NEXT, "bad", "DROP TABLE counters; CREATE TABLE new (x); SELECT * FROM nowhere")
    with pytest.raises(apsw.SQLError):
        migrate(connection, "here", (*MIGRATIONS, bad))
    connection.close()
    assert_as_before(path)


def test_process_killed_during_a_migration_leaves_the_previous_version(path: Path) -> None:
    with started("migrate", path) as child:
        pass
    assert child.returncode == -signal.SIGKILL
    assert_as_before(path)


def test_store_is_created_after_an_interrupted_first_start(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    SqliteStore(path).close()
    connection = opened(path)
    for table in TABLES:
        connection.execute(f'DROP TABLE "{table.name}"')
    connection.pragma("user_version", 0)
    connection.close()
    with SqliteStore(path) as store:
        store.commit(in_place(1))
        assert content(store)


def assert_as_before(path: Path) -> None:
    with SqliteStore(path) as store:
        assert [each.delivered for each in content(store)["counters"]] == [1]
    connection = opened(path)
    assert connection.pragma("user_version") == NEXT - 1
    assert table_names(connection) == {table.name for table in TABLES}
