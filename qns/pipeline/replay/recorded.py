"""Recorded: the actions of users and the publications in the stores of a federation's peers.

Stores have them if the peers record their history (docs/history.md). The stores are only read. A
store that a running peer uses is refused, so that the peer is not disturbed: give a backup.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from qns.d2q.event_json import EventReader
from qns.d2q.schema import Schema
from qns.errors import DocumentError, FederationError
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.history.records import Record, read_record
from qns.iil.interpreter import interpret
from qns.peer.tables import DOCUMENT, HISTORY, IDENTITY, SUBSCRIPTIONS
from qns.pipeline.replay.workload_files import Change, Publication, row_place
from qns.store.reading import StoreReader, organisation_of


class Recorded(NamedTuple):
    document: Federation
    """The newest federation document in any of the stores."""
    changes: list[Change]
    publications: list[Publication]


def read_stores(files: list[Path]) -> Recorded:
    with ExitStack() as opened:
        stores: dict[str, tuple[Path, StoreReader]] = {}
        for file in files:
            store = opened.enter_context(StoreReader(file))
            stores[organisation_of(store.rows(IDENTITY), file, stores)] = file, store
        document = _document(list(stores.values()))
        histories = [
            _PeerHistory(name, file, store, document.schema)
            for name, (file, store) in stores.items()
        ]
    return Recorded(
        document,
        [change for each in histories for change in each.changes],
        [publication for each in histories for publication in each.publications],
    )


def _document(stores: list[tuple[Path, StoreReader]]) -> Federation:
    found = [
        read_federation(max(store.rows(DOCUMENT), key=lambda row: row.version).xml)
        for _, store in stores
    ]
    newest = max(found, key=lambda each: each.version)
    for each, (file, _) in zip(found, stores, strict=True):
        if each.name != newest.name:
            raise FederationError(
                f"a store of another federation, {each.name}",
                place=str(file),
                remedy=f"give those of {newest.name}",
            )
    return newest


class _PeerHistory:
    """The changes and publications that one peer recorded."""

    def __init__(self, organisation: str, file: Path, store: StoreReader, schema: Schema) -> None:
        self.changes: list[Change] = []
        self.publications: list[Publication] = []
        self._organisation = organisation
        self._schema = schema
        self._events = EventReader(schema)
        self._live: set[str] = set()
        self._begun: set[str] = set()
        now = first = None
        for number, row in enumerate(store.rows(HISTORY)):
            record = read_record(row.record)
            time_us = int(record["t"] * 1_000_000)
            now = time_us if now is None else max(now, time_us)  # a clock may be set back
            first = now if first is None else first
            self._take(now, record, row_place(f"{file}: history", number))
        if first is None:
            raise DocumentError(
                f"{organisation} has recorded nothing",
                place=str(file),
                remedy="write history = true into its configuration",
            )
        earlier = [
            Change(
                first, organisation, row.id, interpret(row.reading or row.text, schema), str(file)
            )
            for row in sorted(store.rows(SUBSCRIPTIONS), key=lambda row: row.created)
            if row.id not in self._begun
        ]
        self.changes[:0] = earlier  # they began before the first record

    def _take(self, at: int, record: Record, place: str) -> None:
        do = record["do"]
        if do == "pub":
            event = self._events.from_fields(record["event"])
            self.publications.append(Publication(at, event, place))
            return
        if do not in ("sub", "usub"):
            return
        id = record["sub"]
        if do == "sub":
            self._live.add(id)
            self._begun.add(id)
            wanted = interpret(record["text"], self._schema)
            self.changes.append(Change(at, self._organisation, id, wanted, place))
        elif id in self._live:  # a subscription that began before the first record is ignored
            self._live.remove(id)
            self.changes.append(Change(at, self._organisation, id, None, place))
