"""Real workload: subscriptions and publications that really happened, from files or from stores.

`read` returns one value that can be sent to executors, like a Scenario; `mapped` is the same
history with another mapping. Members of a delivery group count as separate users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from qns.d2q.event_xml import write_event
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.errors import DocumentError, DuplicateId, FederationError, NameNotKnown, ValueRefused
from qns.federation.document import Federation
from qns.federation.document_xml import MAX_FEDERATION_BYTES, read_federation
from qns.federation.shipped import FEDERATIONS
from qns.pipeline.replay.recorded import read_stores
from qns.pipeline.replay.workload_files import (
    Change,
    Publication,
    columns_of,
    is_parquet,
    parts_of,
    read_changes,
    read_publications,
)
from qns.pipeline.workload.generator import Operation
from qns.pipeline.workload.scenario import FEWEST_ORGANISATIONS, MOST_ORGANISATIONS, Hosts

FULL: Final = "full"
IN_FORCE: Final = "in force"
"""The name of the mapping of the newest federation document in the stores."""


@dataclass(frozen=True, slots=True)
class RealWorkload:
    schema: Schema
    hosts: Hosts
    mapping: str
    """The name of the mapping in reports."""
    changes: tuple[Change, ...]
    publications: tuple[Publication, ...]
    """Both are in the order of time; changes come before publications of the same time."""
    digest: str
    """The digest of all changes and publications."""

    @property
    def organisations(self) -> tuple[str, ...]:
        return tuple(self.hosts)

    @property
    def arrivals(self) -> Counter[str]:
        """The number of subscriptions of each organisation."""
        return Counter(each.organisation for each in self.changes if each.subscription)

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The numbers of subscriptions of one organisation at which counts are taken."""
        return steps(max(self.arrivals.values(), default=0))

    @property
    def churn(self) -> float:
        """The number of unsubscriptions per subscription."""
        gone = sum(1 for each in self.changes if each.subscription is None)
        return gone / (len(self.changes) - gone) if gone else 0.0

    @property
    def id(self) -> str:
        parts = (self.digest, self.mapping, sorted((name, *of) for name, of in self.hosts.items()))
        return sha256(repr(parts).encode()).hexdigest()[:16]

    def columns(self) -> dict[str, Any]:
        """The columns that every row of every table has."""
        return {
            "scenario": self.id,
            "mapping": self.mapping,
            "organisations": len(self.hosts),
            "churn": self.churn,
            "seed": 0,
        }

    def described(self) -> dict[str, object]:
        """A description for reports, like `Scenario.described`."""
        return {
            "id": self.id,
            "schema": {
                path: {each.name: each.domain.name for each in self.schema.properties[path]}
                for path in self.schema.classes
            },
            "hosts": {name: list(classes) for name, classes in self.hosts.items()},
            "mapping": self.mapping,
            "seed": 0,
            "checkpoints": list(self.checkpoints),
            "churn": self.churn,
            "changes": len(self.changes),
            "publications": len(self.publications),
        }

    def operations(self, organisation: str) -> Iterator[Operation]:
        """The subscriptions and unsubscriptions of its users, in order."""
        arrived = 0
        for change in self.changes:
            if change.organisation == organisation:
                arrived += change.subscription is not None
                yield Operation(arrived, change.id, change.subscription)

    def mapped(self, mapping: str) -> RealWorkload:
        """The same history with another mapping; `hosts_in` lists the possible ones."""
        return replace(
            self, mapping=_called(mapping), hosts=hosts_in(mapping, self.schema, self.hosts)
        ).checked()

    def checked(self) -> RealWorkload:
        """Returns itself if all organisations exist and publish only classes that they host."""
        if not FEWEST_ORGANISATIONS <= len(self.hosts) <= MOST_ORGANISATIONS:
            raise ValueRefused(
                f"{len(self.hosts):,} organisations",
                remedy=f"from {FEWEST_ORGANISATIONS} to {MOST_ORGANISATIONS}; a federation "
                "document as the mapping can name those without subscriptions and events",
            )
        for change in self.changes:
            if change.organisation not in self.hosts:
                raise NameNotKnown(
                    "organisation", change.organisation, self.hosts, place=change.place
                )
        for _, event, place in self.publications:
            if event.source not in self.hosts:
                raise NameNotKnown("organisation", event.source, self.hosts, place=place)
            if event.data_class not in self.hosts[event.source]:
                raise ValueRefused(
                    f"{event.source} publishes {event.data_class}, which it does not host "
                    f"in the mapping {self.mapping}",
                    place=place,
                    remedy="leave the event out, or give a mapping in which it does",
                )
        return self


def read(
    paths: Sequence[str | Path], schema: Schema | None = None, mapping: str | None = None
) -> RealWorkload:
    """Reads SUBS and EVENTS files, which need a schema, or the stores of peers.

    Without a mapping, files are read as if all organisations hosted all classes, and stores with
    the mapping of their federation document.
    """
    files = list(map(Path, paths))
    for file in files:
        if not file.exists():
            raise DocumentError("there is no such file", place=str(file))
    from_files = [is_parquet(file) for file in files]
    if not files or any(from_files) != all(from_files):
        raise DocumentError(
            "no subscriptions" if not files else "files and stores of peers together",
            remedy="give EVENTS.parquet and SUBS.parquet, or the stores of peers",
        )
    if not from_files[0]:
        return _from_stores(files, schema, mapping)
    if schema is None:
        raise DocumentError("files of a workload have no schema", remedy="give --schema")
    return _from_files(files, schema, mapping or FULL)


def steps(last: int) -> tuple[int, ...]:
    """1, 2, 5, 10, … below the last, and the last."""
    steps_ = {digit * 10**power for power in range(len(str(last))) for digit in (1, 2, 5)}
    return tuple(sorted({each for each in steps_ if each < last} | ({last} if last else set())))


# -- mappings -------------------------------------------------------------------------------------


def hosts_in(mapping: str, schema: Schema, organisations: Iterable[str]) -> Hosts:
    """The hosts of a mapping: `full`, a shipped federation, or an .xml federation document."""
    if mapping == FULL:
        return dict.fromkeys(sorted(organisations), schema.classes)
    shipped = FEDERATIONS.get(mapping.casefold())
    if shipped is None and not mapping.endswith(".xml"):
        raise NameNotKnown("mapping", mapping, (FULL, *FEDERATIONS, "an .xml file"))
    return _hosts(shipped or _document(Path(mapping)), schema, mapping)


def _hosts(document: Federation, schema: Schema, place: str) -> Hosts:
    if document.schema != schema:
        raise FederationError(
            f"the federation {document.name} has another schema than the workload", place=place
        )
    return {
        name: tuple(path for path in schema.classes if path in each.hosts)
        for name, each in document.organisations.items()
    }


def _document(path: Path) -> Federation:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FEDERATION_BYTES + 1)
    except OSError as problem:
        raise DocumentError(f"cannot be read: {problem.strerror}", place=str(path)) from None
    try:
        return read_federation(data)
    except (DocumentError, FederationError) as problem:
        raise problem.at(str(path)) from None


def _called(mapping: str) -> str:
    """The name of a mapping in reports: that of a file without its folders."""
    return Path(mapping).stem if mapping.endswith(".xml") else mapping


# -- from files -----------------------------------------------------------------------------------


def _from_files(files: list[Path], schema: Schema, mapping: str) -> RealWorkload:
    changes: list[Change] = []
    publications: list[Publication] = []
    clocks: dict[bool, Path] = {}
    for file in files:
        columns = columns_of(file).names
        if "subscription" in columns:
            found = read_changes(file, schema)
            changes += found.rows
        elif "event" in columns:
            found = read_publications(file, schema)
            publications += found.rows
        else:
            raise DocumentError(
                "neither subscriptions nor events: there is no column 'subscription' or 'event'",
                place=str(parts_of(file)[0]),
                remedy="qns pipeline generate writes both kinds, to look at",
            )
        clocks[found.has_clock] = file
    if len(clocks) > 1:
        raise ValueRefused(
            f"times here, and only an order in {clocks[False]}",
            place=str(clocks[True]),
            remedy="give 'at' the same type in all files",
        )
    names = {each.organisation for each in changes} | {each.event.source for each in publications}
    hosts = hosts_in(mapping, schema, names)
    return _workload(schema, hosts, _called(mapping), changes, publications)


def _workload(
    schema: Schema,
    hosts: Hosts,
    mapping: str,
    changes: list[Change],
    publications: list[Publication],
) -> RealWorkload:
    changes.sort(key=lambda each: each.at)
    publications.sort(key=lambda each: each.at)
    _check_ids(changes)
    digest = sha256()
    for change in changes:
        wanted = change.subscription
        text = "" if wanted is None else write_readable(wanted, schema)
        digest.update(repr((change.at, change.organisation, change.id, text)).encode())
    for at, event, _ in publications:
        digest.update(repr(at).encode() + write_event(event, schema))
    return RealWorkload(
        schema, hosts, mapping, tuple(changes), tuple(publications), digest.hexdigest()
    ).checked()


def _check_ids(changes: list[Change]) -> None:
    """Checks that every unsubscription ends a live subscription, and that live ids are unique."""
    live: dict[tuple[str, str], str] = {}
    for change in changes:
        key = change.organisation, change.id
        if change.subscription is None:
            if key not in live:
                raise NameNotKnown(
                    "subscription",
                    change.id,
                    (),
                    place=change.place,
                    problem=f"{change.id} of {change.organisation} ends and has not begun",
                )
            del live[key]
        elif key in live:
            raise DuplicateId(
                f"{change.id} of {change.organisation} begins a second time, after {live[key]}",
                place=change.place,
                remedy="end it first, or choose another id",
            )
        else:
            live[key] = change.place


# -- from the stores of peers ---------------------------------------------------------------------


def _from_stores(files: list[Path], schema: Schema | None, mapping: str | None) -> RealWorkload:
    recorded = read_stores(files)
    document = recorded.document
    if schema is not None and schema != document.schema:
        raise FederationError(
            f"the federation {document.name} has another schema", remedy="leave --schema out"
        )
    if mapping is None:
        hosts = _hosts(document, document.schema, document.name)
        hosts = with_published(hosts, recorded.publications)
    else:
        hosts = hosts_in(mapping, document.schema, document.organisations)
    called = IN_FORCE if mapping is None else _called(mapping)
    return _workload(document.schema, hosts, called, recorded.changes, recorded.publications)


def with_published(hosts: Hosts, publications: Iterable[Publication]) -> Hosts:
    """Adds the classes that an organisation published, because hosting may have changed."""
    published: dict[str, set[str]] = {name: set(classes) for name, classes in hosts.items()}
    for _, event, _ in publications:
        if event.source in published:
            published[event.source].add(event.data_class)
    return {name: tuple(sorted(classes)) for name, classes in published.items()}
