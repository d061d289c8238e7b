"""Recovery: builds a peer in the state of its last commit. Each component recovers its own rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qns.edl.claims import Claims
from qns.edl.consumer import Consumer
from qns.edl.custody import Custody
from qns.edl.evidence_keeper import EvidenceKeeper
from qns.edl.external_matcher import ExternalMatcher
from qns.edl.external_merge_table import ExternalMergeTable
from qns.edl.forwarder import Forwarder
from qns.edl.layer import ExternalDiffusionLayer
from qns.edl.merger import Merger
from qns.edl.producer import Producer
from qns.edl.reachability import Reachability
from qns.edl.readers import Readers
from qns.edl.relays import Relays
from qns.edl.routes import Routes
from qns.edl.seals import ReadCertificate, Sealer, Seals, Signer
from qns.edl.tree_builder import TreeBuilder
from qns.edl.view_reader import SLICE_CHARACTERS
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.federation.roots import Anchor
from qns.federation.schema_mapper import SchemaMapper
from qns.federation.seal_keys import read_seal_key
from qns.iil.layer import InternalInterfaceLayer
from qns.peer.event_log import EventLog
from qns.peer.identity import Identity
from qns.peer.layers import DeliverySink
from qns.peer.peer import Peer
from qns.peer.ports import Index, Mark, Store
from qns.peer.publications import Publications
from qns.peer.row_view import RowView
from qns.peer.tables import IdentityRow
from qns.peer.tuning import Tuning
from qns.peer.turn import Stopwatch, no_stopwatch

MakeIndex = Callable[[], Index[Any]]


@dataclass(frozen=True, slots=True)
class Settings:
    organisation: str
    tuning: Tuning
    index: MakeIndex
    recording: bool = False
    """True if the store keeps the history."""
    exact_merging: bool = False
    """True if the views for producers are merged beyond containment (semantics §6)."""
    anchor: Anchor | None = None
    """From here on the peer trusts signed documents; without it, it takes unsigned ones too."""
    slice_characters: int = SLICE_CHARACTERS
    """About as many characters of the elements of large views are read in one turn."""
    epoch_scatter: int = 1
    """Among how many candidates an epoch is chosen (`qns.peer.lineage.later_epoch`)."""
    signer: Signer | None = None
    """Seals what this peer sends; None if it has no seal certificate."""
    read_certificate: ReadCertificate = read_seal_key
    """Reads the seal certificates of other organisations."""
    stopwatch: Stopwatch = no_stopwatch
    """Measures what the requests of each member cost."""
    keep_evidence_s: float | None = None
    """How long the evidence of accepted events is kept; None if none is kept."""


def recover(
    settings: Settings, store: Store, row: IdentityRow, document: bytes, now: float
) -> Peer:
    """Returns the peer in the state of its last commit, with the epoch that `row` begins."""
    federation, tuning = read_federation(document), settings.tuning
    identity = Identity(row, settings.epoch_scatter)
    view = RowView(store)
    log = EventLog(view, federation.schema, tuning.events_in_memory, tuning.events_remembered)
    log.recover_from(store, now)
    start = Mark(identity.epoch, identity.nonce)
    iil = InternalInterfaceLayer.build(
        federation.schema, log, view, tuning, start, settings.index()
    )
    iil.recover_from(store, now)
    edl = _build_edl(settings, identity, federation, document, log, view, sink=iil)
    edl.recover_from(store, iil.subscriptions())
    publications = Publications(identity, log, tuning)
    publications.recover_from(store)
    signer = settings.signer
    sealer = None if signer is None else Sealer(settings.organisation, signer)
    return Peer(
        identity,
        federation,
        log,
        view,
        iil,
        edl,
        publications,
        settings.anchor,
        sealer,
        settings.stopwatch,
    )


def _build_edl(
    settings: Settings,
    identity: Identity,
    federation: Federation,
    document: bytes,
    log: EventLog,
    view: RowView,
    *,
    sink: DeliverySink,
) -> ExternalDiffusionLayer:
    me, schema, tuning = identity.organisation, federation.schema, settings.tuning
    incarnation, epoch = identity.incarnation, identity.epoch
    reachability = Reachability(me, epoch)
    custody = Custody(log, tuning.most_dead_letters)
    forwarder = Forwarder(me, log, reachability, Routes(me, reachability), tuning, custody)
    claims = Claims()
    seals, keep_s = Seals(me, federation, settings.read_certificate), settings.keep_evidence_s
    evidence = None
    if keep_s is not None:
        evidence = EvidenceKeeper(seals, view, keep_s, document, federation.version)
    producer = Producer(
        me,
        incarnation,
        epoch,
        log,
        view,
        tuning,
        ExternalMergeTable(
            schema,
            ExternalMatcher(settings.index()),
            tuning.most_view_elements,
            tuning.most_view_terms,
            settings.slice_characters,
        ),
        TreeBuilder(me, reachability),
        forwarder,
        Relays(reachability, forwarder.routes, tuning),
        claims,
        Readers(me, SchemaMapper(federation)),
    )
    consumer = Consumer(
        me,
        incarnation,
        epoch,
        log,
        tuning,
        schema,
        Merger(me, schema, settings.exact_merging),
        forwarder,
        claims,
        sink=sink,
        federation=federation,
        seals=seals,
        evidence=evidence,
    )
    return ExternalDiffusionLayer(me, tuning, reachability, producer, consumer, forwarder, document)
