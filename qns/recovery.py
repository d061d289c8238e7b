"""Recovery: a peer as its store remembers it, from the rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qns.d2q.event_xml import read_event
from qns.edl.consumer import Consumer, Inward
from qns.edl.custody import Custody
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.external_table import ExternalMergeTable
from qns.edl.forwarder import Forwarder
from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.membership import Membership
from qns.edl.merger import Merger
from qns.edl.messages import Fence
from qns.edl.outbound import OutboundStream
from qns.edl.producer import Producer
from qns.edl.tree_builder import TreeBuilder
from qns.errors import StoreFailed
from qns.event_log import EventLog, KnownEvent
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.iil.interpreter import interpret
from qns.iil.layer import InternalInterfaceLayer
from qns.peer import Peer
from qns.ports import Index, Store
from qns.publications import Publications
from qns.tables import (
    CONSUMERS,
    COUNTERS,
    CUSTODY,
    DEAD_LETTERS,
    DELIVERIES,
    DOCUMENT,
    EARLY,
    EVENTS,
    EXTERNAL,
    FENCES,
    IDENTITY,
    INBOUND,
    INBOUND_FENCES,
    OWED,
    PUBLICATIONS,
    QUEUED,
    SERVED,
    SUBSCRIPTIONS,
    VIEWS,
    WAITING,
    IdentityRow,
)
from qns.tuning import Tuning

MakeIndex = Callable[[], Index[Any]]


@dataclass(frozen=True, slots=True)
class Settings:
    organisation: str
    tuning: Tuning
    index: MakeIndex
    recording: bool = False
    """Whether the store keeps the record of what happened."""


def identity_of(store: Store, organisation: str) -> IdentityRow | None:
    """Who the store belongs to; None if nobody has used it yet."""
    for row in store.rows(IDENTITY):
        if row.organisation != organisation:
            raise StoreFailed(
                f"this is the store of {row.organisation}, not of {organisation}",
                remedy="give each organisation a store of its own",
            )
        return row
    return None


def document_of(store: Store) -> bytes | None:
    newest = max(store.rows(DOCUMENT), key=lambda row: row.version, default=None)
    return None if newest is None else newest.xml


def recover(settings: Settings, store: Store, identity: IdentityRow, document: bytes) -> Peer:
    """The peer in the state of its last commit, with the epoch that `identity` begins."""
    federation = read_federation(document)
    log = EventLog()
    for event in store.rows(EVENTS):
        log.recover(
            KnownEvent(
                read_event(event.xml, federation.schema),
                event.xml,
                (event.joined, event.epoch, event.sequence),
                event.expires_at,
                bool(event.taken),
            )
        )
    iil = InternalInterfaceLayer.of(federation.schema, log, settings.tuning, settings.index())
    edl = _external(settings, identity, federation, document, log)
    publications = Publications(settings.tuning.publications_remembered)
    peer = Peer(identity, federation, settings.tuning, log, iil, edl, publications)
    stability = iil.stability
    edl.consumer.inward = Inward(
        *(iil.offer, iil.offer_later, iil.offer_now),
        *(peer.advanced, stability.confirm, peer.rewound),
        stability.waits_for,
    )
    _recover_internal(store, iil, edl)
    _recover_consumer(store, edl, federation)
    _recover_producer(store, edl)
    for publication in sorted(store.rows(PUBLICATIONS), key=lambda row: row.sequence):
        peer.publications.recover(publication)
    return peer


def _external(
    settings: Settings,
    identity: IdentityRow,
    federation: Federation,
    document: bytes,
    log: EventLog,
) -> ExternalDiffusionLayer:
    me, joined, epoch = identity.organisation, identity.joined, identity.epoch
    schema, tuning = federation.schema, settings.tuning
    membership = Membership(me, epoch)
    forwarder = Forwarder(me, log, membership, tuning, Custody(log))
    table = ExternalMergeTable(schema, ExternalMatcher(settings.index()))
    trees = TreeBuilder(me, membership)
    trees.follow({name: each.capability for name, each in federation.organisations.items()})
    producer = Producer(me, joined, epoch, log, tuning, table, trees, forwarder)
    consumer = Consumer(
        *(me, joined, epoch, log, tuning, schema, Merger(schema), forwarder),
        *(Inward.deaf(), federation),
    )
    return ExternalDiffusionLayer(
        me, epoch, tuning, membership, producer, consumer, forwarder, document
    )


def _recover_internal(
    store: Store, iil: InternalInterfaceLayer, edl: ExternalDiffusionLayer
) -> None:
    for row in sorted(store.rows(SUBSCRIPTIONS), key=lambda row: row.created):
        subscription = interpret(row.text, iil.schema)
        iil.table.recover(row, subscription)
        edl.consumer.merger.order.subscribe(row.id, subscription)
    for counter in store.rows(COUNTERS):
        iil.table.recover_counters(counter)
    for waiting in store.rows(WAITING):
        iil.stability.recover(waiting)
    for delivery in store.rows(DELIVERIES):
        iil.dispatcher.recover_delivery(delivery)
    for queued in store.rows(QUEUED):
        iil.dispatcher.recover_queued(queued)
    for served in store.rows(SERVED):
        iil.dispatcher.recover_served(served)


def _recover_consumer(store: Store, edl: ExternalDiffusionLayer, federation: Federation) -> None:
    consumer = edl.consumer
    consumer.merger.recover(store.rows(VIEWS), federation)
    for row in store.rows(INBOUND):
        stream = consumer.stream(row.producer, row.producer_joined)
        stream.epoch, stream.last = row.epoch, row.last
    for fence in store.rows(INBOUND_FENCES):
        consumer.stream(fence.producer, fence.producer_joined).fences[fence.epoch] = fence.first
    for early in store.rows(EARLY):
        consumer.stream(early.producer, early.producer_joined).early[early.number] = early
        consumer.log.hold((early.producer, early.event))
    for custody in store.rows(CUSTODY):
        parcel = edl.forwarder.custody.recover(custody)
        edl.forwarder.link(custody.receiver).parcels[parcel.key] = parcel
    for letter in store.rows(DEAD_LETTERS):
        edl.forwarder.custody.recover_letter(letter)


def _recover_producer(store: Store, edl: ExternalDiffusionLayer) -> None:
    producer = edl.producer
    for row in store.rows(CONSUMERS):
        producer.streams[row.consumer] = OutboundStream(
            producer.me,
            row.consumer,
            row.joined,
            number=row.number,
            acknowledged=row.acknowledged,
            confirmed=row.confirmed,
            consumer_epoch=row.consumer_epoch,
            view_epoch=row.view_epoch,
            version=row.version,
        )
    for fence in store.rows(FENCES):
        producer.streams[fence.consumer].fences.append(Fence(fence.epoch, fence.first))
    for owed in store.rows(OWED):
        producer.streams[owed.consumer].recover(owed, producer.log)
    for element in store.rows(EXTERNAL):
        producer.table.recover(element)
