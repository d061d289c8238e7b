"""`qns history`: gathers the records of peers into one history for `qns verify`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from qns.cli.inputs import Unreadable
from qns.cli.options import Commands, new_command
from qns.cli.outputs import save
from qns.cli.pending_work import pending_work
from qns.cli.problems import visible
from qns.cli.screen import Screen
from qns.d2q.schema_xml import write_schema
from qns.errors import DocumentError, FederationError
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.history.gathering import EventKey, gathered
from qns.history.records import Record, new_record, read_record, write_record
from qns.peer.opening import document_of
from qns.peer.ports import Store
from qns.peer.tables import HISTORY, IDENTITY
from qns.store.reading import organisation_of
from qns.store.sqlite import SqliteStore

_DESCRIPTION = """
Gathers the records of the peers of a federation (history = true in their configuration) and
writes them as one history in the order of time: the schema, the members, then the records of
each peer. If clocks differ, the records of an event are moved after its publication; the
clocks should agree as well as possible. If the stores of all members are given and nothing is
under way between them, the history ends with a moment of calm, at which qns verify judges
whether every event was delivered. STORE is the file of a peer that does not run, or a backup
(qns peer backup) of one that runs.

  qns history INPS.db INAIL.db CoC.db --out history.jsonl
  qns history *.db | qns verify -
"""
_EXAMPLES = ("qns history --help",)
_PUBLISHED = '"pub"'
"""A part of the text of every publication record, and of few other records."""


def add(commands: Commands) -> ArgumentParser:
    parser = new_command(
        commands, "history", "gather the records of peers, for verify", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument("stores", metavar="STORE", nargs="+", help="the store of a peer")
    parser.add_argument("-o", "--out", metavar="FILE", help="write to this file")
    parser.set_defaults(run=run)
    return parser


def run(args: Namespace, _: Screen) -> int:
    with ExitStack() as opened:
        stores = open_stores(args.stores, opened)
        federation = federation_of(stores)
        _check_recorded(stores)
        lines = map(write_record, history_of(federation, stores))
        if args.out:
            save(args.out, "".join(lines).encode("utf-8"))
        else:
            sys.stdout.writelines(lines)
        reason = pending_work(federation, stores)
    if reason is not None:
        sys.stderr.write(f"the history does not end in calm: {visible(reason)}\n")
    missing = sorted(federation.organisations.keys() - stores.keys())
    if missing:
        sys.stderr.write(
            f"without the stores of all members ({visible(', '.join(missing))} missing), qns "
            "verify takes events that were published there for events that nobody has published\n"
        )
    return 0


def open_stores(paths: Iterable[str | Path], opened: ExitStack) -> dict[str, Store]:
    """Returns organisation -> store. The stores are closed with `opened`."""
    stores: dict[str, Store] = {}
    for path in paths:
        if not Path(path).is_file():
            raise Unreadable("cannot be read: there is no such file", place=str(path))
        store = opened.enter_context(SqliteStore(path))
        stores[organisation_of(store.rows(IDENTITY), path, stores)] = store
    return stores


def _check_recorded(stores: Mapping[str, Store]) -> None:
    for name, store in stores.items():
        if next(iter(store.rows(HISTORY)), None) is None:
            raise DocumentError(
                f"{name} has recorded nothing",
                remedy="write history = true into its configuration",
            )


def federation_of(stores: Mapping[str, Store]) -> Federation:
    """Returns the newest federation document of the stores."""
    found = [read_federation(xml) for store in stores.values() if (xml := document_of(store))]
    names = sorted({each.name for each in found})
    if len(names) > 1:
        raise FederationError(
            f"stores of several federations: {', '.join(names)}", remedy="give those of one"
        )
    return max(found, key=lambda each: each.version)


def history_of(
    federation: Federation, stores: Mapping[str, Store], between: Iterable[Record] = ()
) -> Iterator[Record]:
    """Yields one history. `between` are further records in order of time, as moments of calm."""
    streams = [*map(_recorded, stores.values()), iter(between)]
    records = gathered(streams, _published(stores))
    first = next(records, None)
    now = 0.0 if first is None else first[0]
    yield new_record("schema", now, xml=write_schema(federation.schema).decode("utf-8"))
    for name, organisation in federation.organisations.items():
        yield new_record("join", now, name, joined=organisation.incarnation)
    for t, record in chain(() if first is None else (first,), records):
        now = t
        yield record
    if pending_work(federation, stores) is None:
        yield new_record("calm", now)


def _recorded(store: Store) -> Iterator[Record]:
    return (read_record(row.record) for row in store.rows(HISTORY))


def _published(stores: Mapping[str, Store]) -> dict[EventKey, int]:
    """Returns the events whose publication is recorded, with the epoch of the first one."""
    found: dict[EventKey, int] = {}
    for name, store in stores.items():
        for row in store.rows(HISTORY):
            if _PUBLISHED in row.record and (record := read_record(row.record))["do"] == "pub":
                found.setdefault((name, record["event"]["id"]), record["epoch"])
    return found
