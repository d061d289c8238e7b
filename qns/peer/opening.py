"""Opening: what a peer finds in its store when it starts, and which document will be in force.

`Gateway.open` acts on it, and `qns peer check` reports it beforehand, so that both agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from qns.errors import FederationError, QnsError, StoreFailed
from qns.federation.acceptance import may_accept
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation
from qns.federation.roots import Anchor
from qns.federation.signatures import check_signed
from qns.peer.lineage import begin_epoch
from qns.peer.ports import Mark
from qns.peer.tables import DOCUMENT, IDENTITY, IdentityRow, Row, Table


class ReadableStore(Protocol):
    """A store that is only read."""

    def rows(self, table: Table[Row], /) -> Iterable[Row]: ...


class DocumentPlan(NamedTuple):
    """What becomes of the configured document, given the document in force."""

    installs: bool = False
    """True if the configured document is newer and replaces the one in force."""
    refusal: QnsError | None = None
    """Why the configured document is not put in force, although it is no older version."""
    notice: str = ""
    """What an operator should know although nothing is wrong."""


UNCHANGED: Final = DocumentPlan()


class Opening(NamedTuple):
    identity: IdentityRow | None
    """The identity that the store has; None if it was never used."""
    stored: bytes | None
    """The document in the store; None if it was never used."""
    plan: DocumentPlan

    @property
    def mark(self) -> Mark | None:
        """The mark in the store; None if it was never used."""
        return None if self.identity is None else mark_of(self.identity)

    def is_restored(self, marks: tuple[Mark, ...]) -> bool:
        """Returns whether a start takes the store for an older copy; `marks` are known outside."""
        return begin_epoch(self.mark, marks, nonce="").restored


def mark_of(identity: IdentityRow) -> Mark:
    return Mark(identity.epoch, identity.nonce, identity.turns)


def inspect(
    store: ReadableStore,
    organisation: str,
    document: bytes,
    *,
    now: float,
    anchor: Anchor | None = None,
) -> Opening:
    """Returns what a start of this organisation on this store, with this document, will do.

    Raises the QnsError with which the start fails: also if the document in the store is not signed
    as the anchor wants it, and the configured one does not replace it.
    """
    identity = identity_of(store, organisation)
    if identity is None:
        first_document(document, organisation, now=now, anchor=anchor)
        return Opening(None, None, UNCHANGED)
    stored = document_of(store)
    if stored is None:
        raise StoreFailed("the store has no federation document", remedy="restore it from a backup")
    plan = plan_document(stored, document, now=now, anchor=anchor)
    if anchor is not None and not plan.installs:
        try:
            check_signed(read_federation(stored), anchor)
        except FederationError as error:
            raise error.at("the document in the store") from None
    return Opening(identity, stored, plan)


def first_document(
    document: bytes, organisation: str, *, now: float, anchor: Anchor | None = None
) -> Federation:
    """Returns the first document of a peer; raises a QnsError if it cannot be put in force."""
    federation = read_federation(document)
    may_accept(federation, None, now=now, anchor=anchor)
    federation[organisation]
    return federation


def plan_document(
    in_force: bytes, configured: bytes, *, now: float, anchor: Anchor | None = None
) -> DocumentPlan:
    """Returns whether the configured document replaces the one in force, or why not."""
    old, new = read_federation(in_force), read_federation(configured)
    if new == old:
        return UNCHANGED
    if new.name == old.name and new.version < old.version:
        return DocumentPlan(
            notice=f"version {old.version} of the federation document is in force; the configured "
            f"file has version {new.version}"
        )
    try:
        may_accept(new, old, now=now, anchor=anchor)
    except QnsError as error:
        return DocumentPlan(refusal=error)
    return DocumentPlan(installs=True)


def identity_of(store: ReadableStore, organisation: str) -> IdentityRow | None:
    """Returns the identity that the store has; None if it was never used."""
    for row in store.rows(IDENTITY):
        if row.organisation != organisation:
            raise StoreFailed(
                f"this is the store of {row.organisation}, not of {organisation}",
                remedy="give each organisation a store of its own",
            )
        return row
    return None


def document_of(store: ReadableStore) -> bytes | None:
    """Returns the newest federation document in the store."""
    newest = max(store.rows(DOCUMENT), key=lambda row: row.version, default=None)
    return None if newest is None else newest.xml
