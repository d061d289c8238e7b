"""Verification: checks the chain of evidence link by link, from the event to the anchor.

Each link is checked on its own, so that a broken one does not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256
from typing import Final, NamedTuple

from qns.d2q.event_xml import read_event
from qns.edl.merkle import root_of
from qns.edl.seal_texts import signed_text, write_leaf
from qns.edl.seals import CLOCK_TOLERANCE_S
from qns.errors import QnsError
from qns.evidence.evidence import Evidence, Timestamp
from qns.evidence.timestamps import Authority, checked_time, leaf_of
from qns.federation.acceptance import Freshness, freshness
from qns.federation.certificate import Certificate, read_certificate
from qns.federation.document import Federation
from qns.federation.document_xml import read_federation, write_federation
from qns.federation.roots import Anchor
from qns.federation.seal_keys import read_seal_key
from qns.federation.signatures import check_signed, shown_key

GRACE_S: Final = 7 * 86_400.0
"""How long peers go on with a document that has expired, if their operators set nothing else."""
EVENT: Final = "event → leaf"
LEAF: Final = "leaf → root"
SIGNATURE: Final = "root → signature"
CERTIFICATE: Final = "signature → certificate"
DOCUMENT: Final = "certificate → document"
ROOT_KEYS: Final = "document → root keys"
ANCHOR: Final = "root keys → anchor"
TIMESTAMP: Final = "root → timestamp"


class Outcome(Enum):
    HOLDS = "holds"
    BROKEN = "broken"
    OPEN = "open"
    """Nothing contradicts it, and nothing proves it."""


class Link(NamedTuple):
    name: str
    outcome: Outcome
    words: str


@dataclass(frozen=True, slots=True)
class Trust:
    """What whoever verifies trusts, because they got it by other means than the evidence."""

    anchor: Anchor | None = None
    later: Federation | None = None
    """A newer document of the federation, if the anchor is newer than the evidence."""
    authority: Authority | None = None
    """The timestamping authority."""


@dataclass(frozen=True, slots=True)
class Verdict:
    links: tuple[Link, ...]

    @property
    def broken(self) -> tuple[Link, ...]:
        return tuple(link for link in self.links if link.outcome is Outcome.BROKEN)

    @property
    def is_proved(self) -> bool:
        """True if every link holds up to the anchor. A timestamp may be missing or unchecked."""
        return all(
            link.outcome is Outcome.HOLDS
            or (link.name == TIMESTAMP and link.outcome is Outcome.OPEN)
            for link in self.links
        )


class _Broken(Exception):
    """A link is broken; the message says why."""


class _Open(Exception):
    """A link is not proved; the message says why."""


def verify(evidence: Evidence, trust: Trust) -> Verdict:
    return Verdict(tuple(_Chain(evidence, trust).links()))


class _Chain:
    def __init__(self, evidence: Evidence, trust: Trust) -> None:
        self.evidence, self.trust = evidence, trust
        self.document: Federation | None = None
        self.document_problem = ""
        try:
            self.document = read_federation(evidence.document)
        except QnsError as error:
            self.document_problem = f"the document cannot be read: {error.problem}"
        self.timestamped_at: float | None = None

    def links(self) -> Iterator[Link]:
        timestamp = _judged(TIMESTAMP, self._timestamp)
        yield _judged(EVENT, self._event)
        yield _judged(LEAF, self._leaf)
        yield _judged(SIGNATURE, self._signature)
        yield _judged(CERTIFICATE, self._certificate)
        yield _judged(DOCUMENT, self._named)
        yield _judged(ROOT_KEYS, self._root_keys)
        yield _judged(ANCHOR, self._anchor)
        yield timestamp

    def _event(self) -> str:
        leaf, xml = self.evidence.leaf, self.evidence.xml
        digest = sha256(xml).digest()
        if digest != leaf.digest:
            raise _Broken("the SHA-256 of the event is not that of the leaf")
        event = read_event(xml, self._known_document().schema)
        if (event.id, event.source) != (leaf.event, leaf.source):
            raise _Broken(f"the event is {event.id} of {event.source}, not that of the leaf")
        return f"the leaf has the SHA-256 of the event, {shown_key(digest.hex())}"

    def _leaf(self) -> str:
        root = root_of(write_leaf(self.evidence.leaf), self.evidence.proof)
        if root != self.evidence.root:
            raise _Broken("the proof does not lead from the leaf to the root")
        return f"the proof leads to the root {shown_key(root.hex())}"

    def _signature(self) -> str:
        source, root = self.evidence.leaf.source, self.evidence.root
        key = read_seal_key(self._known_certificate().pem)
        message = signed_text(self._known_document().name, source, root)
        if not key.verify(self.evidence.signature, message):
            raise _Broken("the certificate has not signed this root for this organisation")
        return f"signed by {source}"

    def _certificate(self) -> str:
        certificate = self._known_certificate()
        if certificate.fingerprint != self.evidence.fingerprint.hex():
            raise _Broken(f"the seal names another certificate than {certificate.short}")
        at = self._known_time()
        begins, ends = certificate.begins - CLOCK_TOLERANCE_S, certificate.ends + CLOCK_TOLERANCE_S
        if not begins <= at <= ends:
            raise _Broken(f"{certificate.short} was not valid at {moment(at)}")
        whose = "its receiver's clock" if self.timestamped_at is None else "the timestamp"
        return f"{certificate.short} was valid at {moment(at)}, by {whose}"

    def _named(self) -> str:
        document, source = self._known_document(), self.evidence.leaf.source
        certificate = self._known_certificate()
        member = document.organisations.get(source)
        if member is None or certificate.pem not in member.seals:
            raise _Broken(f"{_version(document)} does not name {certificate.short} for {source}")
        at = self._known_time()
        if freshness(document, at, GRACE_S) is Freshness.CLOSED:
            raise _Open(
                f"{_version(document)} names it, and had expired long before {moment(at)}: by then "
                "the key may not have been that of the organisation any more"
            )
        return f"{_version(document)} names it as a seal of {source}"

    def _root_keys(self) -> str:
        document = self._known_document()
        if write_federation(document) != self.evidence.document:
            raise _Broken("the document is not in the form in which QNS writes it")
        if not document.roots:
            raise _Open(
                f"{_version(document)} is not signed: trust ends at this document, and whoever "
                "could change the file could change it too; compare it with a copy of your own"
            )
        check_signed(document)
        last = document.roots[-1]
        return f"signed by {last.threshold} or more of {len(last.keys)} keys of root set " + str(
            last.number
        )

    def _anchor(self) -> str:
        document, anchor, later = self._known_document(), self.trust.anchor, self.trust.later
        if anchor is None:
            raise _Open("there is no anchor: trust ends at the document")
        if later is not None:
            check_signed(later, anchor)
            if later.name != document.name:
                raise _Broken(f"{_version(later)} is of another federation")
            if later.roots[: len(document.roots)] != document.roots or not document.roots:
                raise _Broken(f"its root sets are not those that led to {_version(later)}")
            return f"its root sets led to {_version(later)}, which descends from the anchor"
        if document.name == anchor.federation and 0 < len(document.roots) < anchor.roots.number:
            raise _Open(
                f"the anchor has root set {anchor.roots.number}, and the document ends at root "
                f"set {len(document.roots)}; give a newer document with --document"
            )
        check_signed(document, anchor)
        return f"its root sets descend from root set {anchor.roots.number}, that of the anchor"

    def _timestamp(self) -> str:
        stamp, authority = self.evidence.timestamp, self.trust.authority
        if stamp is None:
            words = "there is no timestamp: the time is that of the receiver's clock"
            raise (_Open if authority is None else _Broken)(words)
        self._check_tree(stamp)
        if authority is None:
            raise _Open("there is a timestamp; give the certificate of its authority with --tsa")
        self.timestamped_at = checked_time(stamp.response, stamp.root, authority)
        return f"the root existed before {moment(self.timestamped_at)}"

    def _check_tree(self, stamp: Timestamp) -> None:
        seal = self.evidence.fingerprint + self.evidence.signature
        if root_of(leaf_of(self.evidence.root, seal), stamp.proof) != stamp.root:
            raise _Broken("the timestamp is not of this root and signature")

    def _known_time(self) -> float:
        """Returns the time of the timestamp, or else what the receiver says."""
        return self.evidence.accepted_at if self.timestamped_at is None else self.timestamped_at

    def _known_document(self) -> Federation:
        if self.document is None:
            raise _Broken(self.document_problem)
        return self.document

    def _known_certificate(self) -> Certificate:
        if not self.evidence.certificate:
            raise _Broken("there is no certificate")
        certificate = read_certificate(self.evidence.certificate)
        if certificate.pem != self.evidence.certificate:
            raise _Broken("the certificate is not in the form in which QNS writes it")
        return certificate


def moment(at: float) -> str:
    """Returns a time in UTC, to the second."""
    return datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z")


def _judged(name: str, check: Callable[[], str]) -> Link:
    try:
        return Link(name, Outcome.HOLDS, check())
    except _Open as problem:
        return Link(name, Outcome.OPEN, str(problem))
    except _Broken as problem:
        return Link(name, Outcome.BROKEN, str(problem))
    except QnsError as problem:
        return Link(name, Outcome.BROKEN, problem.problem)


def _version(document: Federation) -> str:
    return f"version {document.version} of {document.name}"
