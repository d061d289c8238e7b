"""Seal texts: the texts that are hashed and signed for a seal, byte by byte.

docs/seals.md describes them. A leaf of a Merkle tree stands for one entry of an item: the head is
the same for all entries of the item, the rest belongs to the entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple

from qns.edl.messages import Entry, Fence, Item, RelayAcknowledgement, Skip, Standing
from qns.errors import DocumentError

_DOMAIN: Final = b"QNS seal 1\x00"
_NOTIFICATION, _SKIP, _ACKNOWLEDGEMENT = b"N", b"S", b"A"
_NUMBER, _NUMBERS, _COUNT = Struct(">Q").pack, Struct(">4Q").pack, Struct(">I").pack
_DIGEST_BYTES: Final = 32


class Leaf(NamedTuple):
    """What the leaf of one entry of a notification says."""

    source: str
    incarnation: int
    epoch: int
    sequence: int
    """(incarnation, epoch, sequence) is the place in the publication order of the source."""
    event: str
    """The id of the event."""
    digest: bytes
    """The SHA-256 of the event's bytes."""
    entry: Entry
    """Without children and proof."""


def signed_text(federation: str, organisation: str, root: bytes) -> bytes:
    """Returns what an organisation signs: a seal is valid in one federation and for one signer."""
    return _DOMAIN + _text(federation) + _text(organisation) + root


def head_text(item: Item) -> bytes:
    """Returns what the leaves of all entries of an item begin with."""
    if isinstance(item, Skip):
        # Not the reason: it is for people, and a long one is cut on its way.
        return _SKIP + _text(item.source) + _NUMBER(item.producer_incarnation) + _NUMBER(item.last)
    digest = sha256(item.xml).digest()
    place = (item.producer_incarnation, item.epoch, item.sequence)
    return _notification_head(item.source, place, item.event, digest)


def _notification_head(
    source: str, place: tuple[int, int, int], event: str, digest: bytes
) -> bytes:
    incarnation, epoch, sequence = map(_NUMBER, place)
    return _NOTIFICATION + _text(source) + incarnation + epoch + sequence + _text(event) + digest


def entry_text(entry: Entry) -> bytes:
    receiver, incarnation, epoch, number, confirmed, fences, _, carriers, _ = entry
    text = _text(receiver) + _NUMBERS(incarnation, epoch, number, confirmed)
    return text + _fences_text(fences) + _COUNT(len(carriers)) + _texts(carriers)


def acknowledgement_leaf(carried: RelayAcknowledgement) -> bytes:
    ends = _text(carried.producer) + _text(carried.consumer)
    return _ACKNOWLEDGEMENT + ends + _standing_text(carried.standing)


def write_leaf(leaf: Leaf) -> bytes:
    place = (leaf.incarnation, leaf.epoch, leaf.sequence)
    head = _notification_head(leaf.source, place, leaf.event, leaf.digest)
    return head + entry_text(leaf.entry)


def read_leaf(data: bytes) -> Leaf:
    """Inverse of `write_leaf`. Raises DocumentError for bytes that are no leaf of an entry."""
    reader = _Reader(data)
    try:
        if reader.take(1) != _NOTIFICATION:
            raise ValueError
        source = reader.text()
        incarnation, epoch, sequence = reader.number(), reader.number(), reader.number()
        event, digest = reader.text(), reader.take(_DIGEST_BYTES)
        receiver = reader.text()
        own, numbered_in, number, confirmed = (reader.number() for _ in range(4))
        fences = tuple(Fence(reader.number(), reader.number()) for _ in range(reader.count()))
        carriers = tuple(reader.text() for _ in range(reader.count()))
        entry = Entry(receiver, own, numbered_in, number, confirmed, fences, (), carriers)
        leaf = Leaf(source, incarnation, epoch, sequence, event, digest, entry)
        if write_leaf(leaf) != data:
            raise ValueError
    except ValueError:
        raise DocumentError("these bytes are no leaf of a notification") from None
    return leaf


class _Reader:
    """Takes one value after the other; raises ValueError at the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        begin, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise ValueError
        return self._data[begin : self._at]

    def number(self) -> int:
        return int.from_bytes(self.take(8), "big")

    def count(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def text(self) -> str:
        return self.take(self.count()).decode()


def _standing_text(standing: Standing) -> bytes:
    *numbers, fences = standing
    return b"".join(map(_NUMBER, numbers)) + _fences_text(fences)


def _fences_text(fences: Sequence[tuple[int, int]]) -> bytes:
    if not fences:
        return _COUNT(0)
    return _COUNT(len(fences)) + b"".join(_NUMBER(epoch) + _NUMBER(at) for epoch, at in fences)


def _texts(texts: Iterable[str]) -> bytes:
    return b"".join(map(_text, texts))


def _text(text: str) -> bytes:
    data = text.encode()
    return _COUNT(len(data)) + data
