"""Root keys, and documents that they have signed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from qns.federation.document import Federation
from qns.federation.ed25519 import SigningKey
from qns.federation.roots import Anchor, RootSet
from qns.federation.signatures import signed


@lru_cache
def key(number: int) -> SigningKey:
    """Returns the root key of this number, always the same."""
    return SigningKey.of(bytes([number]) * 32)


def root_set(number: int, threshold: int, *keys: int) -> RootSet:
    return RootSet(number, threshold, tuple(key(each).public for each in keys))


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def sign(document: Federation, *keys: int) -> Federation:
    for each in keys:
        document = signed(document, key(each))
    return document


def rooted(document: Federation, roots: RootSet, expires_s: float = 1000.0) -> Federation:
    """Returns the same version with a first root set, not signed yet."""
    return replace(document, roots=(roots,), expires=at(expires_s))


def anchor_of(document: Federation) -> Anchor:
    assert document.root_set is not None
    return Anchor(document.name, document.root_set)
