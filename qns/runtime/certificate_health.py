"""Certificate health: why the certificate of a peer keeps it from others, or soon will."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from qns.federation.certificate import Certificate
from qns.federation.document import Federation
from qns.runtime.own_certificate import OwnCertificate
from qns.runtime.reasons import Reason, ReasonKind

WARNED_S: Final = 30 * 86_400.0
"""How long before its end the renewal of a certificate is a reason."""


def of_certificate(
    own: OwnCertificate | None, federation: Federation, me: str, now: float
) -> Iterator[Reason]:
    """Yields the reasons that the certificate of this peer gives."""
    if own is None:
        return
    if own.problem:
        yield Reason(ReasonKind.KEY_UNUSABLE, f"the TLS files cannot be used: {own.problem}")
    named = federation[me].tls if me in federation else None
    yield from of_validity(own.certificate, "TLS", named, now)


def of_validity(
    certificate: Certificate, kind: str, named: tuple[str, ...] | None, now: float
) -> Iterator[Reason]:
    """Yields the reasons that a certificate of this peer gives.

    `named` are those that the document names for it; None if it need not name any.
    """
    if named is not None and certificate.pem not in named:
        words = (
            f"the federation document does not name the {kind} certificate {certificate.short} of "
            "this peer, so that others refuse it"
        )
        yield Reason(ReasonKind.CERTIFICATE_UNNAMED, words)
    ends = datetime.fromtimestamp(certificate.ends, UTC)
    its = f"the {kind} certificate of this peer"
    if now > certificate.ends:
        yield Reason(ReasonKind.CERTIFICATE_EXPIRED, f"{its} has expired on {ends:%Y-%m-%d}")
    elif now < certificate.begins:
        yield Reason(ReasonKind.CERTIFICATE_EXPIRED, f"{its} is not valid yet")
    elif now > certificate.ends - WARNED_S:
        days = (certificate.ends - now) / 86_400
        words = f"{its} expires in {days:.0f} days, on {ends:%Y-%m-%d}"
        yield Reason(ReasonKind.CERTIFICATE_EXPIRES, words)
