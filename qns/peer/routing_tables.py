"""Routing tables: the tables of a peer as values, for operators and the demo.

Every table has at most as many rows as the caller wants, and says how many there are. The values
are copies: they do not change when the peer goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import nsmallest
from itertools import islice
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from qns.cbr.subscription import Subscription
from qns.d2q.printing import write_readable
from qns.d2q.schema import Schema
from qns.edl.custody import Custody
from qns.edl.inbound_stream import InboundStream
from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.link import Link, LinkState
from qns.edl.outbound_stream import OutboundStream
from qns.iil.layer import InternalInterfaceLayer

T = TypeVar("T")
K = TypeVar("K", str, tuple[str, int])
V = TypeVar("V")


class Rows(NamedTuple, Generic[T]):
    """The first rows of a table."""

    total: int
    rows: tuple[T, ...]


class MergeView(NamedTuple):
    """The merge subscription as one producer sees it."""

    producer: str
    version: int
    state: str
    """The state of the view: `in force` if the producer has this version."""
    pending: int
    """The number of subscriptions that are not stable yet at the producer."""
    elements: Rows[str]


class ExternalView(NamedTuple):
    """The view that one consumer has sent to this producer."""

    consumer: str
    version: int
    elements: Rows[str]


class StreamTo(NamedTuple):
    """The stream to one consumer."""

    consumer: str
    incarnation: int
    state: str
    number: int
    """The last number that was assigned."""
    acknowledged: int

    @property
    def lag_events(self) -> int:
        return self.number - self.acknowledged


class StreamFrom(NamedTuple):
    """The stream from one incarnation of a producer."""

    producer: str
    incarnation: int
    epoch: int
    last: int
    """The last number that was accepted, together with all numbers before it."""
    early: int
    """The number of entries that are held back."""
    gap: tuple[int, int] | None
    """The first and the last of the numbers that are missing before an early entry."""


class Promise(NamedTuple):
    """An event that this peer has promised to bring to a receiver."""

    receiver: str
    source: str
    event: str
    number: int
    """The number in the stream from the source to the receiver."""


class LinkRow(NamedTuple):
    """The connection to one other peer."""

    other: str
    state: str
    request: str
    """The kind of the request under way; empty if there is none."""
    parcels: int
    failures: int
    """Failed requests since the last answer."""
    next_try_s: float | None
    """Seconds until the next attempt; None if the link does not rest."""
    problem: str
    """Why the last request failed; empty after an answer."""


class RoutingTables(NamedTuple):
    merge: Rows[str]
    """The elements of the organisation's merge subscription."""
    views: Rows[MergeView]
    """The Merge Subscriptions Table."""
    external: Rows[ExternalView]
    """The External Merge Table."""
    streams_to: Rows[StreamTo]
    streams_from: Rows[StreamFrom]
    custody: Rows[Promise]
    links: Rows[LinkRow]


def routing_tables(
    iil: InternalInterfaceLayer, edl: ExternalDiffusionLayer, now: float, limit: int
) -> RoutingTables:
    """Returns at most `limit` rows of each table, and of the elements of each view."""
    producer, schema = edl.producer, iil.schema
    views = edl.consumer.merger.table.views
    external = {name: view for name, view in producer.table.views.items() if view}
    inbound = edl.consumer.streams
    return RoutingTables(
        _elements(edl.consumer.merger.merge_set, schema, limit),
        Rows(
            len(views),
            tuple(
                MergeView(
                    name,
                    view.version,
                    view.state.value,
                    iil.pending_at(name),
                    _elements(view.texts, schema, limit),
                )
                for name, view in _first(views, limit)
            ),
        ),
        Rows(
            len(external),
            tuple(
                ExternalView(
                    name,
                    producer.streams[name].version if name in producer.streams else 0,
                    _elements(elements.values(), schema, limit),
                )
                for name, elements in _first(external, limit)
            ),
        ),
        Rows(
            len(producer.streams),
            tuple(_stream_to(stream) for _, stream in _first(producer.streams, limit)),
        ),
        Rows(len(inbound), tuple(_stream_from(stream) for _, stream in _first(inbound, limit))),
        _promises(edl.forwarder.custody, limit),
        Rows(
            len(edl.forwarder.links),
            tuple(_link_row(link, now) for _, link in _first(edl.forwarder.links, limit)),
        ),
    )


def _first(table: Mapping[K, V], limit: int) -> list[tuple[K, V]]:
    """Returns the first entries in the order of their keys."""
    return nsmallest(limit, table.items(), key=itemgetter(0))


def _elements(elements: Collection[Subscription], schema: Schema, limit: int) -> Rows[str]:
    """Writes the first elements in the order of their classes; sorting all of them takes longer."""
    first = nsmallest(limit, elements, key=lambda each: (each.data_class, len(each.constraints)))
    return Rows(len(elements), tuple(sorted(write_readable(each, schema) for each in first)))


def _stream_to(stream: OutboundStream) -> StreamTo:
    return StreamTo(
        stream.consumer,
        stream.consumer_incarnation,
        stream.state.value,
        stream.number,
        stream.acknowledged,
    )


def _stream_from(stream: InboundStream) -> StreamFrom:
    return StreamFrom(
        stream.producer,
        stream.producer_incarnation,
        stream.epoch,
        stream.last,
        len(stream.early),
        None if stream.gap is None else (stream.last + 1, stream.gap),
    )


def _promises(custody: Custody, limit: int) -> Rows[Promise]:
    parcels = islice(custody.parcels.values(), limit)
    return Rows(
        len(custody),
        tuple(
            Promise(parcel.entry.receiver, *parcel.event, parcel.entry.number) for parcel in parcels
        ),
    )


def _link_row(link: Link, now: float) -> LinkRow:
    is_resting = link.state is LinkState.RESTING
    return LinkRow(
        link.other,
        link.state.value,
        "" if link.request is None else type(link.request).__name__,
        len(link.parcels) + len(link.refused_parcels),
        link.failures,
        max(0.0, link.rest_until - now) if is_resting else None,
        link.problem,
    )
