"""Gathering: finds the evidence of an event in the rows that its receiver has kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qns.edl.seal_texts import read_leaf
from qns.edl.seals import FINGERPRINT_BYTES
from qns.errors import DuplicateId, NameNotKnown, QnsError
from qns.evidence.evidence import Evidence, Timestamp
from qns.federation.certificate import read_certificate
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.peer.tables import (
    EVIDENCE,
    EVIDENCE_DOCUMENTS,
    SEALED_ROOTS,
    TIMESTAMPS,
    EvidenceRow,
    Key,
    Row,
    SealedRootRow,
    Table,
)


class EvidenceStore(Protocol):
    """What is read of a store or of a backup."""

    def get(self, table: Table[Row], key: Key) -> Row | None: ...

    def find(self, table: Table[Row], column: str, value: object) -> Sequence[Row]: ...


def gather(store: EvidenceStore, event: str, source: str = "") -> Evidence:
    """Returns the evidence of an event; of several, the one that was kept first.

    There are several if the producer has gone back in time and has sent the event again. Raises
    NameNotKnown if there is none, and DuplicateId if several organisations have sent events of
    this id and no source is given.
    """
    found: list[tuple[EvidenceRow, SealedRootRow]] = []
    for row in store.find(EVIDENCE, "event", event):
        root = store.get(SEALED_ROOTS, (row.root,))
        if root is not None and source in ("", root.source):
            found.append((row, root))
    sources = sorted({root.source for _, root in found})
    if not found:
        raise NameNotKnown(
            "event",
            event,
            (),
            problem=f"there is no evidence of event {event}"
            + (f" of {source}" if source else "")
            + ": it was not accepted while evidence was kept, it was not sealed, or it is too old",
        )
    if len(sources) > 1:
        raise DuplicateId(
            f"{' and '.join(sources)} have sent events with the id {event}",
            remedy="name one of them with --source",
        )
    return _evidence(store, *min(found))


def _evidence(store: EvidenceStore, row: EvidenceRow, root: SealedRootRow) -> Evidence:
    kept = store.get(EVIDENCE_DOCUMENTS, (root.document,))
    if kept is None:
        raise QnsError(f"version {root.document} of the federation document is missing")
    document = read_federation(kept.xml)
    fingerprint, signature = root.seal[:FINGERPRINT_BYTES], root.seal[FINGERPRINT_BYTES:]
    stamp = store.get(TIMESTAMPS, (root.timestamp,)) if root.timestamp else None
    timestamp = None
    if stamp is not None:
        timestamp = Timestamp(root.timestamp_proof, stamp.root, stamp.response)
    return Evidence(
        row.xml,
        read_leaf(row.leaf),
        row.proof,
        root.root,
        fingerprint,
        signature,
        _certificate(document, root.source, fingerprint),
        write_federation(document),
        row.accepted_at,
        timestamp,
    )


def _certificate(document: Federation, source: str, fingerprint: bytes) -> str:
    """Returns the certificate of the seal; it is empty if the document does not name it."""
    member = document.organisations.get(source)
    for text in () if member is None else member.seals:
        certificate = read_certificate(text)
        if certificate.fingerprint == fingerprint.hex():
            return certificate.pem
    return ""
