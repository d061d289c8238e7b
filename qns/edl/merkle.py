"""Merkle tree: one hash, the root, stands for many leaves, so that one signature covers them all.

The proof of a leaf has the hashes beside its way to the root. Leaves and inner nodes are hashed
with different prefixes, so that none can pass for the other. The tree is filled up with empty
leaves to a power of two: the bits of a leaf's index then say on which side each hash is.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
INDEX_BYTES: Final = 4
MOST_LEVELS: Final = 8 * INDEX_BYTES

_LEAF, _NODE = b"\x00", b"\x01"
_EMPTY: Final = bytes(HASH_BYTES)


def tree_of(leaves: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """Returns the root of at least one leaf, and the proof of each leaf."""
    level = [sha256(_LEAF + leaf).digest() for leaf in leaves]
    paths: list[list[bytes]] = [[] for _ in leaves]
    height = (len(leaves) - 1).bit_length()
    for bit in range(height):
        if len(level) % 2:
            level.append(_EMPTY)
        for index, path in enumerate(paths):
            path.append(level[(index >> bit) ^ 1])
        level = [
            sha256(_NODE + level[at] + level[at + 1]).digest() for at in range(0, len(level), 2)
        ]
    proofs = [
        index.to_bytes(INDEX_BYTES, "big") + b"".join(path) for index, path in enumerate(paths)
    ]
    return level[0], proofs


def root_of(leaf: bytes, proof: bytes) -> bytes | None:
    """Returns the root of the tree that the proof puts the leaf into; None if it is no proof."""
    hashes = len(proof) - INDEX_BYTES
    if hashes < 0 or hashes % HASH_BYTES or hashes > MOST_LEVELS * HASH_BYTES:
        return None
    index = int.from_bytes(proof[:INDEX_BYTES], "big")
    node = sha256(_LEAF + leaf).digest()
    for at in range(INDEX_BYTES, len(proof), HASH_BYTES):
        beside = proof[at : at + HASH_BYTES]
        pair = beside + node if index & 1 else node + beside
        node = sha256(_NODE + pair).digest()
        index >>= 1
    return None if index else node
