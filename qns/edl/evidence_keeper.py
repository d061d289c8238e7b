"""Evidence keeper: keeps what proves that other organisations have sent the events accepted here.

The rows are written in the turn that accepts the event, so that nothing is acknowledged without its
evidence. Each event has one row; the events of one commit of the producer share a row with the root
and its signature, and all roots of one version of the federation document share this document. What
is older than the configured time is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from qns.edl.merkle import root_of
from qns.edl.messages import Notification
from qns.edl.seal_texts import entry_text, head_text
from qns.edl.seals import MOST_ROOTS, Seals
from qns.peer.ports import Store
from qns.peer.row_view import RowView
from qns.peer.tables import (
    ALL,
    EVIDENCE,
    EVIDENCE_DOCUMENTS,
    SEALED_ROOTS,
    TIMESTAMPS,
    EvidenceDocumentRow,
    EvidenceRow,
    SealedRootRow,
)
from qns.peer.turn import Turn

REUSED_FOR_S: Final = 3_600.0
"""How long events that come later may share the row of a root. It is deleted so much later than
the last of them."""
MOST_DELETED: Final = 500
"""The most rows of events that one turn deletes."""
_LOOK_EVERY_S: Final = 60.0
"""The pause between two looks for rows that are too old, if there were none."""


@dataclass(slots=True, eq=False)
class EvidenceKeeper:
    seals: Seals
    view: RowView
    keep_s: float
    document: bytes
    """The federation document in force."""
    version: int
    """Its version."""
    _last: int = 0
    """The number of the last row of an event."""
    _last_root: int = 0
    _roots: dict[bytes, tuple[int, float]] = field(default_factory=dict)
    """Seal -> the number of the row of its root, and when it was made; the oldest first."""
    _documents: set[int] = field(default_factory=set)
    """The versions of the document that are kept."""
    _look_at: float = 0.0
    """When to look for rows that are too old."""

    def recover_from(self, store: Store) -> None:
        event, root = store.last_before(EVIDENCE, ALL), store.last_before(SEALED_ROOTS, ALL)
        timestamp = store.last_before(TIMESTAMPS, ALL)
        self._last = 0 if event is None else event.number
        self._last_root = max(
            0 if root is None else root.number, 0 if timestamp is None else timestamp.last_root
        )
        self._documents = {row.version for row in store.rows(EVIDENCE_DOCUMENTS)}

    def apply_document(self, turn: Turn, document: bytes) -> None:
        """Takes over the document that is in force from now on, as the seals have done before.

        The one before is kept if it is the last one that names an organisation that has left.
        """
        if self.version in self.seals.former_documents.values():
            self._keep_document(turn)
        self.document, self.version = document, self.seals.federation.version
        self._roots.clear()

    def keep(self, turn: Turn, item: Notification) -> None:
        """Keeps the evidence of a notification to this organisation whose seal has no flaw."""
        if not self.seals.requires(item.source):
            return
        leaf = head_text(item) + entry_text(item.entry)
        number, made_at = self._roots.get(item.seal, (0, 0.0))
        if not number or turn.now - made_at >= REUSED_FOR_S:
            number = self._keep_root(turn, item, leaf)
        self._last += 1
        proof = item.entry.proof
        row = EvidenceRow(self._last, number, item.event, turn.now, leaf, proof, item.xml)
        turn.put(EVIDENCE, row)

    def _keep_root(self, turn: Turn, item: Notification, leaf: bytes) -> int:
        root = root_of(leaf, item.entry.proof)
        assert root is not None, "the seal has no flaw"
        self._last_root += 1
        version = self._document_of(turn, item.source)
        turn.put(
            SEALED_ROOTS,
            SealedRootRow(self._last_root, item.source, turn.now, root, item.seal, version),
        )
        self._roots.pop(item.seal, None)
        self._roots[item.seal] = self._last_root, turn.now
        if len(self._roots) > MOST_ROOTS:
            del self._roots[next(iter(self._roots))]
        return self._last_root

    def _document_of(self, turn: Turn, source: str) -> int:
        """Returns the version of the document that names the certificates of an organisation.

        For an organisation that left while no evidence was kept, this is the one in force.
        """
        federation = self.seals.federation
        if source not in federation:
            last = self.seals.former_documents.get(source, 0)
            if last in self._documents:
                return last
        self._keep_document(turn)
        return self.version

    def _keep_document(self, turn: Turn) -> None:
        if self.version not in self._documents:
            self._documents.add(self.version)
            turn.put(EVIDENCE_DOCUMENTS, EvidenceDocumentRow(self.version, self.document))

    # --- what is too old --------------------------------------------------------------------------

    def delete_old(self, turn: Turn) -> None:
        """Deletes some of the rows that are too old."""
        if turn.now < self._look_at:
            return
        before = turn.now - self.keep_s
        is_done = self._delete_events(turn, before) < MOST_DELETED
        is_done &= self._delete_roots(turn, before - REUSED_FOR_S) < MOST_DELETED
        if is_done:
            self._look_at = turn.now + _LOOK_EVERY_S

    def _delete_events(self, turn: Turn, before: float) -> int:
        first = self.view.scan(EVIDENCE, (), 0, 1)
        if not first or first[0].accepted_at >= before:
            return 0  # without reading the content of many rows
        rows = self.view.scan(EVIDENCE, (), 0, MOST_DELETED)
        old = [row.number for row in rows if row.accepted_at < before]
        for number in old:
            turn.delete(EVIDENCE, number)
        return len(old)

    def _delete_roots(self, turn: Turn, before: float) -> int:
        """Deletes old roots, and the documents and timestamps to which no root refers any more."""
        rows = self.view.scan(SEALED_ROOTS, (), 0, MOST_DELETED)
        old = [row.number for row in rows if row.kept_at < before]
        if not old:
            return 0
        for number in old:
            turn.delete(SEALED_ROOTS, number)
        kept = self.view.scan(SEALED_ROOTS, (), 0, 1)
        first_root = kept[0].number if kept else self._last_root + 1
        # The last timestamp stays: it says which roots have none yet.
        for timestamp in self.view.scan(TIMESTAMPS, (), 0, MOST_DELETED)[:-1]:
            if timestamp.last_root < first_root:
                turn.delete(TIMESTAMPS, timestamp.number)
        needed = {self.version, *self.seals.former_documents.values()}
        for version in self._documents - needed:
            if not self.view.find(SEALED_ROOTS, "document", version, 1):
                self._documents.discard(version)
                turn.delete(EVIDENCE_DOCUMENTS, version)
        return len(old)
