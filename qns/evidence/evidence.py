"""Evidence: what proves that a producer has sent an event to a receiver (docs/evidence.md)."""

from __future__ import annotations

from dataclasses import dataclass

from qns.edl.seal_texts import Leaf


@dataclass(frozen=True, slots=True)
class Timestamp:
    """What a timestamping authority (RFC 3161) says of a tree of roots."""

    proof: bytes
    """Leads from the signed root of the evidence to `root`."""
    root: bytes
    """The root of the tree; the timestamp is of these bytes."""
    response: bytes
    """The response of the authority in DER."""


@dataclass(frozen=True, slots=True)
class Evidence:
    xml: bytes
    """The event exactly as its producer wrote it."""
    leaf: Leaf
    proof: bytes
    """Leads from the leaf to the root."""
    root: bytes
    fingerprint: bytes
    """The SHA-256 of the certificate, as the seal names it."""
    signature: bytes
    certificate: str
    """The certificate of the seal, in PEM."""
    document: bytes
    """The federation document under which the event was accepted."""
    accepted_at: float
    """When the receiver accepted it, by its own clock."""
    timestamp: Timestamp | None = None
