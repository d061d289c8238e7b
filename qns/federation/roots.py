"""Root sets: the keys that sign the documents of a federation, and how they follow one another.

A document has every root set of its federation, from the first on. The last one signs the document.
A set that replaces another one is signed by both, so that a peer that knows an old set can follow
the chain inside one document (as in The Update Framework).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from qns.errors import FederationError, LimitExceeded, shorten

ALGORITHM: Final = "ed25519"
KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
MOST_KEYS: Final = 32
"""The limit of keys in one root set."""
MOST_ROOT_SETS: Final = 500
"""The limit of root sets in one document: one rotation a month is enough for 41 years."""


@dataclass(frozen=True, slots=True)
class RootKey:
    raw: bytes
    """The public key of Ed25519."""

    def __post_init__(self) -> None:
        if len(self.raw) != KEY_BYTES:
            raise FederationError(
                f"a root key of {len(self.raw)} bytes",
                remedy=f"a public key of {ALGORITHM} has {KEY_BYTES}",
            )

    @property
    def fingerprint(self) -> str:
        return sha256(self.raw).hexdigest()


@dataclass(frozen=True, slots=True)
class Signature:
    key: str
    """The fingerprint of the key."""
    value: bytes


@dataclass(frozen=True, slots=True)
class RootSet:
    number: int
    """1 for the first set of a federation, one more for each that follows."""
    threshold: int
    """How many of the keys have to sign."""
    keys: tuple[RootKey, ...]
    signatures: tuple[Signature, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        place = f"root set {self.number}"
        if not 1 <= self.number <= MOST_ROOT_SETS:
            raise LimitExceeded(
                f"a root set of number {self.number}", remedy=f"1 to {MOST_ROOT_SETS}"
            )
        if len(self.keys) > MOST_KEYS:
            raise LimitExceeded(
                f"{len(self.keys):,} root keys", place=place, remedy=f"at most {MOST_KEYS}"
            )
        if len(set(self.keys)) < len(self.keys):
            raise FederationError("a root key is named twice", place=place, remedy="remove one")
        if not 1 <= self.threshold <= len(self.keys):
            raise FederationError(
                f"a threshold of {self.threshold} with {len(self.keys)} root keys",
                place=place,
                remedy="a threshold is at least 1 and at most the number of keys",
            )
        try:
            check_signatures(self.signatures)
        except FederationError as problem:
            raise problem.at(place) from None
        object.__setattr__(self, "keys", tuple(sorted(self.keys, key=lambda key: key.raw)))

    def key(self, fingerprint: str) -> RootKey | None:
        return next((key for key in self.keys if key.fingerprint == fingerprint), None)


@dataclass(frozen=True, slots=True)
class Anchor:
    """What an operator got by other means than the network: from here on a peer trusts a chain."""

    federation: str
    roots: RootSet


def check_signatures(signatures: Sequence[Signature]) -> None:
    """Raises FederationError if a key signs twice or a signature has another length."""
    if len(signatures) > 2 * MOST_KEYS:  # those of a set and of the one before it
        raise FederationError(f"{len(signatures):,} signatures", remedy=f"at most {2 * MOST_KEYS}")
    keys: set[str] = set()
    for signature in signatures:
        if signature.key in keys:
            raise FederationError(
                f"the key {shorten(signature.key)} signs twice",
                remedy="each key counts once: remove one of its signatures",
            )
        keys.add(signature.key)
        if len(signature.value) != SIGNATURE_BYTES:
            raise FederationError(
                f"a signature of {len(signature.value):,} bytes by {shorten(signature.key)}",
                remedy=f"a signature of {ALGORITHM} has {SIGNATURE_BYTES}",
            )


def check_numbers(roots: Sequence[RootSet]) -> None:
    """Raises FederationError unless the root sets are numbered 1, 2, 3, …"""
    if len(roots) > MOST_ROOT_SETS:
        raise LimitExceeded(f"{len(roots):,} root sets", remedy=f"at most {MOST_ROOT_SETS}")
    for expected, each in enumerate(roots, 1):
        if each.number != expected:
            raise FederationError(
                f"root set {each.number} stands where root set {expected} belongs",
                remedy="a document has every root set of its federation, in order",
            )
