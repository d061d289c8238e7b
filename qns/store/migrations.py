"""Migrations: the steps that create the tables of a store and bring old stores up to date.

`PRAGMA user_version` is the number of steps that a store has seen. Each step is one transaction, so
a crash in the middle leaves the previous version. Never change a released step; add another one.
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


# Tables with small rows keep them in the tree of the primary key (WITHOUT ROWID). Tables with
# documents have a rowid instead, which keeps the tree of the primary key small.
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

_OPERATION: Final = """
-- A subscription keeps its meaning when labels change: its text without labels.
ALTER TABLE subscriptions ADD COLUMN reading TEXT NOT NULL DEFAULT '';

-- Deliveries that the operator's limit dropped, as ranges of numbers.
CREATE TABLE dropped (
    subscription TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (subscription, first)
) STRICT, WITHOUT ROWID;

-- Owed rows that are only on the disk are found by their event.
CREATE INDEX owed_by_event ON owed (event);

-- Whether a fence has set the stream back; until now only those were kept.
ALTER TABLE inbound_fences ADD COLUMN sets_back INTEGER NOT NULL DEFAULT 1;

-- The age of unread deliveries: when each was made.
ALTER TABLE deliveries ADD COLUMN delivered_at REAL NOT NULL DEFAULT 0;
"""

_NUMBER_SERIES: Final = """
-- Where the delivery numbers of each start begin. Earlier numbers have no series.
CREATE TABLE number_series (
    subscription TEXT NOT NULL,
    first INTEGER NOT NULL,
    series TEXT NOT NULL,
    PRIMARY KEY (subscription, first)
) STRICT, WITHOUT ROWID;
"""

_TURNS: Final = """
-- How many turns were committed: the marks outside the store tell whether some were lost.
ALTER TABLE identity ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
"""

_QUEUES_ON_DISK: Final = """
-- What users have not read and is only on the disk is found by its event.
CREATE INDEX deliveries_by_event ON deliveries (event);
CREATE INDEX queued_by_event ON queued (event);
CREATE INDEX served_by_event ON served (event);
"""

_REACHED: Final = """
-- How far a stream had come before it was set back: what is sent again was delivered before.
ALTER TABLE inbound ADD COLUMN reached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbound ADD COLUMN published_in INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inbound ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;

CREATE TABLE accepted (
    producer TEXT NOT NULL,
    producer_joined INTEGER NOT NULL,
    published_in INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (producer, producer_joined, published_in)
) STRICT, WITHOUT ROWID;
"""

_FORMER_SEALS: Final = """
-- The seal certificates of organisations that have left: what they owe is still checked.
CREATE TABLE former_seals (
    organisation TEXT NOT NULL,
    number INTEGER NOT NULL,
    certificate TEXT NOT NULL,
    PRIMARY KEY (organisation, number)
) STRICT, WITHOUT ROWID;
"""

_OWED_BYTES: Final = """
-- How many bytes are owed to a consumer is known without reading the events.
ALTER TABLE owed ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
"""

_EVIDENCE: Final = """
-- What proves that producers have sent the accepted events.
CREATE TABLE evidence (
    number INTEGER NOT NULL,
    root INTEGER NOT NULL,
    event TEXT NOT NULL,
    accepted_at REAL NOT NULL,
    leaf BLOB NOT NULL,
    proof BLOB NOT NULL,
    xml BLOB NOT NULL,
    PRIMARY KEY (number)
) STRICT;
CREATE INDEX evidence_by_event ON evidence (event);

CREATE TABLE sealed_roots (
    number INTEGER NOT NULL,
    source TEXT NOT NULL,
    kept_at REAL NOT NULL,
    root BLOB NOT NULL,
    seal BLOB NOT NULL,
    document INTEGER NOT NULL,
    timestamp INTEGER NOT NULL,
    timestamp_proof BLOB NOT NULL,
    PRIMARY KEY (number)
) STRICT;
CREATE INDEX sealed_roots_by_document ON sealed_roots (document);

CREATE TABLE timestamps (
    number INTEGER NOT NULL,
    last_root INTEGER NOT NULL,
    root BLOB NOT NULL,
    response BLOB NOT NULL,
    PRIMARY KEY (number)
) STRICT;

CREATE TABLE evidence_documents (
    version INTEGER NOT NULL,
    xml BLOB NOT NULL,
    PRIMARY KEY (version)
) STRICT;

-- The last version of the document that named the certificate of an organisation that has left.
ALTER TABLE former_seals ADD COLUMN document INTEGER NOT NULL DEFAULT 0;
"""

_NORMAL_FORMS: Final = """
-- The normal form of a subscription, so that a start does not have to read its text again.
ALTER TABLE subscriptions ADD COLUMN normal TEXT NOT NULL DEFAULT '';
"""

MIGRATIONS: Final = (
    Migration(1, "the first tables", _FIRST_TABLES),
    Migration(2, "the record of what happened", _HISTORY),
    Migration(3, "what operators need", _OPERATION),
    Migration(4, "which start numbered a delivery", _NUMBER_SERIES),
    Migration(5, "how many turns were committed", _TURNS),
    Migration(6, "queues of users on the disk", _QUEUES_ON_DISK),
    Migration(7, "how far a stream had come before it was set back", _REACHED),
    Migration(8, "seal certificates of organisations that have left", _FORMER_SEALS),
    Migration(9, "the bytes of what is owed", _OWED_BYTES),
    Migration(10, "evidence of accepted events", _EVIDENCE),
    Migration(11, "normal forms of subscriptions", _NORMAL_FORMS),
)


def migrate(
    connection: apsw.Connection, place: str, migrations: tuple[Migration, ...] = MIGRATIONS
) -> None:
    """Brings the store to the newest version of this program."""
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
    """Returns the store's version; raises StoreFailed for a version newer than this program."""
    version: int = connection.pragma("user_version")
    if not 0 <= version <= len(migrations):
        raise StoreFailed(
            f"is a store of version {version}, and this QNS supports {len(migrations)} at most",
            place=place,
            remedy="start the newer QNS that wrote it, or restore a backup from before",
        )
    return version
