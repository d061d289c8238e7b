"""Certificate health: why the certificate of a peer keeps it from others, or soon will."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from qns.federation.certificate import read_certificate
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
    certificate = own.certificate
    named = [read_certificate(pem).fingerprint for pem in _named(federation, me)]
    if me in federation and certificate.fingerprint not in named:
        words = (
            f"the federation document does not name the TLS certificate {certificate.short} of "
            "this peer, so that others refuse it"
        )
        yield Reason(ReasonKind.CERTIFICATE_UNNAMED, words)
    ends = datetime.fromtimestamp(certificate.ends, UTC)
    if now > certificate.ends:
        words = f"the TLS certificate of this peer has expired on {ends:%Y-%m-%d}"
        yield Reason(ReasonKind.CERTIFICATE_EXPIRED, words)
    elif now < certificate.begins:
        words = "the TLS certificate of this peer is not valid yet"
        yield Reason(ReasonKind.CERTIFICATE_EXPIRED, words)
    elif now > certificate.ends - WARNED_S:
        days = (certificate.ends - now) / 86_400
        words = f"the TLS certificate of this peer expires in {days:.0f} days, on {ends:%Y-%m-%d}"
        yield Reason(ReasonKind.CERTIFICATE_EXPIRES, words)


def _named(federation: Federation, me: str) -> tuple[str, ...]:
    return federation[me].tls if me in federation else ()
