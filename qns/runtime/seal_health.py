"""Seal health: why what this peer sends is refused, or soon will be, and who sends wrong seals."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from qns.federation.certificate import read_certificate
from qns.federation.document import Federation
from qns.peer.status import PeerStatus
from qns.runtime.certificate_health import WARNED_S
from qns.runtime.own_seal import OwnSeal
from qns.runtime.reasons import Reason, ReasonKind

_REFUSALS_SHOWN_S: Final = 3600.0
"""How long it is a reason that a member has sent a wrong seal."""


def of_own_seal(
    own: OwnSeal | None, federation: Federation, me: str, now: float
) -> Iterator[Reason]:
    """Yields the reasons that the seal of this peer gives."""
    named = {read_certificate(pem).fingerprint for pem in _named(federation, me)}
    if own is None:
        if named:
            words = (
                f"the federation document names a seal certificate of {me}, and this peer has no "
                "section [seal]: others refuse its events"
            )
            yield Reason(ReasonKind.NO_SEAL, words)
        return
    if own.problem:
        yield Reason(
            ReasonKind.KEY_UNUSABLE, f"the files of the seal cannot be used: {own.problem}"
        )
    certificate = own.certificate
    if named and certificate.fingerprint not in named:
        words = (
            f"the federation document does not name the seal certificate {certificate.short} of "
            "this peer, so that others refuse its events"
        )
        yield Reason(ReasonKind.CERTIFICATE_UNNAMED, words)
    ends = datetime.fromtimestamp(certificate.ends, UTC)
    if not certificate.begins <= now <= certificate.ends:
        words = (
            f"the seal certificate of this peer is not valid now: its last day is {ends:%Y-%m-%d}"
        )
        yield Reason(ReasonKind.CERTIFICATE_EXPIRED, words)
    elif now > certificate.ends - WARNED_S:
        days = (certificate.ends - now) / 86_400
        words = f"the seal certificate of this peer expires in {days:.0f} days, on {ends:%Y-%m-%d}"
        yield Reason(ReasonKind.CERTIFICATE_EXPIRES, words)


def of_other_seals(status: PeerStatus, now: float) -> Iterator[Reason]:
    """Yields the members whose messages were refused because of their seals."""
    if status.signer_problem:
        words = f"nothing can be sealed, so that others refuse it: {status.signer_problem}"
        yield Reason(ReasonKind.KEY_UNUSABLE, words)
    for member, refused in sorted(status.wrong_seals.items()):
        if now - refused.at < _REFUSALS_SHOWN_S:
            words = (
                f"{refused.number:,} messages of {member} were refused because of their seals: "
                f"{refused.reason}"
            )
            yield Reason(ReasonKind.WRONG_SEALS, words)


def _named(federation: Federation, me: str) -> tuple[str, ...]:
    return federation[me].seals if me in federation else ()
