"""Signatures: who has signed a document, and whether its chain of root sets leads to it.

A signature is over bytes that name what they are, so that a signed root set is never taken for a
document, nor one of another federation for one of this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from qns.errors import FederationError
from qns.federation.document import Federation
from qns.federation.document_xml import write_federation
from qns.federation.ed25519 import SigningKey, is_valid
from qns.federation.roots import Anchor, RootKey, RootSet, Signature

_DOCUMENT: Final = b"urn:qns:federation-document:1\n"
_ROOT_SET: Final = b"urn:qns:federation-root-set:1\n"
SHOWN_DIGITS: Final = 16
"""So many digits of a fingerprint tell keys apart in a message."""


class Verdict(Enum):
    VALID = "valid"
    ALTERED = "it is not the signature of this content"
    OTHER = "the key is only in another root set"
    UNKNOWN = "the key is in no root set"


@dataclass(frozen=True, slots=True)
class Signer:
    fingerprint: str
    verdict: Verdict


def document_bytes(document: Federation) -> bytes:
    """Returns what the signatures of a document sign."""
    return _DOCUMENT + write_federation(document, with_signatures=False)


def root_set_bytes(federation: str, roots: RootSet) -> bytes:
    """Returns what the signatures of a root set sign."""
    keys = sorted(key.raw.hex() for key in roots.keys)
    content = [federation, roots.number, roots.threshold, keys]
    return _ROOT_SET + json.dumps(content, separators=(",", ":")).encode("ascii")


# --- checking -------------------------------------------------------------------------------------


def check_signed(
    document: Federation, anchor: Anchor | None = None, in_force: Federation | None = None
) -> None:
    """Raises FederationError unless the document is signed as it has to be.

    It is signed by the threshold of its last root set, which descends from that of the anchor and
    from that of the document in force. Without either, a document without root sets passes.
    """
    trusted = _trusted_chain(document, anchor, in_force)
    if not document.roots:
        return
    for number in range(trusted, len(document.roots)):
        before, after = document.roots[number - 1 : number + 1]
        message = root_set_bytes(document.name, after)
        for roots in (before, after):
            _check_threshold(
                roots, after.signatures, message, f"root set {after.number}", document.roots
            )
    _check_threshold(
        document.roots[-1],
        document.signatures,
        document_bytes(document),
        f"version {document.version} of {document.name}",
        document.roots,
    )


def _trusted_chain(document: Federation, anchor: Anchor | None, in_force: Federation | None) -> int:
    """Returns the number of the last root set that needs no proof; a chain that does not lead there
    is refused."""
    place = f"version {document.version} of {document.name}"
    if anchor is not None and document.name != anchor.federation:
        raise FederationError(
            f"{place} is not of {anchor.federation}, the federation of the anchor",
            remedy="use the anchor of this federation, or the document of that one",
        )
    known: list[tuple[str, RootSet]] = []
    if anchor is not None:
        known.append(("the anchor", anchor.roots))
    if in_force is not None:
        known += [(f"version {in_force.version} in force", each) for each in in_force.roots]
    if known and not document.roots:
        raise FederationError(
            f"{place} is not signed, and {known[0][0]} has root keys",
            remedy="get the signed document from those who have the root keys",
        )
    for source, roots in known:
        if len(document.roots) < roots.number:
            raise FederationError(
                f"{place} goes back to root set {len(document.roots)}; {source} has root set "
                f"{roots.number}",
                remedy="get the newest document",
            )
        if document.roots[roots.number - 1] != roots:
            raise FederationError(
                f"{place} has another root set {roots.number} than {source}",
                remedy="it is a document of another federation, or a forged one",
            )
    return max((roots.number for _, roots in known), default=1)


def _check_threshold(
    roots: RootSet,
    signatures: Sequence[Signature],
    message: bytes,
    what: str,
    chain: Sequence[RootSet],
) -> None:
    signers = _judged(roots, signatures, message, chain)
    valid = sum(each.verdict is Verdict.VALID for each in signers)
    if valid >= roots.threshold:
        return
    # Signatures of the other set of a rotation are no fault.
    faults = [each for each in signers if each.verdict in (Verdict.ALTERED, Verdict.UNKNOWN)]
    faults = faults or [each for each in signers if each.verdict is Verdict.OTHER]
    why = "".join(f"; {shown_key(each.fingerprint)}: {each.verdict.value}" for each in faults[:3])
    raise FederationError(
        f"{what} is signed by {valid} of {roots.threshold} keys of root set {roots.number}{why}",
        remedy="qns federation sign adds a signature",
    )


def _judged(
    roots: RootSet, signatures: Iterable[Signature], message: bytes, chain: Sequence[RootSet]
) -> list[Signer]:
    return [Signer(each.key, _verdict(roots, each, message, chain)) for each in signatures]


def _verdict(
    roots: RootSet, signature: Signature, message: bytes, chain: Sequence[RootSet]
) -> Verdict:
    key = roots.key(signature.key)
    if key is not None:
        return Verdict.VALID if is_valid(key, signature, message) else Verdict.ALTERED
    is_known = any(each.key(signature.key) is not None for each in chain)
    return Verdict.OTHER if is_known else Verdict.UNKNOWN


# --- for those who sign ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Missing:
    """Signatures that a document needs before a peer takes it."""

    what: str
    roots: RootSet
    """The root set of which keys have to sign."""
    signers: tuple[Signer, ...]

    @property
    def valid(self) -> int:
        return sum(each.verdict is Verdict.VALID for each in self.signers)

    @property
    def missing(self) -> int:
        return max(0, self.roots.threshold - self.valid)


def progress(document: Federation) -> list[Missing]:
    """Returns what has to be signed in a document, by which root set, and who has signed.

    That is its newest root set, by the set before it and by itself, and the document.
    """
    chain = document.roots
    if not chain:
        return []
    found: list[Missing] = []
    newest = chain[-1]
    for roots in chain[-2:] if len(chain) > 1 else ():
        message = root_set_bytes(document.name, newest)
        own = [each for each in newest.signatures if roots.key(each.key) is not None]
        signers = tuple(_judged(roots, own, message, chain))
        found.append(Missing(f"root set {newest.number}", roots, signers))
    signers = tuple(_judged(newest, document.signatures, document_bytes(document), chain))
    found.append(Missing(f"version {document.version}", newest, signers))
    return found


def signed(document: Federation, key: SigningKey) -> Federation:
    """Returns the document with the signatures that this key can give.

    It signs the document if it is a key of the newest root set, and that set if it is one of the
    set or of the one before it. Raises FederationError if it is neither.
    """
    chain, public = document.roots, key.public
    if not chain:
        raise FederationError(
            "the document has no root keys",
            remedy="qns federation rotate adds them, in the next version",
        )
    rotates = len(chain) > 1 and any(each.key(public.fingerprint) for each in chain[-2:])
    if not rotates and chain[-1].key(public.fingerprint) is None:
        raise FederationError(
            f"{shown_key(public.fingerprint)} is no key of root set {chain[-1].number}",
            remedy="sign with one of: "
            + ", ".join(shown_key(each.fingerprint) for each in chain[-1].keys),
        )
    if rotates:
        newest = chain[-1]
        signature = key.sign(root_set_bytes(document.name, newest))
        newest = replace(newest, signatures=_with(newest.signatures, signature))
        document = replace(document, roots=(*chain[:-1], newest))
    if chain[-1].key(public.fingerprint) is not None:
        signature = key.sign(document_bytes(document))
        document = replace(document, signatures=_with(document.signatures, signature))
    return document


def _with(signatures: tuple[Signature, ...], signature: Signature) -> tuple[Signature, ...]:
    others = (each for each in signatures if each.key != signature.key)
    return tuple(sorted((*others, signature), key=lambda each: each.key))


def shown_key(fingerprint: str) -> str:
    return fingerprint[:SHOWN_DIGITS]


def named(keys: Iterable[RootKey]) -> list[str]:
    return [shown_key(key.fingerprint) for key in keys]
