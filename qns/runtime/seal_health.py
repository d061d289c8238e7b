"""Seal health: why what this peer sends is refused, or soon will be, and who sends wrong seals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qns.federation.document import Federation
from qns.peer.status import PeerStatus
from qns.runtime.certificate_health import of_validity
from qns.runtime.own_key import OwnKey
from qns.runtime.own_seal import OwnSeal
from qns.runtime.reasons import Reason, ReasonKind
from qns.soap.ws_signing import CallSigner

_REFUSALS_SHOWN_S: Final = 3600.0
"""How long it is a reason that a member has sent a wrong seal."""


def of_own_seal(
    own: OwnSeal | None, federation: Federation, me: str, now: float
) -> Iterator[Reason]:
    """Yields the reasons that the seal of this peer gives."""
    named = federation[me].seals if me in federation else ()
    if own is None:
        if named:
            words = (
                f"the federation document names a seal certificate of {me}, and this peer has no "
                "section [seal]: others refuse its events"
            )
            yield Reason(ReasonKind.NO_SEAL, words)
        return
    if own.problem:
        words = f"the files of the seal cannot be used: {own.problem}"
        yield Reason(ReasonKind.KEY_UNUSABLE, words)
    yield from of_validity(own.certificate, "seal", named or None, now)


def of_call_key(
    own: OwnKey[CallSigner] | None, federation: Federation, me: str, now: float
) -> Iterator[Reason]:
    """Yields the reasons that the key for signed calls gives."""
    if own is None:
        return
    if own.problem:
        words = f"the files of the key for signed calls cannot be used: {own.problem}"
        yield Reason(ReasonKind.KEY_UNUSABLE, words)
    named = federation[me].seals if me in federation else None
    yield from of_validity(own.certificate, "seal", named, now)


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
