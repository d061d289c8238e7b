"""Migrations: how a store's tables came to be what they are, step by step.

`PRAGMA user_version` tells how many steps a store has seen. Each step is one transaction: a crash
in the middle leaves the version before it. A step that was released is never changed; add another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw

from qns.errors import StoreFailed


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    purpose: str
    sql: str


# Small rows live in the tree of their key (WITHOUT ROWID). Where a row carries a document, a number
# keeps the tree of keys small; the rows lie elsewhere.
_FIRST_TABLES: Final = """
CREATE TABLE identity (
    organisation TEXT NOT NULL,
    joined INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    nonce TEXT NOT NULL,
    published INTEGER NOT NULL,
    PRIMARY KEY (organisation)
) STRICT, WITHOUT ROWID;

CREATE TABLE document (
    version INTEGER NOT NULL,
    xml BLOB NOT NULL,
    PRIMARY KEY (version)
) STRICT;

CREATE TABLE events (
    source TEXT NOT NULL,
    id TEXT NOT NULL,
    joined INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    expires_at REAL NOT NULL,
    taken INTEGER NOT NULL,
    xml BLOB NOT NULL,
    PRIMARY KEY (source, id)
) STRICT;

CREATE TABLE publications (
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE subscriptions (
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    text TEXT NOT NULL,
    delivery_group TEXT NOT NULL,
    expires_at REAL NOT NULL,
    paused INTEGER NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
    subscription TEXT NOT NULL,
    delivered INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    PRIMARY KEY (subscription)
) STRICT, WITHOUT ROWID;

CREATE TABLE waiting (
    subscription TEXT NOT NULL,
    producer TEXT NOT NULL,
    version INTEGER NOT NULL,
    until INTEGER,
    late INTEGER NOT NULL,
    PRIMARY KEY (subscription, producer)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
    subscription TEXT NOT NULL,
    number INTEGER NOT NULL,
    source TEXT NOT NULL,
    event TEXT NOT NULL,
    lease_until REAL NOT NULL,
    PRIMARY KEY (subscription, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE queued (
    subscription TEXT NOT NULL,
    "order" INTEGER NOT NULL,
    source TEXT NOT NULL,
    event TEXT NOT NULL,
    held INTEGER NOT NULL,
    PRIMARY KEY (subscription, "order")
) STRICT, WITHOUT ROWID;

CREATE TABLE served (
    delivery_group TEXT NOT NULL,
    source TEXT NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (delivery_group, source, event)
) STRICT, WITHOUT ROWID;

CREATE TABLE views (
    producer TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (producer)
) STRICT, WITHOUT ROWID;

CREATE TABLE inbound (
    producer TEXT NOT NULL,
    producer_joined INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (producer, producer_joined)
) STRICT, WITHOUT ROWID;

CREATE TABLE inbound_fences (
    producer TEXT NOT NULL,
    producer_joined INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    first INTEGER NOT NULL,
    PRIMARY KEY (producer, producer_joined, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE early (
    producer TEXT NOT NULL,
    producer_joined INTEGER NOT NULL,
    number INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (producer, producer_joined, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE custody (
    id INTEGER NOT NULL,
    receiver TEXT NOT NULL,
    source TEXT NOT NULL,
    event TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (id)
) STRICT;

CREATE TABLE consumers (
    consumer TEXT NOT NULL,
    joined INTEGER NOT NULL,
    view_epoch INTEGER NOT NULL,
    version INTEGER NOT NULL,
    number INTEGER NOT NULL,
    acknowledged INTEGER NOT NULL,
    confirmed INTEGER NOT NULL,
    consumer_epoch INTEGER NOT NULL,
    PRIMARY KEY (consumer)
) STRICT, WITHOUT ROWID;

CREATE TABLE external (
    consumer TEXT NOT NULL,
    element TEXT NOT NULL,
    PRIMARY KEY (consumer, element)
) STRICT, WITHOUT ROWID;

CREATE TABLE fences (
    consumer TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    first INTEGER NOT NULL,
    PRIMARY KEY (consumer, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE owed (
    consumer TEXT NOT NULL,
    number INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (consumer, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    id INTEGER NOT NULL,
    at REAL NOT NULL,
    receiver TEXT NOT NULL,
    source TEXT NOT NULL,
    event TEXT NOT NULL,
    entry TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (id)
) STRICT;
"""

_HISTORY: Final = """
CREATE TABLE history (
    epoch INTEGER NOT NULL,
    number INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (epoch, number)
) STRICT, WITHOUT ROWID;
"""

MIGRATIONS: Final = (
    Migration(1, "the first tables", _FIRST_TABLES),
    Migration(2, "the record of what happened", _HISTORY),
)


def migrate(
    connection: apsw.Connection, place: str, migrations: tuple[Migration, ...] = MIGRATIONS
) -> None:
    """Brings the store to the newest version that this program knows."""
    version = checked_version(connection, place, migrations)
    for migration in migrations[version:]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(migration.sql)
            connection.pragma("user_version", migration.number)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def checked_version(
    connection: apsw.Connection, place: str, migrations: tuple[Migration, ...] = MIGRATIONS
) -> int:
    """The store's version; one from the future is refused."""
    version: int = connection.pragma("user_version")
    if not 0 <= version <= len(migrations):
        raise StoreFailed(
            f"is a store of version {version}, and this QNS knows {len(migrations)} at most",
            place=place,
            remedy="start the newer QNS that wrote it, or put back a backup from before",
        )
    return version
